"""Where each part of a layer is computed, as the engine's scheduler decides: by weights, caches and neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from re import Pattern

from gezel_rules.engines.llama_cpp.memory.flags import Context, Launch
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.graph import Graph
from gezel_rules.engines.llama_cpp.memory.kv_cache import row_bytes, window_cells
from gezel_rules.engines.llama_cpp.memory.offload import HOST, Owners, override_of, overrides
from gezel_rules.record import NamedTuple


class Spot(NamedTuple):
    """Devices of a layer's parts. ``attend``: its attention weights; ``cache``: its K and V; ``score``: attention
    itself, which has no weights and goes with the cache, unless that is the host's: then with what runs next;
    ``norm``: the norm before the feed-forward; ``feed``, ``expert``: dense and routed feed-forward."""

    attend: int
    cache: int
    score: int
    norm: int
    feed: int
    expert: int


MIXERS = ("attn_q", "attn_qkv", "attn_q_a", "ssm_in", "shortconv.in_proj")
"""The matrix that says where a layer's attention or recurrence is; the first it has."""


def spots_of(geo: Geometry, launch: Launch, own: Owners) -> list[Spot]:
    """The devices of every layer's parts."""
    rules = overrides(launch)
    moved = len(geo.layers) if launch.cpu_moe else launch.n_cpu_moe
    stems = [(mixer, "ffn_norm", "ffn_up", "ffn_up_exps") for mixer in geo.once(_mixers)]
    states, spots = geo.once(_next_states), []
    for i, home in enumerate(own.layers):
        devices = [_device(i, stem, home, rules) for stem in stems[i]] if rules else [home] * 4
        attend, norm, feed, expert = devices
        cache = HOST if launch.no_kv_offload else home
        following = states[i] if geo.layers[i].cached else None
        near = attend if following is None else HOST if launch.no_kv_offload else own.layers[following]
        score = near if cache == HOST else cache
        feed, expert = HOST if i in launch.ffn_on_cpu else feed, HOST if i < moved else expert
        spots.append(Spot(attend, cache, score, norm, feed, expert))
    return spots


def _device(layer: int, stem: str, home: int, rules: Sequence[tuple[Pattern[str], int]]) -> int:
    """Where a tensor of a layer lies: where an override says, else with its layer."""
    found = override_of(f"blk.{layer}.{stem}.weight", rules)
    return home if found is None else found


def _mixers(geo: Geometry) -> list[str]:
    """The matrix of every layer that says where its attention or recurrence is."""
    return [next((stem for stem in MIXERS if stem in shapes), "attn_q") for shapes in geo.shapes]


def strays(geo: Geometry, launch: Launch, own: Owners) -> bool:
    """Whether some attention is computed on another device than its layer's; only a recurrent layer that follows or a
    cache on the host can cause that."""
    if not (launch.no_kv_offload or any(x.recurrent for x in geo.layers)):
        return False
    spots = spots_of(geo, launch, own)
    return any(geo.layers[i].cached and spots[i].score != own.layers[i] for i in range(geo.trunk))


def held_caches(geo: Geometry, number: int, context: Context, spots: Sequence[Spot], graph: Graph) -> tuple[int, ...]:
    """K and V of a layer as its attention finds them: with their owner, or on the host. Layers without a cache of
    their own read the last one of their kind, and each makes its own copy when that lies on another device."""
    layer = geo.layers[number]
    owner = cache_owner(geo, number)
    if owner is None:
        return ()
    device = spots[owner].cache
    if device == spots[number].score:
        return ()
    times = (window_cells(geo, context) if layer.sliding else context.ctx_seq) * context.streams
    source = geo.layers[owner]
    size_k, size_v = row_bytes(source.k, context.type_k, geo.tables), row_bytes(source.v, context.type_v, geo.tables)
    sizes = size_k, size_k if geo.mla else size_v  # latent attention reads one row as K and as V: two views, two copies
    return tuple(graph.outside(times * size, device) for size in sizes if size)


def cache_owner(geo: Geometry, number: int) -> int | None:
    """The layer whose cache this one reads."""
    layer = geo.layers[number]
    return number if layer.cached else geo.once(_last_owners).get(layer.sliding)


def _last_owners(geo: Geometry) -> dict[bool, int]:
    """The last layer with a cache among those that slide, and among those that do not."""
    return {layer.sliding: layer.number for layer in geo.layers if layer.cached}


def gate_device(geo: Geometry, number: int, spots: Sequence[Spot]) -> int:
    """Where a recurrent layer's gate is computed: the engine fetches the next layer's state first, so on its device."""
    following = state_next(geo, number)
    return spots[number if following is None or not geo.layers[number].recurrent else following].attend


def state_next(geo: Geometry, number: int) -> int | None:
    """The recurrent layer whose state is fetched in the middle of this one: the next, or this one when it attends
    too; none where experts or another attention come in between."""
    return geo.once(_next_states)[number]


def _next_states(geo: Geometry) -> list[int | None]:
    return [_state_next(geo, number) for number in range(len(geo.layers))]


def _state_next(geo: Geometry, number: int) -> int | None:
    layer = geo.layers[number]
    if layer.recurrent and layer.cached:
        return number
    if "ffn_gate_inp" in geo.shapes[number]:
        return None
    for i in range(number + 1, geo.trunk):
        if geo.layers[i].recurrent:
            return i if geo.row.state != "ssm" or "ssm_in" in geo.shapes[i] else None
        if geo.layers[i].cached or "ffn_gate_inp" in geo.shapes[i]:
            return None
    return None


def sampled(geo: Geometry, spots: Sequence[Spot]) -> list[int]:
    """Layers that matter: each kind of step from one layer to the next at most twice; always the last one, those before
    a change of device, those that read what another layer holds on another device, and the one before them."""
    chosen: list[int] = []
    seen: dict[object, int] = {}
    before: object = None
    last = geo.trunk - 1
    for i in range(geo.trunk):
        layer = geo.layers[i]
        kind = (geo.kinds[i], layer.sliding, layer.recurrent, layer.cached, spots[i], gate_device(geo, i, spots))
        step = (before, kind)
        seen[step] = seen.get(step, 0) + 1
        if (
            seen[step] <= 2
            or i == last
            or spots[i] != spots[i + 1]
            or _reads(geo, i, spots)
            or _reads(geo, i + 1, spots)
        ):
            chosen.append(i)
        before = kind
    return chosen


def _reads(geo: Geometry, number: int, spots: Sequence[Spot]) -> bool:
    """Whether a layer copies what another one holds, its cache or the embeddings per layer, from another device."""
    if geo.per_layer and spots[number].attend != spots[0].attend:
        return True
    owner = None if geo.layers[number].cached else cache_owner(geo, number)
    return owner is not None and spots[owner].cache != spots[number].score
