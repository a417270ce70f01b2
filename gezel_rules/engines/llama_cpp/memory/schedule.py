"""On which device each tensor of a graph is computed, and what is copied for that (``ggml_backend_sched``).

A tensor with a weight goes where the weight lies, a write where its cache lies; what is left follows the tensors around
it, devices before the host. A run of tensors on one device is a split: what it reads from elsewhere is copied before
its first tensor, every view by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from gezel_rules.engines.llama_cpp.memory.graph import Graph
from gezel_rules.engines.llama_cpp.memory.offload import HOST
from gezel_rules.record import NamedTuple


class Schedule(NamedTuple):
    """Tensors with their devices, copies after all others (see ``Graph``), and the ``order`` they are planned in.
    ``placeless``: those without a place in these buffers."""

    sizes: Sequence[int]
    devices: Sequence[int]
    sources: Sequence[tuple[int, ...]]
    reuse: Sequence[tuple[int, ...]]
    ready: Collection[int]
    pinned: Collection[int]
    placeless: Collection[int]
    order: Sequence[int]


def devices_of(graph: Graph) -> list[int]:
    """The device of every tensor."""
    homes, roots = graph.homes.copy(), graph.roots
    still = graph.ready | graph.foreign | roots.keys()
    computed = [i for i in range(len(homes)) if i not in still]
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

    def localise(self, tensor: int, device: int) -> None:
        """Let a tensor on this device read what is there: a view as what it is part of, what lies elsewhere as a copy.
        A view is written over only as a copy."""
        sources, roots = self.graph.sources[tensor], self.graph.roots
        local = tuple([self._local(source, device) for source in sources])
        self.sources[tensor] = local
        if self.reuse[tensor]:
            may = [x for x in self.reuse[tensor] if x not in roots or self.devices[x] != device]
            self.reuse[tensor] = tuple([local[sources.index(x)] for x in may])

    def _local(self, source: int, device: int) -> int:
        root = self.graph.roots.get(source, source)
        if self.devices[source] == device:
            return root
        known = self._known.get((source, device))
        if known is None:
            known = self._known[source, device] = len(self.sizes)
            self.sizes.append(self.graph.sizes[source] * self.graph.copies)
            self.sources.append((root,))
            self.reuse.append(())
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
        placeless = graph.foreign | graph.sinks
        return Schedule(self.sizes, self.devices, self.sources, self.reuse, ready, pinned, placeless, self.order)
