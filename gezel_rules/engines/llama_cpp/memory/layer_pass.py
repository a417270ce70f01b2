"""One block of the model as a sequence of tensors: mix, add, feed forward, add."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.blocks import Pass, experts, feed_forward, norm, project
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry, Layer
from gezel_rules.engines.llama_cpp.memory.latent import attend
from gezel_rules.engines.llama_cpp.memory.offload import HOST
from gezel_rules.engines.llama_cpp.memory.rwkv import channel_mix
from gezel_rules.engines.llama_cpp.memory.states import recurrence


def layer_pass(at: Pass, stream: int, layer: Layer, before: int, outputs: int, geo: Geometry) -> int:
    """One block: mix, add, feed forward, add."""
    graph, shapes = at.graph, at.shapes
    graph.device = at.attend
    mixes = layer.recurrent or any(k in shapes for k in ("attn_q", "attn_qkv", "attn_kv_a_mqa", "attn_q_a"))
    if mixes and (at.row.parallel or _lone_norm(at)):
        return _side_by_side(at, stream, before)
    normed = norm(at, "attn_norm", stream, before)
    residual = stream
    if mixes:
        mixed, normed = _mix(at, stream, normed, layer)
        if outputs < at.rows and not geo.row.late_output:
            at, mixed, residual = _last_rows(at, outputs, mixed, residual)
        graph.device = at.attend
        if "ffn_norm" in shapes or "post_ffw_norm" in shapes:
            mixed = norm(at, "post_attention_norm", mixed)
        stream = graph.add(mixed, residual)
    if "channel_mix_key" in shapes:
        return channel_mix(at, stream, normed)
    if not any(k.startswith("ffn_down") for k in shapes):
        return stream
    graph.device = at.norm
    nearby = at.attend if mixes else before
    stem = "ffn_norm" if "ffn_norm" in shapes else "post_attention_norm"
    kept = "post_ffw_norm" in shapes and stem != "ffn_norm"
    source = stream if kept else norm(at, stem, stream, nearby) if mixes or stem in shapes else normed
    out = _feed(at, source)
    graph.device = at.follow if at.feed == HOST or at.expert == HOST else at.attend
    out = norm(at, "post_ffw_norm", out)
    return graph.add(out, stream)


def _lone_norm(at: Pass) -> bool:
    """Whether a layer has one norm for both its attention and its feed-forward."""
    norms = {stem for stem in at.shapes if stem.endswith("_norm")} - {"attn_q_norm", "attn_k_norm"}
    return norms == {"attn_norm"} and "ffn_down" in at.shapes and at.owns


def _side_by_side(at: Pass, stream: int, before: int) -> int:
    """Attention and feed-forward read the same norm, or each its own, and are added up."""
    graph = at.graph
    own = "attn_norm_2" in at.shapes
    normed = norm(at, "attn_norm_2" if own else "attn_norm", stream, before)
    out = attend(at, normed)
    if not at.row.parallel:
        out = project(at, out)
    fed = _feed(at, norm(at, "attn_norm", stream) if own else normed)
    graph.device = at.attend
    if not at.row.parallel:
        return graph.add(graph.add(out, fed), stream)
    return graph.add(graph.add(fed, stream), project(at, out))


def _mix(at: Pass, stream: int, normed: int, layer: Layer) -> tuple[int, int]:
    """Attention, a recurrence, or both side by side."""
    if layer.recurrent and layer.cached:
        scored = attend(at, normed)
        return recurrence(at, norm(at, "attn_norm", stream), scored), normed
    if layer.recurrent:
        return recurrence(at, normed), normed
    return project(at, attend(at, normed)), normed


def _last_rows(at: Pass, outputs: int, mixed: int, residual: int) -> tuple[Pass, int, int]:
    """Only the rows that need logits go on through the last feed-forward."""
    width = at.graph.size(residual) // at.rows
    return at._replace(rows=outputs), at.graph.op(width * outputs, mixed), at.graph.op(width * outputs, residual)


def _feed(at: Pass, source: int) -> int:
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
        graph.device = at.follow if at.feed == HOST else at.feed
        total = graph.add(total, more)
    return total
