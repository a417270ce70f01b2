"""Where each part of a layer lies, and which layers tell all the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

from gezel_rules.engines.llama_cpp.memory.fetching import next_early
from gezel_rules.engines.llama_cpp.memory.flags import Context, Launch
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.graph import Graph
from gezel_rules.engines.llama_cpp.memory.kv_cache import row_bytes, window_cells
from gezel_rules.engines.llama_cpp.memory.offload import HOST, Owners, override_of, overrides
from gezel_rules.engines.llama_cpp.memory.weights import EXPERTS, FFN
from gezel_rules.record import NamedTuple

Moved = tuple[tuple[str, int], ...]
"""Weights of a layer that lie elsewhere than the rest, by name, with their device."""


class Spot(NamedTuple):
    """Devices of a layer. ``home``: of its weights; ``elsewhere``: of those an override moves; ``cache``: of its K and
    V or its state."""

    home: int
    elsewhere: Moved
    cache: int


def spots_of(geo: Geometry, launch: Launch, own: Owners) -> tuple[Spot, ...]:
    """The devices of every layer's parts."""
    rules, ffn = overrides(launch), launch.ffn_on_cpu
    first = len(geo.layers) if launch.cpu_moe else launch.n_cpu_moe
    experts, dense = geo.once(_experts), geo.once(_dense)
    at_home = {home: Spot(home, (), HOST if launch.no_kv_offload else home) for home in {*own.layers}}
    spots = []
    for i, home in enumerate(own.layers):
        moved = (experts[i] if i < first else ()) + (dense[i] if i in ffn else ())
        if rules:
            told = [(stem, override_of(f"blk.{i}.{name}", rules)) for stem, name in geo.once(_names)[i]]
            moved = tuple({**dict(moved), **{stem: device for stem, device in told if device is not None}}.items())
        spots.append(at_home[home]._replace(elsewhere=moved) if moved else at_home[home])
    return tuple(spots)


def _names(geo: Geometry) -> list[list[tuple[str, str]]]:
    """The weights of every layer by stem, with their names in the file."""
    return [[(stem, stem if stem.endswith(".bias") else f"{stem}.weight") for stem in shapes] for shapes in geo.shapes]


def _experts(geo: Geometry) -> list[Moved]:
    """What --cpu-moe moves of every layer."""
    return [tuple((x, HOST) for x in shapes if x.removesuffix(".bias") in EXPERTS) for shapes in geo.shapes]


def _dense(geo: Geometry) -> list[Moved]:
    """What the override ``kept_ffn`` moves of every layer."""
    return [tuple((x, HOST) for x in shapes if f".{x}.weight" in FFN) for shapes in geo.shapes]


def held_caches(geo: Geometry, number: int, context: Context, spots: Sequence[Spot], graph: Graph) -> tuple[int, ...]:
    """K and V of a layer as its attention finds them, with their owner. Layers without a cache of their own read the
    last one of their kind, and each makes its own copy when that lies on another device."""
    owner = cache_owner(geo, number)
    if owner is None:
        return ()
    sliding, source = geo.layers[number].sliding, geo.layers[owner]
    times = (window_cells(geo, context) if sliding else context.ctx_seq) * context.streams
    size_k, size_v = row_bytes(source.k, context.type_k, geo.tables), row_bytes(source.v, context.type_v, geo.tables)
    sizes = size_k, size_k if geo.mla else size_v  # latent attention reads one row as K and as V: two views, two copies
    return tuple([graph.outside(times * size, spots[owner].cache) for size in sizes if size])


def cache_owner(geo: Geometry, number: int) -> int | None:
    """The layer whose cache this one reads."""
    layer = geo.layers[number]
    return number if layer.cached else geo.once(_last_owners).get(layer.sliding)


def cache_device(geo: Geometry, number: int, spots: Sequence[Spot]) -> int | None:
    """Where the cache lies that a layer reads."""
    owner = cache_owner(geo, number)
    return None if owner is None else spots[owner].cache


def _last_owners(geo: Geometry) -> dict[bool, int]:
    """The last layer with a cache among those that slide, and among those that do not."""
    return {layer.sliding: layer.number for layer in geo.layers if layer.cached}


REPEATS = 3
Step = tuple[int, int]
"""From one kind of layer to the next."""


def sampled(geo: Geometry, spots: Sequence[Spot]) -> list[int]:
    """Layers that matter: a stretch is left out when all its steps from one layer to the next have come twice and what
    follows it goes on as it began. Never left out: layers around a change of device, and those that read what another
    layer holds on another device, with the one before them."""
    last, far = geo.trunk - 1, _readers(geo, spots)
    steps = _steps(geo, spots)
    kept = {i for i in range(geo.trunk) if i == last or spots[i] != spots[i + 1] or i in far or i + 1 in far}
    chosen, seen, i = list[int](), Counter[Step](), 0
    while i <= last:
        i = _beyond(steps, seen, kept, i)
        chosen.append(i)
        seen[steps[i]] += 1
        i += 1
    return chosen


def _steps(geo: Geometry, spots: Sequence[Spot]) -> list[Step]:
    """The step that leads to each layer: from a kind to a kind, told by its shape, its devices, and those of a state it
    fetches ahead."""
    kinds: dict[object, int] = {}
    found = [-1]
    for (kind, ahead), spot in zip(geo.once(_kinds), spots, strict=False):
        key = kind, spot, None if ahead is None else spots[ahead].cache
        found.append(kinds.setdefault(key, len(kinds)))
    return list(pairwise(found))


def _kinds(geo: Geometry) -> list[tuple[object, int | None]]:
    """What makes a layer of the trunk like another one wherever it lies, and the layer whose state it fetches ahead."""
    layers = geo.layers[: geo.trunk]
    return [
        ((geo.kinds[x.number], x.sliding, x.recurrent, x.cached), next_early(geo, range(x.number + 1, geo.trunk)))
        for x in layers
    ]


def _beyond(steps: Sequence[Step], seen: Counter[Step], kept: Collection[int], start: int) -> int:
    """The last layer that is reached by the same step as this one, all layers before it being such as can be left
    out."""
    found = i = start
    while i not in kept and seen[steps[i]] >= REPEATS:
        i += 1
        if steps[i] == steps[start]:
            found = i
    return found


def _readers(geo: Geometry, spots: Sequence[Spot]) -> set[int]:
    """Layers that copy what another one holds, its cache or the embeddings per layer, from another device."""
    found = set[int]()
    if geo.per_layer:
        found.update(i for i, spot in enumerate(spots) if spot.home != spots[0].home)
    found.update(i for i, owner in geo.once(_borrowers) if spots[owner].cache != spots[i].home)
    return found


def _borrowers(geo: Geometry) -> list[tuple[int, int]]:
    """Layers that read the cache of another one, and that one."""
    found = [(layer.number, cache_owner(geo, layer.number)) for layer in geo.layers if not layer.cached]
    return [(number, owner) for number, owner in found if owner is not None]
