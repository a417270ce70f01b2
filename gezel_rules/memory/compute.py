"""Compute buffers: the model's graph for one full batch, replayed through the engine's own allocator.

Not a fitted formula: layers are rebuilt from their tensors (``blocks``, ``states``) in the engine's order, then ggml's
best-fit planning is run over them (``graph``), per device. Runs of alike layers are shortened: the allocator repeats
itself. Scores against the engine's own figures are printed by ``tests/memory`` (CPU: 5 % or 8 MiB; devices: 10 % or
32 MiB). Backends that copy host weights to a device for large batches need more than this: see ``capacity``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gezel_rules.memory.blocks import FLOAT, Pass, attention, experts, feed_forward, norm, project
from gezel_rules.memory.embeddings import inject, look_up, stack, stacked_layer
from gezel_rules.memory.geometry import Geometry, Layer
from gezel_rules.memory.graph import Graph, peaks
from gezel_rules.memory.kv_cache import row_bytes, window_cells
from gezel_rules.memory.launch import Context, Launch
from gezel_rules.memory.offload import HOST, Owners, override_of, overrides
from gezel_rules.memory.states import recurrence

PIPELINE_COPIES = 4  # GGML_SCHED_MAX_COPIES
HALF = 2  # bytes of a mask entry with flash attention


class Spot(NamedTuple):
    """Devices of a layer's parts: attention, norm before the feed-forward, feed-forward, routed experts."""

    attend: int
    norm: int
    feed: int
    expert: int


