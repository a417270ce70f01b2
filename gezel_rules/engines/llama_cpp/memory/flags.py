"""What a launch asks of the engine, and what the engine makes of it: cells, streams, slots, rows."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.tables import Architecture, EngineDefaults, MemoryTables
from gezel_rules.record import NamedTuple


class Launch(NamedTuple):
    """The engine flags that move memory. ``None`` = not passed, the engine's own default stands.

    ``ctx``: tokens over all slots (0 or ``None``: the trained length, once per stream). ``parallel``: slots.
    ``spec``: speculative types; ``n_max``: tokens drafted at once. ``override_tensor``: ``(regex, buffer)`` pairs,
    first match wins, CPU = the host. ``tensor_split``: one weight per device. ``devices``: how many accelerators.
    ``device_free``: bytes free on each, for the engine's default split. ``draft_type_k/v``: cache of an MTP context.
    ``pipeline``: copies for pipelining over devices (``None``: as the engine decides). ``op_offload``: the backend
    copies host weights to the first device for large batches (CUDA, ROCm, Vulkan …; RPC does not). ``processor``:
    what packs the weights on the CPU, a row of the table ``processors`` (``plain`` with --no-repack).
    ``ffn_on_cpu``: layers whose dense feed-forward stays on the CPU, as the override ``kept_ffn`` says it.
    """

    ctx: int | None = None
    type_k: str | None = None
    type_v: str | None = None
    parallel: int | None = None
    kv_unified: bool = False
    ubatch: int | None = None
    batch: int | None = None
    swa_full: bool = False
    flash_attn: str = "auto"
    spec: tuple[str, ...] = ()
    n_max: int | None = None
    draft_type_k: str | None = None
    draft_type_v: str | None = None
    devices: int = 0
    device_free: tuple[int, ...] = ()
    n_gpu_layers: int | None = None
    tensor_split: tuple[float, ...] = ()
    n_cpu_moe: int = 0
    cpu_moe: bool = False
    override_tensor: tuple[tuple[str, str], ...] = ()
    ffn_on_cpu: frozenset[int] = frozenset()
    no_kv_offload: bool = False
    pipeline: bool | None = None
    op_offload: bool = False
    processor: str | None = None


class Context(NamedTuple):
    """A launch settled for one model: every number the caches are made of.

    ``ctx``: cells over all streams; ``ctx_seq``: cells of one stream; ``states``: recurrent rows per slot;
    ``outputs``: most rows of logits one batch may ask for; ``flash``: flash attention is on; ``transposed``: V was
    laid out for its being off, value by value.
    """

    slots: int
    unified: bool
    streams: int
    ctx: int
    ctx_seq: int
    ubatch: int
    type_k: str
    type_v: str
    flash: bool
    transposed: bool
    swa_full: bool
    states: int
    outputs: int


def padded(value: int, multiple: int) -> int:
    """The next multiple, as the engine pads cells."""
    return -(-value // multiple) * multiple


def settle(launch: Launch, trained: int, nextn: int, row: Architecture, tables: MemoryTables) -> Context:
    """What the engine makes of the flags (``llama_context``): four unified slots when no count is given; a window
    that was not asked for is the trained length in every stream; streams are padded up, never down."""
    default = tables.defaults
    slots = max(1, launch.parallel or default.slots)
    unified = launch.kv_unified or launch.parallel is None
    streams = 1 if unified else slots
    ctx = padded(launch.ctx or trained * streams, default.cell_padding)
    ctx_seq = ctx if unified else padded(ctx // slots, default.cell_padding)
    flash = launch.flash_attn != "off" and row.flash_attention
    drafted = _drafted(launch, nextn, tables)
    return Context(
        slots=slots,
        unified=unified,
        streams=streams,
        ctx=ctx_seq * streams,
        ctx_seq=ctx_seq,
        ubatch=_ubatch(launch, launch.ctx or trained * streams, default),
        type_k=launch.type_k or default.cache_type,
        type_v=launch.type_v or default.cache_type,
        flash=flash,
        transposed=not flash,
        swa_full=launch.swa_full,
        states=1 + (drafted if row.rollback and _rolls_back(launch, tables) else 0),
        outputs=slots * (1 + drafted),
    )


def _ubatch(launch: Launch, ctx: int, default: EngineDefaults) -> int:
    """Tokens of one physical batch: never more than the logical batch or the window."""
    batch = min(ctx, launch.batch or default.batch)
    return min(batch, launch.ubatch or default.ubatch)


def _drafted(launch: Launch, nextn: int, tables: MemoryTables) -> int:
    """Most tokens drafted ahead: the largest of the types asked for; chained MTP heads draft one token each."""
    most = 0
    for name in launch.spec:
        row = tables.speculation.get(name)
        if row is None or not row.n_max:
            continue
        n = launch.n_max or row.n_max
        if row.context == "mtp" and nextn > 1:
            n = min(n, nextn)
        most = max(most, n)
    return most


def _rolls_back(launch: Launch, tables: MemoryTables) -> bool:
    return any(row.rollback for name in launch.spec if (row := tables.speculation.get(name)))


def mtp_context(launch: Launch, context: Context, tables: MemoryTables) -> Context | None:
    """The second context an MTP head decodes in: same window, slots and streams, its own cache types."""
    if not any(row.context == "mtp" for name in launch.spec if (row := tables.speculation.get(name))):
        return None
    kind = tables.defaults.draft_cache_type
    return context._replace(
        type_k=launch.draft_type_k or kind, type_v=launch.draft_type_v or kind, states=1, outputs=context.slots
    )
