"""A compute graph reduced to what its buffers cost: sizes, uses, in-place chances, and where a tensor has to be.

``schedule`` finds the device of the rest, as the engine's scheduler does; ``allocator`` the bytes it all takes.
"""

from __future__ import annotations

from gezel_rules.record import NamedTuple

PADDING = 31  # bytes at most, to whole 32s: TENSOR_ALIGNMENT of the CPU's buffer, and no device pads less


class Stretch(NamedTuple):
    """The tensors of one layer, from ``first`` up to ``end``: its ``number``, the residual ``before`` and ``after``
    it."""

    number: int
    first: int
    end: int
    before: int
    after: int


class Graph:
    """Tensors, told by their numbers, in the order in which they are computed. ``copies``: how many copies the
    scheduler keeps of what crosses devices (4 with pipeline parallelism, where they are never freed). ``kept``: a
    tensor of the first layer that all others read; ``picked``: rows of the residual that go on, picked early;
    ``states``: states fetched before the layer that needs them; ``attended``: attention by layer.

    By tensor: ``sizes``: bytes (a tensor may be empty and still have a place); ``sources``: tensors it reads;
    ``reuse``: sources whose buffer it may take over, if any; ``homes``: the device of its weight or of the cache it
    writes, if it does not follow its neighbours; ``ready``: there before the graph runs; ``pinned``: never freed;
    ``foreign``: held by another buffer (a cache); ``sinks``: writes into a cache, which have no place; ``roots``: what
    a view is part of, since it is no tensor of its own. Lists side by side: a graph has hundreds of tensors, and a plan
    builds dozens of graphs."""

    def __init__(self, copies: int = 1) -> None:
        self.sizes: list[int] = []
        self.sources: list[tuple[int, ...]] = []
        self.reuse: dict[int, tuple[int, ...]] = {}
        self.homes: dict[int, int] = {}
        self.ready: set[int] = set()
        self.pinned: set[int] = set()
        self.foreign: set[int] = set()
        self.sinks: set[int] = set()
        self.roots: dict[int, int] = {}
        self.copies = copies
        self.kept: int | None = None
        self.picked: int | None = None
        self.states: dict[int, tuple[int, ...]] = {}
        self.attended: dict[int, int] = {}

    def given(self, size: int) -> int:
        """An input of the graph, held by the host from the start; pipelining keeps all its copies."""
        found = self.constant(size, -1)
        if self.copies > 1:
            self.pinned.add(found)
        return found

    def constant(self, size: int, home: int) -> int:
        """A tensor of the graph itself, there from the start on its reader's device."""
        found = self._append(size, (), home)
        self.ready.add(found)
        return found

    def outside(self, size: int, device: int) -> int:
        """A tensor that another buffer of this device holds: it costs only where it has to be copied."""
        found = self._append(size, (), device)
        self.foreign.add(found)
        return found

    def view(self, source: int, size: int | None = None) -> int:
        """A part of a tensor, from its first byte used to its last: costs only where that has to be copied."""
        found = self._append(self.sizes[source] if size is None else max(0, size), (), None)
        self.roots[found] = self.roots.get(source, source)
        return found

    def op(
        self, size: int, *sources: int, reuse: tuple[int, ...] = (), pinned: bool = False, home: int | None = None
    ) -> int:
        """A computed tensor; ``home``: the device of the weight it multiplies, if it has one."""
        found = self._append(size, sources, home)
        if reuse:
            self.reuse[found] = reuse
        if pinned:
            self.pinned.add(found)
        return found

    def inplace(self, source: int, *others: int, home: int | None = None) -> int:
        """An element-wise result of the same shape: takes over its first source's buffer when nothing else reads it."""
        found = self._append(self.sizes[source], (source, *others), home)
        self.reuse[found] = (source,)
        return found

    def add(self, left: int, right: int) -> int:
        """A sum of two tensors of one shape: takes over either buffer, the left one first."""
        found = self._append(self.sizes[left], (left, right), None)
        self.reuse[found] = left, right
        return found

    def read(self, *sources: int, home: int | None = None) -> None:
        """A consumer that leaves nothing behind: writing rows into the cache of a device."""
        self.sinks.add(self._append(0, sources, home))

    def repeat(self, made: Stretch, number: int, stream: int) -> int:
        """The tensors of a layer once more, for another one that reads another residual. All else that they read is
        their own, or was there before any layer."""
        first, before = made.first, made.before
        span, shift = range(first, made.end), len(self.sizes) - first
        own = {x: x + shift for x in span} | {before: stream}
        self.sizes += self.sizes[first : made.end]
        self.sources += [tuple([own.get(x, x) for x in some]) for some in self.sources[first : made.end]]
        self.reuse |= {own[x]: tuple([own.get(y, y) for y in self.reuse[x]]) for x in span if x in self.reuse}
        self.homes |= {own[x]: self.homes[x] for x in span if x in self.homes}
        self.roots |= {own[x]: own.get(self.roots[x], self.roots[x]) for x in span if x in self.roots}
        for kind in (self.foreign, self.sinks):
            kind.update([own[x] for x in span if x in kind])
        if made.number in self.attended:
            self.attended[number] = own[self.attended[made.number]]
        return own.get(made.after, made.after)

    def size(self, tensor: int) -> int:
        """Bytes of a tensor."""
        return self.sizes[tensor]

    def _append(self, size: int, sources: tuple[int, ...], home: int | None) -> int:
        sizes = self.sizes
        found = len(sizes)
        sizes.append(size + PADDING & ~PADDING)
        self.sources.append(sources)
        if home is not None:
            self.homes[found] = home
        return found