def compute_parts(geo: Geometry, context: Context, launch: Launch, own: Owners) -> dict[int, int]:
    """Bytes of the compute buffer per device and on the host, for a full batch with every slot busy."""
    spots = _spots(geo, launch, own)
    graph = Graph(PIPELINE_COPIES if _pipelined(geo, launch, own) else 1)
    rows = -(-context.ubatch // context.slots) * context.slots
    _build(geo, context, launch, own, spots, graph, rows)
    return peaks(graph)


def _pipelined(geo: Geometry, launch: Launch, own: Owners) -> bool:
    """Several devices, everything offloaded, no overrides, KV with its layers: the scheduler keeps four copies of
    whatever crosses devices (``llama_context``); needs backends with events, which ``launch.pipeline`` can deny."""
    if launch.pipeline is not None:
        return launch.pipeline
    special = launch.override_tensor or launch.cpu_moe or launch.n_cpu_moe or launch.no_kv_offload
    return launch.devices > 1 and own.offloaded > len(geo.layers) and not special


def _spots(geo: Geometry, launch: Launch, own: Owners) -> list[Spot]:
    rules = overrides(launch)
    moved = len(geo.layers) if launch.cpu_moe else launch.n_cpu_moe
    spots = []
    for i, home in enumerate(own.layers):

        def at(stem: str, home: int = home, i: int = i) -> int:
            found = override_of(f"blk.{i}.{stem}.weight", rules) if rules else None
            return home if found is None else found

        expert = HOST if i < moved else at("ffn_up_exps")
        spots.append(Spot(at("attn_q"), at("ffn_norm"), at("ffn_up"), expert))
    return spots


def _build(
    geo: Geometry, context: Context, launch: Launch, own: Owners, spots: Sequence[Spot], graph: Graph, rows: int
) -> None:
    """The whole forward pass."""
    width = geo.embedding * rows * FLOAT
    given = graph.given
    given(rows * FLOAT)
    given(rows * FLOAT)
    given(2 * rows * FLOAT)
    given(width)  # embeddings instead of tokens: reserved, not read, never freed
    picture = given(width)  # embeddings of images mixed with tokens
    given(rows * FLOAT)
    if not context.flash:  # transposed V rows are addressed value by value
        given(2 * FLOAT * rows * max((x.v for x in geo.layers), default=0))
    wide, narrow = _masks(geo, context, graph, rows)
    first = spots[0].attend if spots else HOST
    stream = _embed(geo, graph, picture, width, HOST if geo.per_layer else first)
    own_rows = look_up(graph, geo.per_layer * geo.trunk, rows, stream, first) if geo.per_layer else None
    if geo.streams > 1:
        stream = stack(graph, stream, geo.streams, own.output)
    chosen = _sample(geo, launch, spots)
    last = chosen[-1] if chosen else None
    for i in chosen:
        layer = geo.layers[i]
        mask = narrow if layer.sliding and narrow is not None else wide
        cells = 0 if context.flash else (window_cells(geo, context) if layer.sliding else context.ctx_seq)
        away = launch.no_kv_offload and layer.cached and _state_next(geo, i) is not None
        held = () if away else _held(geo, i, context, launch, spots, graph)
        gate = _gate_device(geo, i, spots)
        store = HOST if launch.no_kv_offload else spots[i].attend
        at = _pass(geo, layer, context, spots[i], graph, rows, cells, mask, held, store, gate, away)
        before = spots[i - 1].attend if i else HOST
        follow = spots[i + 1].attend if i + 1 < len(spots) else own.output
        if geo.streams > 1 and own_rows:
            stream = stacked_layer(at, stream, geo.streams, own_rows, before if i else own.output)
            continue
        outputs = context.outputs if i == last else rows
        stream = _layer(at, stream, layer, spots[i], before, follow, outputs, geo)
        if own_rows:
            stream = graph.add(stream, inject(at, stream, stream, own_rows))
    _head(geo, own, spots[-1].attend if spots else HOST, graph, stream, rows, min(rows, context.outputs))


def _masks(geo: Geometry, context: Context, graph: Graph, rows: int) -> tuple[int, int | None]:
    """One mask per cache, filled on the host: cells × tokens."""
    size = (HALF if context.flash else FLOAT) * rows
    if not any(x.cached for x in geo.layers) and geo.row.get("cache") != "deepseek4":
        return graph.given(0), None
    wide = graph.given(context.ctx_seq * size)
    return wide, graph.given(window_cells(geo, context) * size) if geo.window else None


def _embed(geo: Geometry, graph: Graph, picture: int, width: int, first: int) -> int:
    """Token embeddings, twice: of the batch, and of the tokens between images (written over a copy that stays, on the
    first layer's device)."""
    graph.device = HOST
    stream = graph.op(width)
    mixed = graph.op(width)
    graph.device = first
    graph.read(mixed, graph.op(width, picture, pinned=True))
    return graph.inplace(stream) if geo.row.get("scaled_embedding") else stream


def _pass(
    geo: Geometry,
    layer: Layer,
    context: Context,
    spot: Spot,
    graph: Graph,
    rows: int,
    cells: int,
    mask: int,
    held: tuple[int, ...],
    store: int,
    gate: int,
    away: bool,
) -> Pass:
    head_k = layer.k // layer.kv_heads if layer.kv_heads else geo.head_k
    head_v = layer.v // layer.kv_heads if layer.kv_heads and layer.v else geo.head_v
    return Pass(
        graph=graph,
        shapes=geo.shapes[layer.number],
        row=geo.row,
        rows=rows,
        sequences=context.slots,
        cells=cells,
        mask=mask,
        used=max(1, geo.experts_used),
        heads=layer.heads,
        head_k=head_k,
        head_v=head_v,
        held=held,
        state=geo.state_s,
        owns=layer.cached,
        store=store,
        gate=gate,
        score=HOST if away else spot.attend,
        attend=spot.attend,
        feed=spot.feed,
        expert=spot.expert,
    )


def _held(
    geo: Geometry, number: int, context: Context, launch: Launch, spots: Sequence[Spot], graph: Graph
) -> tuple[int, ...]:
    """K and V of a layer as its attention finds them: with their owner, or on the host. Layers without a cache of
    their own read the last one of their kind, and each makes its own copy when that lies on another device."""
    layer = geo.layers[number]
    owner = _owner(geo, number)
    if owner is None:
        return ()
    device = HOST if launch.no_kv_offload else spots[owner].attend
    if device == spots[number].attend:
        return ()
    times = (window_cells(geo, context) if layer.sliding else context.ctx_seq) * context.streams
    source = geo.layers[owner]
    sizes = row_bytes(source.k, context.type_k, geo.tables), row_bytes(source.v, context.type_v, geo.tables)
    return tuple(graph.outside(times * size, device) for size in sizes if size)


def _owner(geo: Geometry, number: int) -> int | None:
    """The layer whose cache this one reads."""
    layer = geo.layers[number]
    if layer.cached:
        return number
    return next((x.number for x in reversed(geo.layers) if x.cached and x.sliding == layer.sliding), None)


def _gate_device(geo: Geometry, number: int, spots: Sequence[Spot]) -> int:
    """Where a recurrent layer's gate is computed: the engine fetches the next layer's state first, so on its device."""
    following = _state_next(geo, number)
    return spots[number if following is None or not geo.layers[number].recurrent else following].attend


def _state_next(geo: Geometry, number: int) -> int | None:
    """The recurrent layer whose state is fetched in the middle of this one: the next, or this one when it attends
    too; none where experts or another attention come in between."""
    layer = geo.layers[number]
    if layer.recurrent and layer.cached:
        return number
    if "ffn_gate_inp" in geo.shapes[number]:
        return None
    for i in range(number + 1, geo.trunk):
        if geo.layers[i].recurrent:
            return i if geo.row.get("state") != "ssm" or "ssm_in" in geo.shapes[i] else None
        if geo.layers[i].cached or "ffn_gate_inp" in geo.shapes[i]:
            return None
    return None


def _sample(geo: Geometry, launch: Launch, spots: Sequence[Spot]) -> list[int]:
    """Layers that matter: each kind of step from one layer to the next at most twice; always the last one, those before
    a change of device, and those that read another device's cache."""
    chosen: list[int] = []
    seen: dict[object, int] = {}
    before: object = None
    for i in range(geo.trunk):
        layer = geo.layers[i]
        kind = (geo.kinds[i], layer.sliding, layer.recurrent, layer.cached, spots[i], _gate_device(geo, i, spots))
        step = (before, kind)
        seen[step] = seen.get(step, 0) + 1
        owner = None if layer.cached else _owner(geo, i)
        reads = owner is not None and (launch.no_kv_offload or spots[owner].attend != spots[i].attend)
        if seen[step] <= 2 or reads or i == geo.trunk - 1 or spots[i] != spots[i + 1]:
            chosen.append(i)
        before = kind
    return chosen


def _layer(
    at: Pass, stream: int, layer: Layer, spot: Spot, before: int, follow: int, outputs: int, geo: Geometry
) -> int:
    """One block: mix, add, feed forward, add."""
    graph, shapes = at.graph, at.shapes
    graph.device = spot.attend
    normed = norm(at, "attn_norm", stream, before)
    mixes = layer.recurrent or any(k in shapes for k in ("attn_q", "attn_qkv", "attn_kv_a_mqa", "attn_q_a"))
    residual = stream
    if mixes and at.row.get("parallel"):
        scored = attention(at, normed)
        out = feed_forward(at, normed)
        graph.device = spot.attend
        return graph.add(graph.add(out, residual), project(at, scored))
    if mixes:
        mixed, normed = _mix(at, stream, normed, layer)
        if outputs < at.rows and not geo.row.get("late_output"):
            at, mixed, residual = _last_rows(at, outputs, mixed, residual)
        graph.device = spot.attend
        if "ffn_norm" in shapes or "post_ffw_norm" in shapes:
            mixed = norm(at, "post_attention_norm", mixed)
        stream = graph.add(mixed, residual)
    if not any(k.startswith("ffn_down") for k in shapes):
        return stream
    graph.device = spot.norm
    nearby = spot.attend if mixes else before
    stem = "ffn_norm" if "ffn_norm" in shapes else "post_attention_norm"
    kept = "post_ffw_norm" in shapes and stem != "ffn_norm"
    source = stream if kept else norm(at, stem, stream, nearby) if mixes or stem in shapes else normed
    out = _feed(at, source, stream)
    graph.device = follow if spot.feed == HOST or spot.expert == HOST else spot.attend
    out = norm(at, "post_ffw_norm", out)
    return graph.add(out, stream)


def _mix(at: Pass, stream: int, normed: int, layer: Layer) -> tuple[int, int]:
    """Attention, a recurrence, or both side by side."""
    if layer.recurrent and layer.cached:
        scored = attention(at, normed)
        state = recurrence(at, norm(at, "attn_norm", stream))
        return at.graph.add(project(at, scored), state), normed
    if layer.recurrent:
        return recurrence(at, normed), normed
    return project(at, attention(at, normed)), normed


def _last_rows(at: Pass, outputs: int, mixed: int, residual: int) -> tuple[Pass, int, int]:
    """Only the rows that need logits go on through the last feed-forward."""
    width = at.graph.size(residual) // at.rows
    return at._replace(rows=outputs), at.graph.op(width * outputs, mixed), at.graph.op(width * outputs, residual)


def _feed(at: Pass, source: int, stream: int) -> int:
    """Dense, routed, shared: whatever the layer has, summed."""
    graph, shapes = at.graph, at.shapes
    outs = []
    if "ffn_gate_inp" in shapes and "ffn_down_exps" in shapes:
        outs.append(experts(at, source, source))
    for suffix in ("_shexp", ""):
        if f"ffn_down{suffix}" in shapes:
            outs.append(feed_forward(at, source, suffix))
    total = outs[0]
    for more in outs[1:]:
        graph.device = at.feed
        total = graph.add(total, more)
    return total


def _head(geo: Geometry, own: Owners, before: int, graph: Graph, stream: int, rows: int, outputs: int) -> None:
    """Final norm and logits."""
    graph.device = before if before != HOST else own.output
    final = graph.inplace(stream)
    graph.device = own.output
    final = graph.inplace(final)
    if geo.row.get("late_output"):
        final = graph.op(graph.size(final) // rows * outputs, final)
    graph.op(geo.vocab * outputs * FLOAT, final, pinned=True)
