"""What the arithmetic reads of the policies: architectures, cache and speculative types, tensors, engine defaults.

The meaning of each column stands with the table; here only its name and kind.
"""

from __future__ import annotations

from collections.abc import Mapping

from gezel_rules.policy.model import PolicySet
from gezel_rules.record import NamedTuple


class Architecture(NamedTuple):
    """A row of ``architectures``."""

    window_every: int | None
    dense_first: bool
    window_array: bool
    window_if: str | None
    window_default: int
    window_forced: int | None
    window_layers: int | None
    window_attention: bool
    cache: str
    cached_layers: int | None
    shared_layers: bool
    recurrent: str
    interval: int
    state: str
    headless_first: bool
    rollback: bool
    mla: bool
    indexer: str
    indexer_slots: int | None
    indexer_long: int | None
    indexer_first: int
    indexer_every: int
    nextn_cached: bool
    mtp: bool
    mtp_keeps: tuple[str, ...]
    loops: bool
    extra_router_layer: bool
    late_output: bool
    parallel: bool
    residual_first: bool
    key_first: bool
    scaled_embedding: bool
    norms_embedding: bool
    norms_values: bool
    experts_weigh_input: bool
    rotates: str
    rotates_not_every: int
    rotates_lead: bool
    delta_repeats: bool
    streams: int
    sparse_layers: int
    tied_twice: bool
    flash_attention: bool

    @property
    def slides(self) -> bool:
        """Whether any layer may see a sliding window."""
        return self.window_every is not None or self.window_array or self.window_attention

    @property
    def compressed(self) -> bool:
        """Whether its cache is the compressed streams of DeepSeek-V4."""
        return self.cache == "deepseek4"


class CacheType(NamedTuple):
    """A row of ``cache_types``; ``bytes`` are per 32 values."""

    bytes: int
    quantized: bool


class Speculation(NamedTuple):
    """A row of ``speculation``."""

    n_max: int
    rollback: bool
    context: str


class EngineDefaults(NamedTuple):
    """The row ``memory`` of ``engine_defaults``."""

    processor: str
    slots: int
    ubatch: int
    batch: int
    cache_type: str
    draft_cache_type: str
    cell_padding: int
    lazy_read_above_bytes: int


class TensorRow(NamedTuple):
    """A row of ``tensors``."""

    place: str
    lookup: bool
    lazy: bool


class Repack(NamedTuple):
    """A row of ``repack``."""

    rows: int


class Processor(NamedTuple):
    """A row of ``processors``."""

    features: tuple[str, ...]
    repack: tuple[str, ...]
    amx: bool
    aborts: tuple[str, ...]


class Amx(NamedTuple):
    """A row of ``amx``."""

    rows: int
    columns: int
    adds: int
    stacked: bool


class MemoryTables(NamedTuple):
    """All of them. ``unlisted``: an architecture that has no row; ``other_tensor``: a tensor that has none."""

    architectures: Mapping[str, Architecture]
    unlisted: Architecture
    cache_types: Mapping[str, CacheType]
    speculation: Mapping[str, Speculation]
    defaults: EngineDefaults
    tensors: Mapping[str, TensorRow]
    other_tensor: TensorRow
    processors: Mapping[str, Processor]
    repack: Mapping[str, Repack]
    amx: Mapping[str, Amx]

    def quantized(self, kind: str) -> bool:
        """Whether a cache type comes in blocks; one that nobody knows does not."""
        found = self.cache_types.get(kind)
        return found is not None and found.quantized


def memory_tables(policies: PolicySet) -> MemoryTables:
    """The tables of a set."""
    return MemoryTables(
        architectures=policies.rows("architectures", Architecture),
        unlisted=policies.unlisted("architectures", Architecture),
        cache_types=policies.rows("cache_types", CacheType),
        speculation=policies.rows("speculation", Speculation),
        defaults=policies.row("engine_defaults", "memory", EngineDefaults),
        tensors=policies.rows("tensors", TensorRow),
        other_tensor=policies.unlisted("tensors", TensorRow),
        processors=policies.rows("processors", Processor),
        repack=policies.rows("repack", Repack),
        amx=policies.rows("amx", Amx),
    )
