"""A compute graph reduced to what its buffers cost: sizes, uses, in-place chances; and ggml's allocator run over it.

The engine plans every activation with a best-fit allocator before it computes anything (``ggml_gallocr``). Its peak is
the compute buffer. Replaying the same algorithm on the same sequence of tensors gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ALIGNMENT = 64  # bytes; TENSOR_ALIGNMENT of the CPU buffer, and no device pads less


class Node(NamedTuple):
    """One tensor. ``size``: bytes (0 = lives elsewhere: a view or a cache); ``sources``: nodes it reads;
    ``reuse``: sources whose buffer it may take over; ``device``: where it is computed; ``pinned``: never freed."""

    size: int
    sources: tuple[int, ...]
    reuse: tuple[int, ...]
    device: int
    given: bool
    pinned: bool


class Graph:
    """Nodes in execution order. ``copies``: how many copies the scheduler keeps of what crosses devices (4 with
    pipeline parallelism, where they are never freed)."""

    def __init__(self, copies: int = 1) -> None:
        self.nodes: list[Node] = []
        self.copies = copies
        self.device = -1
        self._copied: dict[tuple[int, int], int] = {}

    def given(self, size: int) -> int:
        """An input of the graph, held by the host from the start; pipelining keeps all its copies."""
        self.nodes.append(Node(_aligned(size) * self.copies, (), (), -1, True, self.copies > 1))
        return len(self.nodes) - 1

    def op(self, size: int, *sources: int, reuse: Sequence[int] = (), pinned: bool = False) -> int:
        """A computed tensor on the current device; sources on other devices are copied here first."""
        here = self.device
        local = tuple(self._local(s, here) for s in sources)
        may = tuple(local[sources.index(s)] for s in reuse)
        self.nodes.append(Node(_aligned(size), local, may, here, False, pinned))
        return len(self.nodes) - 1

    def inplace(self, source: int, *others: int) -> int:
        """An element-wise result of the same shape: takes over its first source's buffer when nothing else reads it."""
        return self.op(self.nodes[source].size, source, *others, reuse=(source,))

    def add(self, left: int, right: int) -> int:
        """A sum of two tensors of one shape: takes over either buffer, the left one first."""
        return self.op(self.nodes[left].size, left, right, reuse=(left, right))

    def read(self, *sources: int) -> None:
        """A consumer that leaves nothing behind: writing rows into a cache."""
        self.op(0, *sources)

    def _local(self, source: int, device: int) -> int:
        node = self.nodes[source]
        if node.device == device or not node.size:
            return source
        known = self._copied.get((source, device))
        if known is None:
            size = node.size if node.given else node.size * self.copies
            self.nodes.append(Node(size, (source,), (), device, self.copies > 1, self.copies > 1))
            known = self._copied[source, device] = len(self.nodes) - 1
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
    for i, node in enumerate(nodes):
        if node.given and node.size:
            places[i] = arenas.setdefault(node.device, Arena()).take(node.size)
    for i, node in enumerate(nodes):
        if not node.given and node.size:
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
