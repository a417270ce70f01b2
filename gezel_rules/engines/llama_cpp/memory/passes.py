"""A layer of a forward pass as the blocks see it: its sizes, its devices, and what it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gezel_rules.engines.llama_cpp.memory.blocks import FLOAT, Indexer, Pass, State
from gezel_rules.engines.llama_cpp.memory.fetching import early, next_early
from gezel_rules.engines.llama_cpp.memory.flags import Context
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.given import HALF, Given
from gezel_rules.engines.llama_cpp.memory.graph import Graph
from gezel_rules.engines.llama_cpp.memory.kv_cache import row_bytes, window_cells
from gezel_rules.engines.llama_cpp.memory.layers import number as count
from gezel_rules.engines.llama_cpp.memory.spots import Spot, cache_owner, held_caches
from gezel_rules.record import NamedTuple


class Forward(NamedTuple):
    """One forward pass in the making. ``output``: the device of the output side; ``rows``: tokens of the batch;
    ``given``: what it is fed; ``indexers``: by layer."""

    geo: Geometry
    context: Context
    output: int
    spots: Sequence[Spot]
    graph: Graph
    rows: int
    given: Given
    indexers: Mapping[int, Indexer]


def alike(geo: Geometry) -> list[int]:
    """A number per layer that is equal where two layers put the same tensors into a graph, if they lie alike. Empty
    where layers reach into each other: by states fetched ahead, or an indexer's picks."""
    if (geo.mla and geo.indexer) or any(x.recurrent and early(geo.shapes[x.number]) for x in geo.layers):
        return []
    kinds: dict[object, int] = {}
    sparse = geo.row.sparse_layers
    keys = [(geo.kinds[i], x._replace(number=0), rotates(geo, i), i < sparse) for i, x in enumerate(geo.layers)]
    return [kinds.setdefault(key, len(kinds)) for key in keys]


def pass_of(run: Forward, number: int, following: Sequence[int] = ()) -> Pass:
    """A layer as the blocks see it."""
    geo, context = run.geo, run.context
    layer, spot = geo.layers[number], run.spots[number]
    inputs = run.given.caches[-1 if layer.sliding else 0]
    ahead = next_early(geo, following)
    head_k = layer.k // layer.kv_heads if layer.kv_heads else geo.head_k
    head_v = layer.v // layer.kv_heads if layer.kv_heads and layer.v else geo.head_v
    return Pass(
        graph=run.graph,
        number=number,
        shapes=geo.shapes[number],
        row=geo.row,
        rows=run.rows,
        sequences=context.slots,
        cells=0 if context.flash else window_cells(geo, context) if layer.sliding else context.ctx_seq,
        mask=inputs.mask,
        picks=run.given.picks,
        inputs=inputs,
        used=max(1, geo.experts_used),
        heads=layer.heads,
        head_k=head_k,
        head_v=head_v,
        held=held_caches(geo, number, context, run.spots, run.graph),
        transposed=_transposed_bytes(run, number),
        cast=_cast_bytes(run, number),
        values=geo.state_s,
        state=state_of(run, number),
        picked=None,
        ahead=None if ahead is None else state_of(run, ahead),
        owns=layer.cached or layer.nextn,
        rotates=rotates(geo, number),
        store=spot.cache,
        home=spot.home,
        elsewhere=dict(spot.elsewhere),
        indexer=run.indexers.get(number),
    )


def state_of(run: Forward, number: int) -> State:
    """What a layer fetches of its state when it begins: the rolling part, and with RWKV all of it."""
    geo, slots = run.geo, run.context.slots
    sizes = (geo.state_r, geo.state_s) if geo.row.state == "rwkv" else (geo.state_r,)
    return State(number, run.spots[number].cache, tuple(FLOAT * slots * size for size in sizes), run.given.slots)


def rotates(geo: Geometry, number: int) -> bool:
    """Whether positions turn this layer's queries and keys: all layers, none, sliding ones, or all but every n-th."""
    rule, every = geo.row.rotates, geo.row.rotates_not_every
    if rule == "sliding":
        lead = count(geo.header, "leading_dense_block_count", 0) if geo.row.rotates_lead else 0
        return geo.layers[number].sliding or not geo.window or number < lead
    if rule == "finetuned":
        return bool(geo.header.get("rope.scaling.finetuned", True))
    return rule != "none" and not (every and (number + 1) % every == 0)


def _transposed_bytes(run: Forward, number: int) -> int:
    """Without flash attention V is read value by value: a copy of it all where the cache holds it row by row."""
    geo, context, layer = run.geo, run.context, run.geo.layers[number]
    if context.flash or (context.transposed and not geo.mla):
        return 0
    cells = (window_cells(geo, context) if layer.sliding else context.ctx_seq) * context.streams
    owner = geo.layers[cache_owner(geo, number) or number]
    values = count(geo.header, "attention.kv_lora_rank", 0) if geo.mla else owner.v
    return cells * row_bytes(values, context.type_v, geo.tables)


def _cast_bytes(run: Forward, number: int) -> int:
    """Flash attention reads halves: f32 caches are cast whole, K and V, one layer at a time."""
    geo, context, layer = run.geo, run.context, run.geo.layers[number]
    if not context.flash:
        return 0
    cells = (window_cells(geo, context) if layer.sliding else context.ctx_seq) * context.streams
    wide = geo.tables.cache_types
    sides = (layer.k, context.type_k), (layer.v, context.type_v)
    return sum(cells * values * HALF for values, kind in sides if wide[kind].bytes > 32 * HALF)
