"""Compute buffers: the model's graph for one full batch, replayed through the engine's own allocator.

Not a fitted formula: layers are rebuilt from their tensors (``blocks``, ``states``) in the engine's order, then ggml's
best-fit planning is run over them (``graph``), per device. Runs of alike layers are shortened: the allocator repeats
itself. Against the engine's own figures (tests/data/truth, scored by tests/memory/test_truth.py): all CPU
buffers within 5 % or 8 MiB, 99.6 % of the device buffers within 10 % or 32 MiB. Weights that a backend copies over from
the host for large batches come on top: ``estimate``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gezel_rules.engines.llama_cpp.memory.blocks import FLOAT, Indexer, Pass
from gezel_rules.engines.llama_cpp.memory.embeddings import PerLayer, inject, look_up, stack, stacked_layer
from gezel_rules.engines.llama_cpp.memory.flags import Context, Launch
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.graph import Graph, peaks
from gezel_rules.engines.llama_cpp.memory.kv_cache import window_cells
from gezel_rules.engines.llama_cpp.memory.layer_pass import layer_pass
from gezel_rules.engines.llama_cpp.memory.layers import number as count
from gezel_rules.engines.llama_cpp.memory.offload import HOST, Owners
from gezel_rules.engines.llama_cpp.memory.spots import Spot, gate_device, held_caches, sampled, spots_of
from gezel_rules.record import NamedTuple

PIPELINE_COPIES = 4  # GGML_SCHED_MAX_COPIES
HALF = 2  # bytes of a mask entry with flash attention


MOST_REMEMBERED = 256
"""Graphs of one model whose peaks are remembered: a plan builds dozens, many of them for the next machine too."""


class Forward(NamedTuple):
    """One forward pass in the making. ``output``: the device of the output side; ``rows``: tokens of the batch;
    ``masks``: nodes of the mask and of the places of V rows, for the full and, where layers slide, the windowed cache;
    ``indexers``: by layer."""

    geo: Geometry
    context: Context
    output: int
    spots: Sequence[Spot]
    graph: Graph
    rows: int
    masks: Sequence[tuple[int, int | None]]
    indexers: Mapping[int, Indexer]


class Layout(NamedTuple):
    """What is computed where: the parts of every layer (``spots``), the ``output`` side, and how many ``copies`` the
    scheduler keeps of what crosses devices."""

    spots: tuple[Spot, ...]
    output: int
    copies: int


def layout_of(geo: Geometry, launch: Launch, own: Owners) -> Layout:
    """The layout of a launch, the same for all its contexts."""
    return Layout(tuple(spots_of(geo, launch, own)), own.output, PIPELINE_COPIES if _pipelined(geo, launch, own) else 1)


def compute_parts(geo: Geometry, context: Context, layout: Layout) -> dict[int, int]:
    """Bytes of the compute buffer per device and on the host, for a full batch with every slot busy."""
    return _peaks(_main, geo, context, layout)


def draft_parts(geo: Geometry, context: Context, layout: Layout) -> dict[int, int]:
    """The same for the second context of an MTP head: a token and the trunk's last state in, its own layers, logits."""
    return _peaks(_second, geo, context, layout)


Build = Callable[[Geometry, Context, Sequence[Spot], int, Graph, int], None]
"""Puts a forward pass into a graph: with what is computed where, the device of the output, and the rows of a batch."""


