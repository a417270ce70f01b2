"""A compute graph reduced to what its buffers cost: sizes, uses, in-place chances; and ggml's allocator run over it.

The engine plans every activation with a best-fit allocator before it computes anything (``ggml_gallocr``). Its peak is
the compute buffer. Replaying the same algorithm on the same sequence of tensors gives the same bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

ALIGNMENT = 64  # bytes; TENSOR_ALIGNMENT of the CPU buffer, and no device pads less


class Graph:
    """Tensors, told by their numbers, and the ``order`` they are planned in. ``copies``: how many copies the scheduler
    keeps of what crosses devices (4 with pipeline parallelism, where they are never freed). ``device``: where the next
    tensors are computed. ``kept``: a tensor of the first layer that all others read; ``fetched``: the next layer's
    state, where a layer fetches it early.

    By tensor: ``sizes``: bytes (0 = nothing of its own: a write into a cache); ``devices``: where it is computed;
    ``sources``: tensors it reads; ``reuse``: sources whose buffer it may take over; ``ready``: there before the graph
    runs; ``pinned``: never freed; ``foreign``: held by another buffer (a cache). Lists side by side: a graph has
    hundreds of tensors, and a plan builds dozens of graphs."""

    def __init__(self, copies: int = 1) -> None:
        self.sizes: list[int] = []
        self.devices: list[int] = []
        self.sources: list[tuple[int, ...]] = []
        self.reuse: list[tuple[int, ...]] = []
        self.ready: set[int] = set()
        self.pinned: set[int] = set()
        self.foreign: set[int] = set()
        self.order: list[int] = []
        self.copies = copies
        self.device = -1
        self.kept: int | None = None
        self.fetched: int | None = None
        self._copied: dict[tuple[int, int], int] = {}
        self._split = 0
        self._running = -2

    def given(self, size: int) -> int:
        """An input of the graph, held by the host from the start; pipelining keeps all its copies."""
        found = self._ready(_aligned(size) * self.copies, -1)
        if self.copies > 1:
            self.pinned.add(found)
        return found

    def constant(self, size: int, device: int) -> int:
        """A tensor of the graph itself, there from the start on its reader's device."""
        return self._ready(_aligned(size), device)

    def outside(self, size: int, device: int) -> int:
        """A tensor that another buffer of this device holds: it costs only where it has to be copied."""
        found = self._append(_aligned(size), device)
        self.foreign.add(found)
        return found

    def op(self, size: int, *sources: int, reuse: Sequence[int] = (), pinned: bool = False) -> int:
        """A computed tensor on the current device; sources on other devices are copied here first."""
        here = self.device
        if here != self._running:  # a new split: what it needs from elsewhere is copied before its first tensor
            self._split, self._running = len(self.order), here
        devices, local = self.devices, sources
        for source in sources:
            if devices[source] != here:
                local = tuple([self._local(each, here) for each in sources])
                reuse = [local[sources.index(each)] for each in reuse]
                break
        found = self._append(-(-size // ALIGNMENT) * ALIGNMENT, here, local, tuple(reuse))
        if pinned:
            self.pinned.add(found)
        return found

    def inplace(self, source: int, *others: int) -> int:
        """An element-wise result of the same shape: takes over its first source's buffer when nothing else reads it."""
        return self.op(self.sizes[source], source, *others, reuse=(source,))

    def add(self, left: int, right: int) -> int:
        """A sum of two tensors of one shape: takes over either buffer, the left one first."""
        return self.op(self.sizes[left], left, right, reuse=(left, right))

    def read(self, *sources: int) -> None:
        """A consumer that leaves nothing behind: writing rows into a cache."""
        self.op(0, *sources)

    def size(self, tensor: int) -> int:
        """Bytes of a tensor."""
        return self.sizes[tensor]

    def _ready(self, size: int, device: int) -> int:
        found = self._append(size, device)
        self.ready.add(found)
        return found

    def _append(self, size: int, device: int, sources: tuple[int, ...] = (), reuse: tuple[int, ...] = ()) -> int:
        found = len(self.sizes)
        self.sizes.append(size)
        self.devices.append(device)
        self.sources.append(sources)
        self.reuse.append(reuse)
        self.order.append(found)
        return found

    def _local(self, source: int, device: int) -> int:
        """The tensor on that device: itself, or the copy that is made of it once."""
        if self.devices[source] == device or not self.sizes[source]:
            return source
        known = self._copied.get((source, device))
        if known is None:
            known = self._copied[source, device] = self._copy(source, device)
        return known

    def _copy(self, source: int, device: int) -> int:
        """A copy, planned before the first tensor of this split; pipelining keeps all of its own."""
        size = self.sizes[source]
        found = self._append(size if source in self.ready else size * self.copies, device, (source,))
        self.order.insert(self._split, self.order.pop())
        self._split += 1
        if self.copies > 1:
            self.ready.add(found)
            self.pinned.add(found)
        return found


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class Arena:
    """One device's buffer: free blocks by offset, the last one endless. ``peak``: bytes it had to reach."""

    def __init__(self) -> None:
        self.offsets = [0]
        self.sizes = [1 << 62]
        self.peak = 0

    def take(self, size: int) -> int:
        """Offset of the best-fitting free block; of the end when none fits (``ggml_dyn_tallocr_alloc``)."""
        sizes = self.sizes
        best = last = len(sizes) - 1
        best_size = sizes[last]
        for i in range(last):
            if size <= sizes[i] <= best_size:
                best, best_size = i, sizes[i]
        offset = self.offsets[best]
        if sizes[best] == size:
            del self.offsets[best], sizes[best]
        else:
            self.offsets[best] += size
            sizes[best] -= size
        self.peak = max(self.peak, offset + size)
        return offset

    def give(self, offset: int, size: int) -> None:
        """Return a block, merged with its free neighbours (``ggml_dyn_tallocr_free_bytes``)."""
        offsets, sizes = self.offsets, self.sizes
        at = bisect_left(offsets, offset)
        if at and offsets[at - 1] + sizes[at - 1] == offset:
            at -= 1
            sizes[at] += size
        else:
            offsets.insert(at, offset)
            sizes.insert(at, size)
        if at + 1 < len(sizes) and offsets[at] + sizes[at] == offsets[at + 1]:
            sizes[at] += sizes[at + 1]
            del offsets[at + 1], sizes[at + 1]


def peaks(graph: Graph) -> dict[int, int]:
    """Bytes of the compute buffer per device (``ggml_gallocr_alloc_graph_impl``): inputs first, then every tensor in
    order, each freed after its last reader."""
    sizes, devices, reuse, pinned = graph.sizes, graph.devices, graph.reuse, graph.pinned
    arenas = {device: Arena() for device in {*devices}}
    uses = _uses(graph)
    places = [-1] * len(sizes)
    for i in graph.order:
        if i in graph.ready and sizes[i]:
            places[i] = arenas[devices[i]].take(sizes[i])
    elsewhere = graph.ready | graph.foreign
    for i in graph.order:
        if (size := sizes[i]) and i not in elsewhere:
            for source in reuse[i]:  # the buffer of a source that it may overwrite
                if uses[source] == 1 and places[source] >= 0 and sizes[source] == size and source not in pinned:
                    places[i], places[source] = places[source], -1
                    break
            else:
                places[i] = arenas[devices[i]].take(size)
        for source in graph.sources[i]:
            uses[source] -= 1
            if not uses[source] and places[source] >= 0 and source not in pinned:
                arenas[devices[source]].give(places[source], sizes[source])
                places[source] = -1
    return {device: arena.peak for device, arena in arenas.items() if arena.peak}


def _uses(graph: Graph) -> list[int]:
    """How often each tensor is read."""
    uses = [0] * len(graph.sizes)
    for sources in graph.sources:
        for source in sources:
            uses[source] += 1
    return uses
