"""What a graph is given with each batch: filled on the host, there from the start."""

from __future__ import annotations

from collections.abc import Sequence

from gezel_rules.engines.llama_cpp.memory.blocks import FLOAT, CacheInputs, Indexer
from gezel_rules.engines.llama_cpp.memory.flags import Context
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.graph import Graph
from gezel_rules.engines.llama_cpp.memory.kv_cache import window_cells
from gezel_rules.engines.llama_cpp.memory.layers import number
from gezel_rules.record import NamedTuple

HALF = 2  # bytes of a mask entry with flash attention
PLACE = 8  # bytes of the number of a cache row
LEAST_TURN = 64  # rows and columns of the smallest Hadamard matrix


class Given(NamedTuple):
    """``caches``: for the full and, where layers slide, the windowed cache; ``picks``: which rows need logits;
    ``slots``: which states a batch reads, a view of that, and an empty one of the others; ``turn``: the matrix that
    rotates the rows of an indexer."""

    caches: tuple[CacheInputs, ...]
    picks: int
    slots: tuple[int, int, int]
    turn: int


def given_for(geo: Geometry, context: Context, graph: Graph, rows: int) -> Given:
    """The inputs of a batch of so many tokens."""
    slots = graph.given(context.slots * FLOAT if any(x.recurrent for x in geo.layers) else 0)
    states = slots, graph.view(slots), graph.view(slots, 0)
    positions = graph.given(rows * FLOAT)
    indexed = geo.mla and geo.indexer
    turn = graph.given(geo.indexer * geo.indexer * FLOAT if indexed else 0)
    turns = [_turns(geo, context, graph) for _ in range(2 if geo.window else 1)]
    sizes = [(0, 0, 0)]
    if any(x.cached for x in geo.layers) or geo.row.compressed:
        sizes = _sizes(geo, context, rows)
    caches = [CacheInputs(positions, *turn, *map(graph.given, size)) for turn, size in zip(turns, sizes, strict=False)]
    return Given(tuple(caches), graph.given(context.outputs * FLOAT), states, turn)


def _sizes(geo: Geometry, context: Context, rows: int) -> list[tuple[int, int, int]]:
    """For each cache the bytes of the places of K and V rows (of a transposed V every value has a place of its own) and
    of the mask, cells × tokens."""
    entry = (HALF if context.flash else FLOAT) * rows
    values = max((x.v for x in geo.layers), default=0) if context.transposed and not geo.mla else 1
    kinds = (context.ctx_seq, window_cells(geo, context)) if geo.window else (context.ctx_seq,)
    return [(PLACE * rows, PLACE * rows * values, cells * entry) for cells in kinds]


def _turns(geo: Geometry, context: Context, graph: Graph) -> tuple[int | None, int | None]:
    """What turns K and V."""
    most = geo.head_k
    return _turning(geo, graph, context.type_k, geo.head_k, most), _turning(
        geo, graph, context.type_v, geo.head_v, LEAST_TURN
    )


def _turning(geo: Geometry, graph: Graph, kind: str, head: int, most: int) -> int | None:
    """Quantised caches hold rotated rows (``attn_rot_k``), where heads come in whole 64s: by the largest power of two
    that divides a head for K, always 64 for V."""
    if geo.mla or not geo.tables.quantized(kind) or not head or head % LEAST_TURN:
        return None
    wide = LEAST_TURN
    while wide < most and head % (2 * wide) == 0:
        wide *= 2
    return graph.given(wide * wide * FLOAT)


def indexers_of(
    geo: Geometry, context: Context, graph: Graph, rows: int, turn: int, homes: Sequence[int]
) -> dict[int, Indexer]:
    """The indexers of latent attention: a mask, and a constant for every layer."""
    if not (geo.mla and geo.indexer):
        return {}
    cells, picks = context.ctx_seq, list[int]()
    top = min(number(geo.header, "attention.indexer.top_k", cells), cells)
    mask = graph.given(HALF * rows * cells)
    latent = [i for i in range(geo.trunk) if "attn_kv_a_mqa" in geo.shapes[i]]
    return {i: Indexer(graph.constant(FLOAT * rows * top, homes[i]), turn, mask, cells, top, picks) for i in latent}