def _peaks(build: Build, geo: Geometry, context: Context, layout: Layout) -> dict[int, int]:
    """The buffers of a forward pass; each that differs in what a graph depends on is built once."""
    known, key = geo.once(_remembered), (build, context, layout)
    found = known.get(key)
    if found is None:
        graph, rows = Graph(layout.copies), -(-context.ubatch // context.slots) * context.slots
        build(geo, context, layout.spots, layout.output, graph, rows)
        if len(known) == MOST_REMEMBERED:
            del known[next(iter(known))]
        found = known[key] = peaks(graph)
    return dict(found)


def _remembered(geo: Geometry) -> dict[tuple[Any, ...], dict[int, int]]:
    """Peaks of the graphs of this model, by all they depend on."""
    return {}


def _main(geo: Geometry, context: Context, spots: Sequence[Spot], output: int, graph: Graph, rows: int) -> None:
    """The model itself."""
    width = geo.embedding * rows * FLOAT
    for size in (1, 1, 2):  # token ids, those between images, and their places
        graph.given(size * FLOAT * rows)
    graph.given(width)  # embeddings instead of tokens: reserved, not read, never freed
    picture = graph.given(width)  # embeddings of images mixed with tokens
    masks = _given(geo, context, graph, rows)
    run = Forward(geo, context, output, spots, graph, rows, masks, _indexers(geo, context, graph, rows, spots))
    _trunk(run, _embed(run, picture, width))


def _second(geo: Geometry, context: Context, spots: Sequence[Spot], output: int, graph: Graph, rows: int) -> None:
    """The MTP head in its own context."""
    width = geo.embedding * rows * FLOAT
    graph.given(FLOAT * rows)
    state = graph.given(width)
    run = Forward(geo, context, output, spots, graph, rows, _given(geo, context, graph, rows), {})
    graph.device = HOST
    token = graph.op(width)
    graph.device = spots[-1].attend
    joined = graph.op(2 * width, graph.inplace(graph.inplace(token)), graph.inplace(graph.inplace(state)))
    stream = graph.op(width, joined)
    for i in range(geo.trunk, len(geo.layers)):
        stream = layer_pass(_pass(run, i), stream, geo.layers[i], spots[i].attend, rows, geo)
    _head(run, stream, late=True)


def _pipelined(geo: Geometry, launch: Launch, own: Owners) -> bool:
    """Several devices, everything offloaded, no overrides, KV with its layers: the scheduler keeps four copies of
    whatever crosses devices (``llama_context``); needs backends with events, which ``launch.pipeline`` can deny."""
    if launch.pipeline is not None:
        return launch.pipeline
    moved = launch.override_tensor or launch.ffn_on_cpu or launch.cpu_moe or launch.n_cpu_moe
    special = moved or launch.no_kv_offload
    return launch.devices > 1 and own.offloaded > len(geo.layers) and not special


def _given(geo: Geometry, context: Context, graph: Graph, rows: int) -> list[tuple[int, int | None]]:
    """Positions; and for each cache a mask, cells × tokens, and without flash attention the places of V: it is stored
    transposed, so value by value. Filled on the host."""
    graph.given(rows * FLOAT)
    size = (HALF if context.flash else FLOAT) * rows
    if not any(x.cached for x in geo.layers) and not geo.row.compressed:
        return [(graph.given(0), None)]
    places = 2 * FLOAT * rows * max((x.v for x in geo.layers), default=0)
    kinds = (context.ctx_seq, window_cells(geo, context)) if geo.window else (context.ctx_seq,)
    return [(graph.given(cells * size), None if context.flash else graph.given(places)) for cells in kinds]


def _indexers(geo: Geometry, context: Context, graph: Graph, rows: int, spots: Sequence[Spot]) -> dict[int, Indexer]:
    """The indexers of latent attention: a mask, and a constant for every layer."""
    if not (geo.mla and geo.indexer):
        return {}
    cells, picks = context.ctx_seq, list[int]()
    top = min(count(geo.header, "attention.indexer.top_k", cells), cells)
    mask = graph.given(HALF * rows * cells)
    latent = [i for i in range(geo.trunk) if "attn_kv_a_mqa" in geo.shapes[i]]
    return {i: Indexer(graph.constant(FLOAT * rows * top, spots[i].attend), mask, cells, top, picks) for i in latent}


def _trunk(run: Forward, stream: int) -> None:
    """The layers that matter, then the head."""
    geo, graph, spots = run.geo, run.graph, run.spots
    first = run.output if geo.streams > 1 else spots[0].attend  # whatever comes first
    rows_of = look_up(graph, geo.per_layer * geo.trunk, run.rows, stream, first) if geo.per_layer else None
    if geo.streams > 1:
        stream = stack(graph, stream, geo.streams, run.output)
    chosen = sampled(geo, spots)
    for i in chosen:
        outputs = min(run.rows, run.context.outputs) if i == chosen[-1] else run.rows
        stream = _one(run, i, stream, outputs, rows_of)
    _head(run, stream, late=geo.row.late_output)


def _one(run: Forward, number: int, stream: int, outputs: int, rows_of: PerLayer | None) -> int:
    """One layer, with its own embedding where the model has such."""
    geo, spots = run.geo, run.spots
    at = _pass(run, number)
    before = spots[number - 1].attend if number else HOST
    if before != HOST and HOST in (spots[number - 1].feed, spots[number - 1].expert):
        before = at.attend  # the end of the layer before is here already
    if geo.streams > 1 and rows_of:
        return stacked_layer(at, number, stream, geo.streams, rows_of, before if number else run.output)
    stream = layer_pass(at, stream, geo.layers[number], before, outputs, geo)
    return run.graph.add(stream, inject(at, stream, stream, rows_of)) if rows_of else stream


def _embed(run: Forward, picture: int, width: int) -> int:
    """Token embeddings, twice: of the batch, and of the tokens between images (written over a copy that stays, on the
    first layer's device unless more lookups follow)."""
    graph = run.graph
    graph.device = HOST
    stream = graph.op(width)
    mixed = graph.op(width)
    graph.device = HOST if run.geo.per_layer else run.spots[0].attend
    graph.read(mixed, graph.op(width, picture, pinned=True))
    return graph.inplace(stream) if run.geo.row.scaled_embedding else stream


def _pass(run: Forward, number: int) -> Pass:
    """A layer as the blocks see it."""
    geo, context = run.geo, run.context
    layer, spot = geo.layers[number], run.spots[number]
    mask, places = run.masks[-1 if layer.sliding else 0]
    head_k = layer.k // layer.kv_heads if layer.kv_heads else geo.head_k
    head_v = layer.v // layer.kv_heads if layer.kv_heads and layer.v else geo.head_v
    return Pass(
        graph=run.graph,
        shapes=geo.shapes[number],
        row=geo.row,
        rows=run.rows,
        sequences=context.slots,
        cells=0 if context.flash else window_cells(geo, context) if layer.sliding else context.ctx_seq,
        mask=mask,
        places=places,
        used=max(1, geo.experts_used),
        heads=layer.heads,
        head_k=head_k,
        head_v=head_v,
        held=held_caches(geo, number, context, run.spots, run.graph),
        cast=_cast_bytes(run, number),
        state=geo.state_s,
        owns=layer.cached or layer.nextn,
        rotates=_rotates(geo, number),
        hadamard_k=_hadamard(geo, context.type_k, head_k),
        hadamard_v=_hadamard(geo, context.type_v, head_v),
        store=spot.cache,
        gate=gate_device(geo, number, run.spots),
        score=spot.score,
        attend=spot.attend,
        norm=spot.norm,
        feed=spot.feed,
        expert=spot.expert,
        follow=run.spots[number + 1].attend if number + 1 < geo.trunk else run.output,
        indexer=run.indexers.get(number),
    )


def _rotates(geo: Geometry, number: int) -> bool:
    """Whether positions turn this layer's queries and keys: all layers, none, sliding ones, or all but every n-th."""
    rule, every = geo.row.rotates, geo.row.rotates_not_every
    if rule == "sliding":
        lead = count(geo.header, "leading_dense_block_count", 0) if geo.row.rotates_lead else 0
        return geo.layers[number].sliding or not geo.window or number < lead
    if rule == "finetuned":
        return bool(geo.header.get("rope.scaling.finetuned", True))
    return rule != "none" and not (every and (number + 1) % every == 0)


def _hadamard(geo: Geometry, kind: str, head: int) -> bool:
    """Quantised caches hold rotated rows (``attn_rot_k``), where heads come in whole 64s."""
    return geo.tables.quantized(kind) and head > 0 and head % 64 == 0


def _cast_bytes(run: Forward, number: int) -> int:
    """Flash attention reads halves: f32 caches are cast whole, K and V, one layer at a time."""
    geo, context, layer = run.geo, run.context, run.geo.layers[number]
    if not context.flash:
        return 0
    cells = (window_cells(geo, context) if layer.sliding else context.ctx_seq) * context.streams
    wide = geo.tables.cache_types
    sides = (layer.k, context.type_k), (layer.v, context.type_v)
    return sum(cells * values * HALF for values, kind in sides if wide[kind].bytes > 32 * HALF)


def _head(run: Forward, stream: int, *, late: bool) -> None:
    """Final norm and logits; the rows that need logits are picked here where the layers did not."""
    graph = run.graph
    before, outputs = run.spots[-1].attend, min(run.rows, run.context.outputs)
    graph.device = before if before != HOST else run.output
    final = graph.inplace(stream)
    graph.device = run.output
    final = graph.inplace(final)
    if late:
        final = graph.op(graph.size(final) // run.rows * outputs, final)
    graph.op(run.geo.vocab * outputs * FLOAT, final, pinned=True)
