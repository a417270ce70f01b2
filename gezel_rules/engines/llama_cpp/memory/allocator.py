"""The engine's allocator of activations (``ggml_gallocr``), run over a scheduled graph.

It plans every tensor with a best fit before anything is computed. Its peak is the compute buffer. Replaying the same
algorithm on the same sequence of tensors gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gezel_rules.engines.llama_cpp.memory.schedule import Schedule


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
        best_size = 1 << 63
        for i, room in enumerate(sizes):
            if size <= room <= best_size and i < last:
                best, best_size = i, room
        offset = self.offsets[best]
        if sizes[best] == size:
            del self.offsets[best], sizes[best]
        else:
            self.offsets[best] += size
            sizes[best] -= size
        if offset + size > self.peak:
            self.peak = offset + size
        return offset

    def give(self, offset: int, size: int) -> None:
        """Return a block, merged with a free neighbour (``ggml_dyn_tallocr_free_bytes``). Empty blocks may put the list
        out of order, so it is gone through from the front, as there."""
        offsets, sizes = self.offsets, self.sizes
        end, place = offset + size, len(offsets)
        for at, begin in enumerate(offsets):
            if begin + sizes[at] == offset:
                sizes[at] += size
                if at + 1 < len(offsets) and offsets[at + 1] == end:
                    sizes[at] += sizes.pop(at + 1)
                    del offsets[at + 1]
                return
            if begin == end:
                offsets[at] = offset
                sizes[at] += size
                return
            if begin >= offset and at < place:
                place = at
        offsets.insert(place, offset)
        sizes.insert(place, size)


def peaks(plan: Schedule) -> dict[int, int]:
    """Bytes of the compute buffer per device (``ggml_gallocr_alloc_graph_impl``): inputs first (what stays to the end
    before all others), then every tensor in order, each freed after its last reader."""
    sizes, devices, all_sources, reuse, ready, pinned, unplanned, order = plan
    arenas = {device: Arena() for device in {*devices}}
    uses, places, held = _uses(all_sources, pinned), [-1] * len(sizes), [arenas[device] for device in devices]
    given = [i for i in order if i in ready and sizes[i]]
    for i in sorted(given, key=lambda i: i not in pinned):
        places[i] = held[i].take(sizes[i])
    for i in order:
        if i not in unplanned:
            size = sizes[i]
            for source in reuse.get(i, ()):  # the buffer of a source that it may overwrite
                if uses[source] == 1 and places[source] >= 0 and sizes[source] == size:
                    places[i], places[source] = places[source], -1
                    break
            else:
                places[i] = held[i].take(size)
        for source in all_sources[i]:
            uses[source] -= 1
            if not uses[source] and places[source] >= 0:
                held[source].give(places[source], sizes[source])
                places[source] = -1
    return {device: arena.peak for device, arena in arenas.items()}


def _uses(all_sources: Sequence[Sequence[int]], pinned: Collection[int]) -> list[int]:
    """How often each tensor is read; what is never freed has two readers more, who never come."""
    uses = [0] * len(all_sources)
    for i in pinned:
        uses[i] = 2
    for sources in all_sources:
        for source in sources:
            uses[source] += 1
    return uses
