"""RWKV layers: time mixing over a shifted copy of the batch, and channel mixing in the feed-forward's place
(``models/rwkv7-base.cpp``; RWKV 6 is priced alike). Tensors come in the order in which ggml's graph visits them."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.blocks import FLOAT, Pass, norm
from gezel_rules.engines.llama_cpp.memory.fetching import fetch, look_ahead


def time_mix(at: Pass, source: int) -> int:
    """Receptance, decay, key, value and rate over six blends of each token with the one before it."""
    graph = at.graph
    width = graph.size(source) // (at.rows * FLOAT)
    fetched = fetch(graph, at.state)
    shift, state = graph.view(fetched[0]), graph.view(fetched[1])
    apart = graph.inplace(_shifted(at, source, shift), source)
    mixed = at.weigh("time_mix_lerp_fused", at.wide(6 * width, apart))
    mixed = graph.view(graph.inplace(mixed, source), graph.size(source))
    receptance = at.multiply("time_mix_receptance", mixed)
    decay = graph.view(_low_rank(at, mixed, "time_mix_w1", "time_mix_w2"))
    first_key = at.multiply("time_mix_key", mixed)
    rate = _low_rank(at, mixed, "time_mix_a1", "time_mix_a2")
    scaled = at.wide(width, first_key, weight="time_mix_k_a")
    changed = graph.inplace(at.wide(width, rate, scaled), scaled)
    key = graph.add(first_key, changed)
    value = _value(at, mixed)
    normed = at.wide(width, at.weigh("time_mix_k_k", first_key))
    opposed = at.wide(width, normed)
    weighed = graph.inplace(normed, rate)
    size = at.values * at.sequences * FLOAT
    out = graph.op(width * at.rows * FLOAT + size, receptance, decay, key, value, opposed, weighed, state)
    graph.read(graph.view(out, size), home=at.store)
    spread = at.wide(width, at.wide(width, out), weight="time_mix_ln")
    bonus = at.wide(at.heads or 1, at.weigh("time_mix_r_k", graph.op(graph.size(key), key, receptance)))
    total = graph.inplace(spread, graph.op(graph.size(value), value, bonus))
    if "time_mix_g1" in at.shapes:
        total = graph.inplace(total, _low_rank(at, mixed, "time_mix_g1", "time_mix_g2"))
    return graph.view(at.multiply("time_mix_output", total))


def _low_rank(at: Pass, source: int, *stems: str) -> int:
    """One matrix after another, as far as the layer has them; what follows each of them happens in place."""
    for stem in stems:
        source = at.graph.inplace(at.multiply(stem, source)) if stem in at.shapes else at.graph.inplace(source)
    return source


def _value(at: Pass, mixed: int) -> int:
    """The value, drawn towards the first layer's, which stays to the end."""
    graph = at.graph
    value = at.multiply("time_mix_value", mixed)
    if graph.kept is None:
        graph.kept = value
        return value
    apart = graph.op(graph.size(value), graph.kept, value)
    share = _low_rank(at, mixed, "time_mix_v1", "time_mix_v2")
    return graph.inplace(value, graph.inplace(apart, share))


def channel_mix(at: Pass, stream: int, before: int) -> int:
    """The feed-forward over a shifted copy, added to the stream. The last rows of its norm and of the one before are
    kept for the next batch; the next layer's state is fetched already here."""
    graph = at.graph
    normed = norm(at, "attn_norm_2", stream)
    last = graph.size(normed) // at.rows * at.sequences
    kept = graph.op(2 * last, graph.view(before, last), graph.view(normed, last))
    graph.read(graph.view(kept), home=at.store)
    look_ahead(at)
    shift = graph.view(fetch(graph, at.state)[0], last)
    apart = graph.op(graph.size(normed), graph.view(_shifted(at, normed, shift)), graph.view(normed))
    blended = graph.inplace(at.weigh("channel_mix_lerp_k", apart), graph.view(normed))
    raised = graph.inplace(graph.inplace(at.multiply("channel_mix_key", blended)))
    return graph.view(graph.inplace(at.multiply("channel_mix_value", raised), graph.view(stream)))


def _shifted(at: Pass, normed: int, shift: int) -> int:
    """The batch one token later, its first rows from the state. It has no weight, so it may be computed elsewhere."""
    graph = at.graph
    return graph.op(graph.size(normed), shift, graph.view(normed, graph.size(normed) - graph.size(shift)))
