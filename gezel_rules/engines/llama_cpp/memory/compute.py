"""Compute buffers: the model's graph for one full batch, replayed through the engine's own allocator.

Not a fitted formula: layers are rebuilt from their tensors (``blocks``, ``states``) in the engine's order, then
ggml's scheduler (``schedule``) and its best-fit planning (``allocator``) are run over them. Runs of alike layers
are shortened: the allocator repeats itself. Against the engine's own figures (tests/data/truth, tests/data/unseen):
98 % of the rows within 1 % on every device, the rest within 13 %. Weights that a backend copies over from the host
for large batches come on top: ``estimate``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gezel_rules.engines.llama_cpp.memory.allocator import peaks
from gezel_rules.engines.llama_cpp.memory.blocks import FLOAT
from gezel_rules.engines.llama_cpp.memory.embeddings import PerLayer, inject, look_up, stack, stacked_layer
from gezel_rules.engines.llama_cpp.memory.fetching import fetch
from gezel_rules.engines.llama_cpp.memory.flags import Context, Launch
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.given import given_for, indexers_of
from gezel_rules.engines.llama_cpp.memory.graph import Graph, Stretch
from gezel_rules.engines.llama_cpp.memory.layer_pass import layer_pass
from gezel_rules.engines.llama_cpp.memory.offload import HOST, Owners
from gezel_rules.engines.llama_cpp.memory.passes import Forward, alike, pass_of, state_of
from gezel_rules.engines.llama_cpp.memory.schedule import devices_of, scheduled
from gezel_rules.engines.llama_cpp.memory.spots import Spot, cache_device, sampled, spots_of
from gezel_rules.record import NamedTuple

PIPELINE_COPIES = 4  # GGML_SCHED_MAX_COPIES
MOST_REMEMBERED = 256
"""Graphs of one model whose buffers are remembered: a plan builds dozens, many of them for the next machine too."""


class Layout(NamedTuple):
    """What lies where: the parts of every layer (``spots``), the ``output`` side, and how many ``copies`` the scheduler
    keeps of what crosses devices."""

    spots: tuple[Spot, ...]
    output: int
    copies: int


class Replay(NamedTuple):
    """What a graph came to: bytes of its ``buffers`` by device; ``strays``: some attention is computed on another
    device than its layer's."""

    buffers: Mapping[int, int]
    strays: bool


def layout_of(geo: Geometry, launch: Launch, own: Owners) -> Layout:
    """The layout of a launch, the same for all its contexts."""
    return Layout(spots_of(geo, launch, own), own.output, PIPELINE_COPIES if _pipelined(geo, launch, own) else 1)


def compute_parts(geo: Geometry, context: Context, layout: Layout) -> dict[int, int]:
    """Bytes of the compute buffer per device and on the host, for a full batch with every slot busy."""
    return dict(_replay(_main, geo, context, layout).buffers)


def draft_parts(geo: Geometry, context: Context, layout: Layout) -> dict[int, int]:
    """The same for the second context of an MTP head: a token and the trunk's last state in, its own layers, logits."""
    return dict(_replay(_second, geo, context, layout).buffers)


def strays(geo: Geometry, context: Context, launch: Launch, layout: Layout) -> bool:
    """Whether some attention is computed on another device than its layer's; only a recurrent layer that follows, a
    cache on the host or an override can cause that."""
    possible = launch.no_kv_offload or launch.override_tensor or geo.once(_recurs)
    return bool(possible) and _replay(_main, geo, context, layout).strays


def _recurs(geo: Geometry) -> bool:
    return any(x.recurrent for x in geo.layers)


Build = Callable[[Geometry, Context, Layout], Graph]
"""Makes the graph of a forward pass."""


def _replay(build: Build, geo: Geometry, context: Context, layout: Layout) -> Replay:
    """A forward pass; each that differs in what a graph depends on is built once."""
    known, key = geo.once(_remembered), (build, context, layout)
    found = known.get(key)
    if found is None:
        graph = build(geo, context, layout)
        devices = devices_of(graph)
        astray = any(devices[x] != layout.spots[layer].home for layer, x in graph.attended.items())
        if len(known) == MOST_REMEMBERED:
            del known[next(iter(known))]
        found = known[key] = Replay(peaks(scheduled(graph, devices)), astray)
    return found


def _remembered(geo: Geometry) -> dict[tuple[Any, ...], Replay]:
    """Replays of the graphs of this model, by all they depend on."""
    return {}


def _main(geo: Geometry, context: Context, layout: Layout) -> Graph:
    """The model itself."""
    graph, rows = Graph(layout.copies), _rows(context)
    width = geo.embedding * rows * FLOAT
    tokens, between, places = (graph.given(size * FLOAT * rows) for size in (1, 1, 2))
    graph.given(width)  # embeddings instead of tokens: reserved, not read, never freed
    picture = graph.given(width)  # embeddings of images mixed with tokens
    given = given_for(geo, context, graph, rows)
    indexers = indexers_of(geo, context, graph, rows, given.turn, [spot.home for spot in layout.spots])
    run = Forward(geo, context, layout.output, layout.spots, graph, rows, given, indexers)
    _trunk(run, _embed(run, (tokens, between, places, picture), width))
    return graph


