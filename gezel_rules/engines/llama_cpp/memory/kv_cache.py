"""KV caches to the byte: cells × streams × rows, as ``llama_kv_cache`` and its relatives allocate them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gezel_rules.engines.llama_cpp.memory.flags import Context, padded
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry, Layer
from gezel_rules.engines.llama_cpp.memory.tables import MemoryTables
from gezel_rules.errors import BadInput
from gezel_rules.record import NamedTuple


class Cache(NamedTuple):
    """One cache. ``cells``: per stream; ``layers``: how many own a row; ``parts``: bytes by layer index."""

    name: str
    cells: int
    streams: int
    layers: int
    bytes: int
    parts: tuple[tuple[int, int], ...]


def row_bytes(values: int, kind: str, tables: MemoryTables) -> int:
    """Bytes of one cache row. :raises BadInput: for a type the engine does not cache in."""
    try:
        return values * tables.cache_types[kind].bytes // 32
    except KeyError:
        known = ", ".join(tables.cache_types)
        raise BadInput(f"cache type {kind!r} is not one the engine knows ({known})") from None


def caches(geo: Geometry, context: Context) -> tuple[Cache, ...]:
    """The caches of the main context, in the engine's order."""
    if geo.row.compressed:
        return _compressed(geo, context)
    layers = [layer for layer in geo.layers if layer.cached]
    found = _attention(geo, context, layers)
    indexed = [(layer, layer.indexer, 0 if geo.mla or geo.row.indexer_slots else geo.head_v)
               for layer in geo.layers if layer.indexer]  # fmt: skip
    if indexed:
        found += (_cache("indexer", context.ctx_seq, context, indexed, geo.tables),)
    return found


def mtp_caches(geo: Geometry, context: Context) -> tuple[Cache, ...]:
    """The caches of an MTP context: its own layers only, no state; K and V even where the trunk keeps K only to
    compress it."""
    both = geo.row.compressed
    return _attention(geo, context, [x._replace(v=x.k) if both else x for x in geo.layers if x.nextn])


def window_cells(geo: Geometry, context: Context) -> int:
    """Cells per stream of a sliding-window cache: window × sequences + one batch, padded, never above the context
    (``llama_kv_cache_iswa``)."""
    if context.swa_full:
        return context.ctx_seq
    sequences = context.slots if context.unified and not geo.row.compressed else 1
    return padded(min(context.ctx_seq, geo.window * sequences + context.ubatch), _pad(geo))


def _pad(geo: Geometry) -> int:
    return geo.tables.defaults.cell_padding


def _attention(geo: Geometry, context: Context, layers: Iterable[Layer]) -> tuple[Cache, ...]:
    """One cache, or a full and a windowed one when the architecture slides."""
    widest = max((layer.v for layer in geo.layers), default=0)
    rows = [(x, x.k, x.v if geo.mla or not context.transposed else widest) for x in layers]
    if not rows:
        return ()
    if not geo.window:
        return (_cache("full", context.ctx_seq, context, rows, geo.tables),)
    dense = [r for r in rows if not r[0].sliding]
    slides = [r for r in rows if r[0].sliding]
    return (
        _cache("base", context.ctx_seq, context, dense, geo.tables),
        _cache("swa", window_cells(geo, context), context, slides, geo.tables),
    )


def _cache(
    name: str, cells: int, context: Context, rows: Sequence[tuple[Layer, int, int]], tables: MemoryTables
) -> Cache:
    """Cells × streams × (K row + V row) over some layers."""
    times, alike = cells * context.streams, {(k, v) for _, k, v in rows}
    sizes = {
        (k, v): times * (row_bytes(k, context.type_k, tables) + row_bytes(v, context.type_v, tables)) for k, v in alike
    }
    parts = tuple((layer.number, sizes[k, v]) for layer, k, v in rows)
    return Cache(name, cells, context.streams, len(parts), sum(b for _, b in parts), parts)


FINE_RATIO, COARSE_RATIO = 4, 128  # DSV4_CSA_RATIO, DSV4_HCA_RATIO


def _compressed(geo: Geometry, context: Context) -> tuple[Cache, ...]:
    """DeepSeek-V4: K only, one stream per slot even when unified; a window on all layers, compressed rows by ratio."""
    own = context._replace(streams=context.slots)

    def of(name: str, cells: int, layers: list[Layer], values: int | None = None) -> Cache:
        return _cache(name, cells, own, [(x, values or x.k, 0) for x in layers], geo.tables)

    def shrunk(ratio: int) -> int:
        return padded(max(1, -(-context.ctx_seq // ratio)), _pad(geo))

    fine = [x for x in geo.layers if x.ratio == FINE_RATIO]
    coarse = [x for x in geo.layers if x.ratio == COARSE_RATIO]
    return (
        of("base", context.ctx_seq, []),
        of("swa", window_cells(geo, context), list(geo.layers)),
        of("compressed", shrunk(FINE_RATIO), fine),
        of("coarse", shrunk(COARSE_RATIO), coarse),
        of("indexer", shrunk(FINE_RATIO), fine, geo.indexer),
    )
