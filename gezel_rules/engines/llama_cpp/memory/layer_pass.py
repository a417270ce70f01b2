"""One block of the model as a sequence of tensors: mix, add, feed forward, add."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.blocks import Pass, experts, feed_forward, norm, project
from gezel_rules.engines.llama_cpp.memory.fetching import early, fetch, look_ahead
from gezel_rules.engines.llama_cpp.memory.geometry import Layer
from gezel_rules.engines.llama_cpp.memory.latent import attend
from gezel_rules.engines.llama_cpp.memory.rwkv import channel_mix
from gezel_rules.engines.llama_cpp.memory.states import recurrence


def layer_pass(at: Pass, stream: int, layer: Layer, outputs: int) -> int:
    """One block: mix, add, feed forward, add."""
    graph, shapes = at.graph, at.shapes
    outputs = at.rows if at.row.late_output else outputs
    if layer.recurrent and not layer.cached and early(shapes):
        fetch(graph, at.state)
    mixes = layer.recurrent or any(k in shapes for k in ("attn_q", "attn_qkv", "attn_kv_a_mqa", "attn_q_a"))
    if mixes and (at.row.parallel or _lone_norm(at)):
        return _side_by_side(at, stream, outputs)
    normed = norm(at, "attn_norm", stream)
    residual = stream
    if at.row.residual_first and outputs < at.rows:
        at = at._replace(picked=(stream, outputs))
    if mixes:
        mixed, normed = _mix(at, stream, normed, layer)
        if outputs < at.rows:
            at, mixed, residual = _last_rows(at, outputs, mixed, residual)
        if "ffn_norm" in shapes or "post_ffw_norm" in shapes:
            mixed = norm(at, "post_attention_norm", mixed)
        stream = _sum(at, mixed, residual)
    if "channel_mix_key" in shapes:
        return channel_mix(at, stream, normed)
    if not any(k.startswith("ffn_down") for k in shapes):
        return stream
    stem = "ffn_norm" if "ffn_norm" in shapes else "post_attention_norm"
    kept = "post_ffw_norm" in shapes and stem != "ffn_norm"
    if "pre_ffw_norm_2" in shapes:
        out = _beside_experts(at, stream)
    else:
        out = _feed(at, stream if kept else norm(at, stem, stream) if mixes or stem in shapes else normed)
    out = norm(at, "post_ffw_norm", out)
    return _sum(at, out, stream)


def _sum(at: Pass, out: int, stream: int) -> int:
    """What a block gave, added to the stream."""
    return at.graph.add(stream, out) if at.row.residual_first else at.graph.add(out, stream)


def _lone_norm(at: Pass) -> bool:
    """Whether a layer has one norm for both its attention and its feed-forward."""
    norms = {stem for stem in at.shapes if stem.endswith("_norm")} - {"attn_q_norm", "attn_k_norm"}
    return norms == {"attn_norm"} and "ffn_down" in at.shapes and at.owns


def _side_by_side(at: Pass, stream: int, outputs: int) -> int:
    """Attention and feed-forward read the same norm, or each its own, and are added up."""
    graph = at.graph
    own = "attn_norm_2" in at.shapes
    normed = norm(at, "attn_norm_2" if own else "attn_norm", stream)
    out = attend(at, normed)
    if not at.row.parallel:
        out = _picked(at, project(at, out), outputs)
    source = _picked(at, norm(at, "attn_norm", stream) if own else normed, outputs)
    fed = _feed(at._replace(rows=outputs), source)
    if not at.row.parallel:
        return graph.add(graph.add(out, fed), _picked(at, stream, outputs))
    total = graph.add(fed, _picked(at, stream, outputs))
    return graph.add(total, _picked(at, project(at, out), outputs))


def _picked(at: Pass, source: int, outputs: int) -> int:
    """The rows that need logits, where not all of them do."""
    graph = at.graph
    return source if outputs == at.rows else graph.op(graph.size(source) // at.rows * outputs, source, at.picks)


def _mix(at: Pass, stream: int, normed: int, layer: Layer) -> tuple[int, int]:
    """Attention, a recurrence, or both side by side."""
    if layer.recurrent and layer.cached:
        scored = attend(at, normed)
        fetch(at.graph, at.state)
        return recurrence(at, norm(at, "attn_norm", stream), scored), normed
    if layer.recurrent:
        return recurrence(at, normed), normed
    scored = attend(at, normed)
    look_ahead(at)
    return project(at, scored), normed


def _last_rows(at: Pass, outputs: int, mixed: int, residual: int) -> tuple[Pass, int, int]:
    """Only the rows that need logits go on through the last feed-forward."""
    picked = at.graph.picked
    mixed = _picked(at, mixed, outputs)
    return at._replace(rows=outputs), mixed, _picked(at, residual, outputs) if picked is None else picked


def _opened(at: Pass, source: int, out: int, gate: str) -> int:
    """What the shared expert gave, through its gate, if it has one."""
    if gate == "ffn_gate_inp" or gate not in at.shapes:
        return out
    return at.graph.inplace(out, at.graph.inplace(at.wide(1, source, weight=gate)))


def _beside_experts(at: Pass, stream: int) -> int:
    """Experts and a dense feed-forward side by side, each with norms of its own (Gemma 4)."""
    routed = at.weigh("ffn_gate_inp.scale", at.graph.inplace(at.graph.inplace(stream)))
    chosen = experts(at, routed, lambda: norm(at, "pre_ffw_norm_2", stream))
    dense = norm(at, "post_ffw_norm_1", feed_forward(at, norm(at, "ffn_norm", stream)))
    return at.graph.add(dense, norm(at, "post_ffw_norm_2", chosen))


def _feed(at: Pass, source: int) -> int:
    """Dense, routed, shared: whatever the layer has, summed."""
    graph, shapes = at.graph, at.shapes
    outs = []
    if "ffn_gate_inp" in shapes and "ffn_down_exps" in shapes:
        outs.append(experts(at, source, lambda: source))
        look_ahead(at, routed=True)
    for suffix in ("_shexp", ""):
        if f"ffn_down{suffix}" in shapes:
            outs.append(_opened(at, source, feed_forward(at, source, suffix), f"ffn_gate_inp{suffix}"))
    total = outs[0]
    for more in outs[1:]:
        total = graph.add(total, more)
    return total