def _second(geo: Geometry, context: Context, layout: Layout) -> Graph:
    """The MTP head in its own context."""
    graph, rows, spots = Graph(layout.copies), _rows(context), layout.spots
    width = geo.embedding * rows * FLOAT
    graph.given(FLOAT * rows)
    state = graph.given(width)
    run = Forward(geo, context, layout.output, spots, graph, rows, given_for(geo, context, graph, rows), {})
    home = spots[-1].home
    token = graph.op(width, home=HOST)
    parts = [graph.inplace(graph.inplace(part), home=home) for part in (token, state)]
    stream = graph.op(width, graph.op(2 * width, *parts), home=home)
    for i in range(geo.trunk, len(geo.layers)):
        stream = layer_pass(pass_of(run, i), stream, geo.layers[i], rows)
    _head(run, stream, late=True)
    return graph


def _rows(context: Context) -> int:
    """Tokens of a full batch, the same for every slot."""
    return -(-context.ubatch // context.slots) * context.slots


def _pipelined(geo: Geometry, launch: Launch, own: Owners) -> bool:
    """Several devices, everything offloaded, no overrides, KV with its layers: the scheduler keeps four copies of
    whatever crosses devices (``llama_context``); needs backends with events, which ``launch.pipeline`` can deny."""
    if launch.pipeline is not None:
        return launch.pipeline
    moved = launch.override_tensor or launch.ffn_on_cpu or launch.cpu_moe or launch.n_cpu_moe
    special = moved or launch.no_kv_offload
    return launch.devices > 1 and own.offloaded > len(geo.layers) and not special


def _trunk(run: Forward, stream: int) -> None:
    """The layers that matter, then the head. A layer like one before it is put in as that one was; never as the first,
    which may make what all others read, or the last, which may leave rows out."""
    geo, graph = run.geo, run.graph
    rows_of = look_up(graph, geo.per_layer * geo.trunk, run.rows, stream) if geo.per_layer else None
    if geo.streams > 1:
        stream = stack(graph, stream, geo.streams, run.output)
    chosen, made = sampled(geo, run.spots), dict[object, Stretch]()
    for k, i in enumerate(chosen):
        kind = _kind(run, i) if 0 < k < len(chosen) - 1 else None
        if kind in made:
            stream = graph.repeat(made[kind], i, stream)
            continue
        first, before = len(graph.sizes), stream
        outputs = min(run.rows, run.context.outputs) if i == chosen[-1] else run.rows
        stream = _one(run, i, chosen[k + 1 :], before, outputs, rows_of)
        if kind:
            made[kind] = Stretch(i, first, len(graph.sizes), before, stream)
    _head(run, stream, late=geo.row.late_output)


def _kind(run: Forward, number: int) -> tuple[int, Spot, int | None] | None:
    """What is equal where two layers put the same tensors into this graph, if such can be told."""
    kinds = run.geo.once(alike)
    return (kinds[number], run.spots[number], cache_device(run.geo, number, run.spots)) if kinds else None


def _one(
    run: Forward, number: int, following: Sequence[int], stream: int, outputs: int, rows_of: PerLayer | None
) -> int:
    """One layer, with its own embedding where the model has such."""
    geo = run.geo
    at = pass_of(run, number, following)
    if geo.streams > 1 and rows_of:
        return stacked_layer(at, number, stream, geo.streams, rows_of)
    stream = layer_pass(at, stream, geo.layers[number], outputs)
    if rows_of:
        stream = run.graph.add(stream, inject(at, stream, rows_of))
    return at.weigh("layer_output_scale", stream) if "layer_output_scale" in at.shapes else stream


def _embed(run: Forward, given: tuple[int, int, int, int], width: int) -> int:
    """Token embeddings, twice: of the batch, and of the tokens between images, put in their places (written over a copy
    that stays)."""
    graph = run.graph
    tokens, between, places, picture = given
    stream = graph.op(width, tokens, home=HOST)
    mixed = graph.op(width, between, home=HOST)
    graph.read(mixed, places, graph.op(width, picture, pinned=True))
    if run.geo.row.norms_embedding:
        if run.geo.layers[0].recurrent:  # nothing needs the norm before the first state is fetched
            fetch(graph, state_of(run, 0))
        stream = graph.view(graph.inplace(graph.op(width, stream), home=run.spots[0].home))
    return graph.inplace(stream) if run.geo.row.scaled_embedding else stream


def _head(run: Forward, stream: int, *, late: bool) -> None:
    """Final norm and logits; the rows that need logits are picked here where the layers did not."""
    graph, outputs = run.graph, min(run.rows, run.context.outputs)
    final = graph.inplace(graph.inplace(stream), home=run.output)
    if late:
        final = graph.op(graph.size(final) // run.rows * outputs, final, run.given.picks)
    graph.op(run.geo.vocab * outputs * FLOAT, final, pinned=True, home=run.output)
