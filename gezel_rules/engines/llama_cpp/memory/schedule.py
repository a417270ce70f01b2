"""On which device each tensor of a graph is computed, and what is copied for that (``ggml_backend_sched``).

A tensor with a weight goes where the weight lies, a write where its cache lies; what is left follows the tensors around
it, devices before the host. A run of tensors on one device is a split: what it reads from elsewhere is copied before
its first tensor, every view by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from gezel_rules.engines.llama_cpp.memory.graph import Graph
from gezel_rules.engines.llama_cpp.memory.offload import HOST
from gezel_rules.record import NamedTuple


class Schedule(NamedTuple):
    """Tensors with their devices, copies after all others (see ``Graph``), and the ``order`` they are planned in.
    ``unplanned``: those there from the start, and those without a place in these buffers."""

    sizes: Sequence[int]
    devices: Sequence[int]
    sources: Sequence[tuple[int, ...]]
    reuse: Mapping[int, tuple[int, ...]]
    ready: Collection[int]
    pinned: Collection[int]
    unplanned: Collection[int]
    order: Sequence[int]


def devices_of(graph: Graph) -> list[int]:
    """The device of every tensor."""
    roots, tensors = graph.roots, range(len(graph.sizes))
    homes = [*map(graph.homes.get, tensors)]
    still = graph.ready | graph.foreign | roots.keys()
    computed = [i for i in tensors if i not in still]
    for host in (False, True):
        _spread(homes, computed, host)
        _spread(homes, reversed(computed), host)
    for view, root in roots.items():
        homes[view] = homes[root]
    return [HOST if home is None else home for home in homes]


def _spread(homes: list[int | None], order: Iterable[int], host: bool) -> None:
    """Give what has no device the one before it; the host's only when told to."""
    current: int | None = None
    for i in order:
        home = homes[i]
        if home is None:
            homes[i] = current
        else:
            current = home if host or home != HOST else None


def scheduled(graph: Graph, devices: list[int]) -> Schedule:
    """The graph with all its copies."""
    found, roots = _Copies(graph, devices), graph.roots
    still, order = graph.ready | graph.foreign, found.order
    running: int | None = None
    for i, sources in enumerate(graph.sources):
        if i in roots:
            continue
        if i not in still:
            here = devices[i]
            if here != running:
                found.split, running = len(order), here
            for source in sources:
                if source in roots or devices[source] != here:
                    found.localise(i, here)
                    break
        order.append(i)
    return found.schedule()


class _Copies:
    """A graph as its copies change it. ``split``: the place in the order where the current split begins."""

    def __init__(self, graph: Graph, devices: list[int]) -> None:
        self.graph, self.devices = graph, devices
        self.sizes, self.sources, self.reuse = graph.sizes.copy(), graph.sources.copy(), graph.reuse.copy()
        self.order: list[int] = []
        self.split = 0
        self._known: dict[tuple[int, int], int] = {}

    def localise(self, tensor: int, here: int) -> None:
        """Let a tensor on this device read what is there: a view as what it is part of, what lies elsewhere as a copy.
        A view is written over only as a copy."""
        sources, devices, root = self.graph.sources[tensor], self.devices, self.graph.roots.get
        local = [root(x, x) if devices[x] == here else self._copy(x, here) for x in sources]
        self.sources[tensor] = tuple(local)
        if may := self.reuse.get(tensor):
            over = [x for x in may if devices[x] != here or x not in self.graph.roots]
            self.reuse[tensor] = tuple([local[sources.index(x)] for x in over])

    def _copy(self, source: int, device: int) -> int:
        """The copy that is made once, before the first tensor of the split at hand."""
        known = self._known.get((source, device))
        if known is None:
            known = self._known[source, device] = len(self.sizes)
            self.sizes.append(self.graph.sizes[source] * self.graph.copies)
            self.sources.append((self.graph.roots.get(source, source),))
            self.devices.append(device)
            self.order.insert(self.split, known)
            self.split += 1
        return known

    def schedule(self) -> Schedule:
        """What came of it; with several copies they are all there from the start, and stay."""
        graph, ready, pinned = self.graph, self.graph.ready, self.graph.pinned
        if graph.copies > 1:
            for i in ready & pinned:
                self.sizes[i] *= graph.copies
            ready, pinned = ready | set(self._known.values()), pinned | set(self._known.values())
        unplanned = ready | graph.foreign | graph.sinks
        return Schedule(self.sizes, self.devices, self.sources, self.reuse, ready, pinned, unplanned, self.order)
