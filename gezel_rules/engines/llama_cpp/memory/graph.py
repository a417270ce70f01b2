"""A compute graph reduced to what its buffers cost: sizes, uses, in-place chances; and ggml's allocator run over it.

The engine plans every activation with a best-fit allocator before it computes anything (``ggml_gallocr``). Its peak is
the compute buffer. Replaying the same algorithm on the same sequence of tensors gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from gezel_rules.record import NamedTuple

ALIGNMENT = 64  # bytes; TENSOR_ALIGNMENT of the CPU buffer, and no device pads less


class Node(NamedTuple):
    """One tensor. ``size``: bytes (0 = nothing of its own: a write into a cache); ``sources``: nodes it reads;
    ``reuse``: sources whose buffer it may take over; ``device``: where it is computed; ``given``: there before the
    graph runs; ``pinned``: never freed; ``outside``: held by another buffer (a cache)."""

    size: int
    sources: tuple[int, ...]
    reuse: tuple[int, ...]
    device: int
    given: bool = False
    pinned: bool = False
    outside: bool = False


class Graph:
    """Nodes, and the order they are planned in. ``copies``: how many copies the scheduler keeps of what crosses devices
    (4 with pipeline parallelism, where they are never freed). ``device``: where the next tensors are computed.
    ``kept``: a tensor of the first layer that all others read; ``fetched``: the next layer's state, where a layer
    fetches it early."""

    def __init__(self, copies: int = 1) -> None:
        self.nodes: list[Node] = []
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
        return self._append(Node(_aligned(size) * self.copies, (), (), -1, True, self.copies > 1))

    def constant(self, size: int, device: int) -> int:
        """A tensor of the graph itself, there from the start on its reader's device."""
        return self._append(Node(_aligned(size), (), (), device, True))

    def outside(self, size: int, device: int) -> int:
        """A tensor that another buffer of this device holds: it costs only where it has to be copied."""
        return self._append(Node(_aligned(size), (), (), device, outside=True))

    def op(self, size: int, *sources: int, reuse: Sequence[int] = (), pinned: bool = False) -> int:
        """A computed tensor on the current device; sources on other devices are copied here first."""
        here = self.device
        if here != self._running:  # a new split: what it needs from elsewhere is copied before its first tensor
            self._split, self._running = len(self.order), here
        local = tuple([self._local(s, here) for s in sources])
        may = tuple([local[sources.index(s)] for s in reuse]) if reuse else ()
        return self._append(Node(_aligned(size), local, may, here, pinned=pinned))

    def inplace(self, source: int, *others: int) -> int:
        """An element-wise result of the same shape: takes over its first source's buffer when nothing else reads it."""
        return self.op(self.size(source), source, *others, reuse=(source,))

    def add(self, left: int, right: int) -> int:
        """A sum of two tensors of one shape: takes over either buffer, the left one first."""
        return self.op(self.size(left), left, right, reuse=(left, right))

    def read(self, *sources: int) -> None:
        """A consumer that leaves nothing behind: writing rows into a cache."""
        self.op(0, *sources)

    def size(self, node: int) -> int:
        """Bytes of a tensor."""
        return self.nodes[node].size

    def _append(self, node: Node) -> int:
        self.nodes.append(node)
        self.order.append(len(self.nodes) - 1)
        return len(self.nodes) - 1

    def _local(self, source: int, device: int) -> int:
        node = self.nodes[source]
        if node.device == device or not node.size:
            return source
        known = self._copied.get((source, device))
        if known is None:
            size = node.size if node.given else node.size * self.copies
            self.nodes.append(Node(size, (source,), (), device, self.copies > 1, self.copies > 1))
            known = self._copied[source, device] = len(self.nodes) - 1
            self.order.insert(self._split, known)
            self._split += 1
        return known


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
        best, best_size = len(sizes) - 1, 1 << 63
        for i in range(len(sizes) - 1):
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
        at = 0
        while offsets[at] < offset:
            at += 1
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
    """Bytes of the compute buffer per device (``ggml_gallocr_alloc_graph_impl``): inputs first, then every node in
    order, each freed after its last reader."""
    nodes = graph.nodes
    arenas: dict[int, Arena] = {}
    uses = [0] * len(nodes)
    for node in nodes:
        for source in node.sources:
            uses[source] += 1
    places = [-1] * len(nodes)
    for i in graph.order:
        node = nodes[i]
        if node.given and node.size:
            places[i] = arenas.setdefault(node.device, Arena()).take(node.size)
    for i in graph.order:
        node = nodes[i]
        if node.size and not (node.given or node.outside):
            places[i] = _place(node, nodes, uses, places, arenas)
        for source in node.sources:
            uses[source] -= 1
            held = nodes[source]
            if uses[source] == 0 and places[source] >= 0 and not held.pinned:
                arenas[held.device].give(places[source], held.size)
                places[source] = -1
    return {device: arena.peak for device, arena in arenas.items()}


def _place(node: Node, nodes: Sequence[Node], uses: Sequence[int], places: list[int], arenas: dict[int, Arena]) -> int:
    """The buffer of a source this node may overwrite, else a new one."""
    for source in node.reuse:
        held = nodes[source]
        if uses[source] == 1 and places[source] >= 0 and held.size == node.size and not held.pinned:
            offset, places[source] = places[source], -1
            return offset
    return arenas.setdefault(node.device, Arena()).take(node.size)
