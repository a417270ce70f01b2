"""RWKV layers: time mixing over a shifted copy of the batch, and channel mixing in the feed-forward's place
(``models/rwkv7-base.cpp``; RWKV 6 is priced alike). Tensors come in the order in which ggml's graph visits them."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.blocks import FLOAT, Pass, norm
from gezel_rules.engines.llama_cpp.memory.offload import HOST


def time_mix(at: Pass, source: int) -> int:
    """Receptance, decay, key, value and rate over six blends of each token with the one before it."""
    graph = at.graph
    width = graph.size(source) // (at.rows * FLOAT)
    if graph.fetched is None:
        graph.device = HOST if at.store == HOST else at.attend
        graph.fetched = _fetch(at)
        graph.device = at.attend
    state = graph.fetched
    apart = graph.inplace(graph.op(graph.size(source), source), source)
    mixed = graph.inplace(graph.inplace(at.wide(6 * width, apart)), source)
    receptance = at.multiply("time_mix_receptance", mixed)
    decay = _low_rank(at, mixed, "time_mix_w1", "time_mix_w2")
    first_key = at.multiply("time_mix_key", mixed)
    rate = _low_rank(at, mixed, "time_mix_a1", "time_mix_a2")
    scaled = at.wide(width, first_key)
    changed = graph.inplace(at.wide(width, rate, scaled), scaled)
    key = graph.add(first_key, changed)
    value = _value(at, mixed)
    normed = at.wide(width, graph.inplace(first_key))
    opposed = at.wide(width, normed)
    weighed = graph.inplace(normed, rate)
    size = (width * at.rows + at.state * at.sequences) * FLOAT
    out = graph.op(size, receptance, decay, key, value, opposed, weighed, state)
    graph.read(out)
    spread = graph.inplace(graph.inplace(at.wide(width, out)))
    bonus = at.wide(at.heads or 1, graph.inplace(graph.inplace(key, receptance)))
    total = graph.inplace(spread, graph.inplace(value, bonus))
    if "time_mix_g1" in at.shapes:
        total = graph.inplace(total, _low_rank(at, mixed, "time_mix_g1", "time_mix_g2"))
    return at.multiply("time_mix_output", total)


def _fetch(at: Pass) -> int:
    """The state as the last batch left it."""
    return at.graph.op(at.state * at.sequences * FLOAT)


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
        graph.kept = graph.op(graph.size(value), value, reuse=(value,), pinned=True)
        return graph.kept
    apart = graph.op(graph.size(value), graph.kept, value)
    share = _low_rank(at, mixed, "time_mix_v1", "time_mix_v2")
    return graph.inplace(value, graph.inplace(apart, share))


def channel_mix(at: Pass, stream: int, before: int) -> int:
    """The feed-forward over a shifted copy, added to the stream. The last rows of its norm and of the one before are
    kept for the next batch; the next layer's state is fetched already here."""
    graph = at.graph
    graph.device = at.attend
    normed = norm(at, "attn_norm_2", stream)
    graph.read(before, normed)
    graph.fetched, shifting = None, at.attend
    if graph.size(before) == graph.size(stream):  # not the last layer, which goes on with fewer rows
        graph.device = HOST if at.store == HOST and at.attend != HOST else at.follow
        graph.fetched = _fetch(at)
        shifting = at.attend if graph.device == HOST else graph.device
    shifted = _shifted(at, normed, shifting)
    graph.device = at.attend
    blended = graph.inplace(graph.inplace(shifted), normed)
    raised = graph.inplace(graph.inplace(at.multiply("channel_mix_key", blended)))
    return graph.inplace(at.multiply("channel_mix_value", raised), stream)


def _shifted(at: Pass, normed: int, device: int) -> int:
    """The batch one token later, less the batch. It has no weight, so it is computed where the state just was fetched;
    on another device than the layer's it finds a copy of the norm, and one of a view of it."""
    graph = at.graph
    view = normed if device == at.attend else graph.outside(graph.size(normed), at.attend)
    graph.device = device
    return graph.inplace(graph.op(graph.size(normed), view), normed)
