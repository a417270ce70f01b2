"""Recurrent states as the last batch left them, and when a graph fetches them.

The engine puts a state's rows into the graph when it builds the layer, but most of a layer only when something needs
its result: a write into a cache, attention, the sum of routed experts. So the rows of the next recurrent layer come
before the rest of the layer at hand.
"""

from __future__ import annotations

from collections.abc import Sequence

from gezel_rules.engines.llama_cpp.memory.blocks import Pass, Shapes, State
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.graph import Graph

EARLY = ("ssm_in", "shortconv.in_proj", "time_mix_key")
"""Matrices of the layers that fetch before their norm; delta nets fetch after it."""


def fetch(graph: Graph, state: State) -> tuple[int, ...]:
    """The rows of a state, unless they have been fetched: cleared where they are not valid, read, and those of the
    other slots moved."""
    known = graph.states.get(state.number)
    if known is None:
        known = graph.states[state.number] = tuple([rows(graph, state, size) for size in state.sizes])
    return known


def rows(graph: Graph, state: State, size: int) -> int:
    """Rows of a state."""
    graph.read(home=state.store)
    fetched = graph.op(size, state.slots[0])
    graph.read(fetched, home=state.store)
    return fetched


def look_ahead(at: Pass, routed: bool = False) -> None:
    """What comes before the rest of a layer: after its mixing the rows of the residual that go on, if sums begin with
    them; after its mixing, or its routed experts if it has such, the state of the next recurrent layer."""
    graph = at.graph
    if at.picked is not None and not routed:
        stream, rows = at.picked
        graph.picked = graph.op(graph.size(stream) // at.rows * rows, stream, at.picks)
    if at.ahead is not None and routed == ("ffn_gate_inp" in at.shapes):
        fetch(graph, at.ahead)


def early(shapes: Shapes) -> bool:
    """Whether a recurrent layer fetches its state before its norm."""
    return any(stem in shapes for stem in EARLY)


def next_early(geo: Geometry, following: Sequence[int]) -> int | None:
    """The recurrent layer whose state is fetched in the middle of the one before these: the next, where only dense
    feed-forward comes in between."""
    for i in following:
        layer, shapes = geo.layers[i], geo.shapes[i]
        if layer.cached or (layer.recurrent and not early(shapes)):
            return None
        if layer.recurrent:
            return i
        if "ffn_gate_inp" in shapes:
            return None
    return None
