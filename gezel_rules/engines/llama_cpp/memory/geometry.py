"""A GGUF header as memory sees it: per layer, what is cached, what slides, what keeps a state. Computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from gezel_rules.engines.llama_cpp.memory import layers as rules
from gezel_rules.engines.llama_cpp.memory.tables import memory_tables
from gezel_rules.engines.llama_cpp.memory.weights import Weight, all_weights, layer_shapes
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.engines.llama_cpp.memory.header_info import HeaderInfo
    from gezel_rules.engines.llama_cpp.memory.tables import Architecture, MemoryTables
    from gezel_rules.policy.model import PolicySet


class Layer(NamedTuple):
    """One block. ``k``/``v``: values per cell of its K and V row (0 = none); ``cached``: owns a KV cache in the main
    context; ``sliding``: sees the window only; ``recurrent``: keeps a state; ``indexer``: values of its indexer row;
    ``nextn``: belongs to the MTP head; ``ratio``: cells per compressed row (0 = not compressed)."""

    number: int
    heads: int
    kv_heads: int
    k: int
    v: int
    ff: int
    sliding: bool
    cached: bool
    recurrent: bool
    indexer: int
    nextn: bool
    ratio: int


class Measures(NamedTuple):
    """Everything about a model that memory depends on, from its header and the architecture table.

    ``window``: tokens a sliding layer sees (0 = none slide); ``state_r``/``state_s``: f32 values per recurrent layer
    and row; ``mla``: only K is cached; ``per_layer``: values of each layer's own embedding; ``streams``: parallel
    residual streams; ``trained``: context length in tokens; ``unknown``: what could not be settled.
    """

    arch: str
    row: Architecture
    layers: tuple[Layer, ...]
    trained: int
    embedding: int
    vocab: int
    head_k: int
    head_v: int
    window: int
    mla: bool
    indexer: int
    state_r: int
    state_s: int
    experts: int
    experts_used: int
    nextn: int
    per_layer: int
    streams: int
    weights: tuple[Weight, ...]
    shapes: tuple[Mapping[str, tuple[int, ...]], ...]
    kinds: tuple[int, ...]
    header: HeaderInfo
    tables: MemoryTables
    unknown: tuple[str, ...]


T = TypeVar("T")


class Geometry(Measures):
    """The measures of one model, and what is worked out of them alone: each such work is done once."""

    def __eq__(self, other: object) -> bool:
        """One header, one geometry: told apart by identity, so that it is a cheap key."""
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @cached_property
    def _done(self) -> dict[Callable[[Geometry], Any], Any]:
        return {}

    def once(self, work: Callable[[Geometry], T]) -> T:
        """What ``work`` makes of this geometry; only the first call does it."""
        if work not in self._done:
            self._done[work] = work(self)
        found: T = self._done[work]
        return found

    @property
    def trunk(self) -> int:
        """Layers of the main graph: all but the MTP head's."""
        return len(self.layers) - self.nextn


def geometry(header: HeaderInfo, tables: MemoryTables) -> Geometry:
    """The geometry of a header. :raises BadInput: when a key no model can do without is missing."""
    row = tables.architectures.get(header.arch, tables.unlisted)
    blocks = rules.block_count(header, row)
    nextn = rules.nextn_layers(header, row, blocks)
    heads, kv_heads = rules.head_counts(header, blocks)
    head_k, head_v = rules.head_sizes(header, row, heads)
    layers, window = _layers(header, row, blocks, nextn, heads, kv_heads, head_k, head_v)
    weights = all_weights(header, row, tables)
    shapes, kinds = layer_shapes(weights, blocks)
    r, s = rules.state_values(header, row, heads, head_k) if any(x.recurrent for x in layers) else (0, 0)
    return Geometry(
        arch=header.arch,
        row=row,
        layers=layers,
        trained=rules.needed(header, "context_length"),
        embedding=rules.needed(header, "embedding_length"),
        vocab=rules.vocabulary(header),
        head_k=head_k,
        head_v=head_v,
        window=window,
        mla=rules.is_mla(header, row),
        indexer=rules.number(header, "attention.indexer.key_length", 0),
        state_r=r,
        state_s=s,
        experts=rules.number(header, "expert_count", 0),
        experts_used=rules.experts_used(header, blocks),
        nextn=nextn,
        per_layer=rules.number(header, "embedding_length_per_layer_input", 0),
        streams=row.streams,
        weights=weights,
        shapes=shapes,
        kinds=kinds,
        header=header,
        tables=tables,
        unknown=rules.unproven(header, row, tables),
    )


def geometry_by(policies: PolicySet, header: HeaderInfo) -> Geometry:
    """The same by the tables of a policy set."""
    return geometry(header, memory_tables(policies))


def _layers(
    header: HeaderInfo,
    row: Architecture,
    blocks: int,
    nextn: int,
    heads: list[int],
    kv_heads: list[int],
    head_k: int,
    head_v: int,
) -> tuple[tuple[Layer, ...], int]:
    """Every layer, and the window its sliding ones see."""
    get = header.get
    ff = rules.per_layer(get("feed_forward_length", 0), blocks)
    recurrent = rules.recurrent_layers(header, row, blocks, nextn, kv_heads, ff)
    window = rules.window_of(header, row, blocks)
    sliding = rules.sliding_layers(header, row, blocks, nextn, recurrent) if window else [False] * blocks
    keys = head_k, rules.number(header, "attention.key_length_swa", head_k)
    values = head_v, rules.number(header, "attention.value_length_swa", head_v)
    key_only = rules.is_mla(header, row) or row.compressed
    cached = rules.cached_layers(header, row, blocks, nextn, recurrent, ff)
    indexed = rules.indexer_rows(header, row, blocks, nextn, recurrent)
    ratios = rules.per_layer(get("attention.compress_ratios", 0), blocks)
    return tuple(
        Layer(
            number=i,
            heads=heads[i],
            kv_heads=kv_heads[i],
            k=kv_heads[i] * keys[sliding[i]],
            v=0 if key_only else kv_heads[i] * values[sliding[i]],
            ff=ff[i],
            sliding=sliding[i],
            cached=cached[i],
            recurrent=recurrent[i],
            indexer=indexed[i],
            nextn=i >= blocks - nextn,
            ratio=ratios[i],
        )
        for i in range(blocks)
    ), window
