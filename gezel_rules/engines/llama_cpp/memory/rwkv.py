"""RWKV layers: time mixing over a shifted copy of the batch, and channel mixing in the feed-forward's place
(``models/rwkv7-base.cpp``; RWKV 6 is priced alike)."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.blocks import FLOAT, Pass, norm


def time_mix(at: Pass, source: int) -> int:
    """Receptance, decay, key, value and rate over six blends of each token with the one before it."""
    graph = at.graph
    width = graph.size(source) // (at.rows * FLOAT)
    shifted = graph.op(graph.size(source), source)
    mixed = graph.inplace(at.wide(6 * width, graph.inplace(shifted)))
    receptance = _low_rank(at, width, mixed, "time_mix_receptance")
    decay = _low_rank(at, width, mixed, "time_mix_w1", "time_mix_w2")
    key = _low_rank(at, width, mixed, "time_mix_key")
    rate = _low_rank(at, width, mixed, "time_mix_a1", "time_mix_a2")
    changed = graph.inplace(at.wide(width, rate, at.wide(width, key)))
    kept = graph.op(graph.size(key), key, changed, reuse=(changed,))
    value = _value(at, width, mixed)
    normed = at.wide(width, at.wide(width, key))
    opposed, weighed = at.wide(width, normed), at.wide(width, normed, rate)
    state = graph.op(at.state * at.sequences * FLOAT)
    size = (width * at.rows + at.state * at.sequences) * FLOAT
    out = graph.op(size, receptance, decay, kept, value, opposed, weighed, state)
    graph.read(out)
    spread = graph.inplace(at.wide(width, at.wide(width, out)))
    bonus = at.wide(width, value, at.wide(width, kept, receptance))
    total = graph.add(spread, bonus)
    if "time_mix_g1" in at.shapes:
        gate = _low_rank(at, width, mixed, "time_mix_g1", "time_mix_g2")
        total = graph.add(total, gate)
    return _low_rank(at, width, total, "time_mix_output")


def _low_rank(at: Pass, width: int, source: int, *stems: str) -> int:
    """One matrix after another, as far as the layer has them."""
    for stem in stems:
        source = at.multiply(stem, source) if stem in at.shapes else at.wide(width, source)
    return at.graph.inplace(source)


def _value(at: Pass, width: int, mixed: int) -> int:
    """The value, drawn towards the first layer's, which stays to the end."""
    graph = at.graph
    value = _low_rank(at, width, mixed, "time_mix_value")
    if graph.kept is None:
        graph.kept = graph.op(graph.size(value), value, reuse=(value,), pinned=True)
        return graph.kept
    apart = graph.op(graph.size(value), value)
    share = _low_rank(at, width, mixed, "time_mix_v1", "time_mix_v2")
    return graph.add(value, graph.add(apart, share))


def channel_mix(at: Pass, stream: int, before: int) -> int:
    """The feed-forward over a shifted copy, added to the stream. The last rows of its norm and of the one before are
    kept for the next batch."""
    graph = at.graph
    graph.device = at.attend
    normed = norm(at, "attn_norm_2", stream)
    graph.read(before, normed)
    shifted = graph.op(graph.size(normed), normed)
    blended = graph.op(graph.size(normed), shifted, normed)
    raised = graph.inplace(at.multiply("channel_mix_key", graph.inplace(blended)))
    return graph.op(graph.size(stream), at.multiply("channel_mix_value", raised), stream)
