"""Layers that keep a state instead of (or beside) a KV cache: what they do to activations."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.blocks import FLOAT, Pass, project
from gezel_rules.engines.llama_cpp.memory.fetching import fetch, look_ahead, rows
from gezel_rules.engines.llama_cpp.memory.rwkv import time_mix

KERNELS = ("ssm_conv1d", "shortconv.conv", "ssm_conv1d_q", "ssm_q_conv")


def recurrence(at: Pass, source: int, beside: int | None = None) -> int:
    """The recurrent part of a layer, told by its tensors: short convolution, delta net, Mamba 1 or 2, RWKV.
    ``beside``: what attention gave in the same layer, projected before the gate opens (Mamba 2) and added."""
    if "shortconv.in_proj" in at.shapes:
        return _short_convolution(at, source)
    if "attn_qkv" in at.shapes and "ssm_conv1d" in at.shapes:
        return _delta_net(at, source)
    if "ssm_conv1d_q" in at.shapes or "ssm_q_conv" in at.shapes:
        return _delta_attention(at, source)
    if "ssm_x" in at.shapes:
        return _mamba1(at, source)
    if "ssm_in" in at.shapes:
        return _mamba2(at, source, beside)
    return time_mix(at, source)


def _joined(at: Pass, width: int, source: int, kept: int) -> int:
    """The kept rows of the causal convolution joined to the batch; the last ones are kept again."""
    found = [stem for stem in KERNELS if stem in at.shapes]
    kernel = at.shapes[found[0]][0]
    joined = at.graph.op((at.rows + (kernel - 1) * at.sequences) * width * FLOAT, kept, source)
    last = at.graph.size(joined) - at.rows // at.sequences * FLOAT
    at.graph.read(at.graph.view(joined, last), home=at.store)
    return joined


def _convolve(at: Pass, width: int, joined: int) -> int:
    """The convolution itself, its bias and activation in place."""
    stem = "ssm_conv1d" if "ssm_conv1d" in at.shapes else "shortconv.conv"
    convolved = at.wide(width, joined, weight=stem)
    return convolved if stem == "shortconv.conv" else at.graph.inplace(convolved)


def _rolling(at: Pass) -> int:
    """The rows of the convolution that were kept."""
    return at.graph.view(fetch(at.graph, at.state)[0])


def _short_convolution(at: Pass, source: int) -> int:
    kept = _rolling(at)
    projected = at.multiply("shortconv.in_proj", source)
    width = at.width("shortconv.in_proj") // 3
    size = at.graph.size(projected) - 2 * width * FLOAT
    product = at.wide(width, at.graph.view(projected, size), at.graph.view(projected, size))
    joined = _joined(at, width, product, kept)
    look_ahead(at)
    opener = at.graph.view(projected, size)
    convolved = _convolve(at, width, joined)
    opened = at.graph.op(width * at.rows * FLOAT, opener, convolved, reuse=(convolved,))
    return at.graph.view(at.multiply("shortconv.out_proj", opened))


def _delta_net(at: Pass, source: int) -> int:
    """Gated delta net: Q, K and V convolved together, one fused update of the state."""
    graph = at.graph
    width = at.width("attn_qkv")
    inner = at.shapes["ssm_out"][0]
    keys = (width - inner) // 2
    kept = _rolling(at)
    joined = _joined(at, width, at.multiply("attn_qkv", source), kept)
    state = _state(at)
    convolved = _convolve(at, width, joined)
    query, key = (_head_keys(at, keys, inner, convolved) for _ in range(2))
    heads = at.shapes["ssm_dt"][0] if "ssm_dt" in at.shapes else at.shapes["ssm_a"][0]
    if "ssm_ba" in at.shapes:
        both = at.multiply("ssm_ba", source)
        decay, rate = at.wide(heads, both), at.wide(heads, both)
    else:
        decay, rate = (at.wide(heads, at.multiply(stem, source)) for stem in ("ssm_alpha", "ssm_beta"))
    size = graph.size(state)
    out = graph.op(inner * at.rows * FLOAT + size, query, key, convolved, decay, rate, state)
    graph.read(graph.view(out, size), home=at.store)
    normed = at.weigh("ssm_norm", at.wide(inner, out))
    opened = at.wide(inner, at.multiply("attn_gate", source))
    gated = graph.op(inner * at.rows * FLOAT, normed, opened, reuse=(normed, opened))
    return graph.view(at.multiply("ssm_out", gated))


def _head_keys(at: Pass, width: int, inner: int, convolved: int) -> int:
    """Queries or keys by head, spread over the value heads where the architecture does that first."""
    keys = at.wide(width, convolved)
    return at.wide(inner, keys) if at.row.delta_repeats else keys


def _state(at: Pass) -> int:
    """The recurrent part of the state, fetched when it is needed."""
    return at.graph.view(rows(at.graph, at.state, at.values * at.sequences * FLOAT))


def _delta_attention(at: Pass, source: int) -> int:
    """Kimi's delta attention: three convolutions and a per-channel gate."""
    graph = at.graph
    kept = _rolling(at)
    joined = [_joined(at, at.width(stem), at.multiply(stem, source), kept) for stem in ("attn_q", "attn_k", "attn_v")]
    state = _state(at)
    parts = [_normed(at, node, last=node == joined[2]) for node in joined]
    decay = at.wide(at.width("attn_q"), graph.inplace(_low_rank(at, source, "ssm_f_a", "ssm_f_b")), weight="ssm_a")
    rate = at.wide(at.heads, at.wide(at.heads, source, weight="ssm_beta"))
    size, width = graph.size(state), at.width("attn_v")
    out = graph.op(width * at.rows * FLOAT + size, *parts, decay, rate, state)
    graph.read(graph.view(out, size), home=at.store)
    normed = at.weigh("ssm_norm", at.wide(width, at.wide(width, out)))
    gate = at.wide(width, _low_rank(at, source, "ssm_g_a", "ssm_g_b"))
    gated = graph.inplace(normed, gate)
    return at.multiply("attn_output", at.wide(width, gated)) if "attn_output" in at.shapes else gated


def _normed(at: Pass, joined: int, *, last: bool) -> int:
    """A convolution, its activation and, for queries and keys, the norm of each head: each through a view."""
    width = at.width("attn_q")
    acted = at.wide(width, at.wide(width, joined, weight="attn_q"))
    return acted if last else at.graph.inplace(at.wide(width, acted))


def _low_rank(at: Pass, source: int, first: str, second: str) -> int:
    """Two matrices one after the other, as far as the layer has them."""
    for stem in (first, second):
        source = at.multiply(stem, source) if stem in at.shapes else at.wide(at.width("attn_q"), source)
    return source


def _mamba1(at: Pass, source: int) -> int:
    inner = at.width("ssm_in") // 2
    kept = _rolling(at)
    projected = at.multiply("ssm_in", source)
    half = at.graph.size(projected) - inner * FLOAT
    joined = _joined(at, inner, at.graph.view(projected, half), kept)
    at.graph.read(home=at.store)
    convolved = _convolve(at, inner, joined)
    ranked = at.multiply("ssm_x", convolved)
    step = at.multiply("ssm_dt", at.wide(at.shapes["ssm_dt"][0], ranked))
    sides = [ranked, ranked]
    if "ssm_b_norm" in at.shapes:
        sides = [at.wide(at.values // inner, ranked, weight=stem) for stem in ("ssm_b_norm", "ssm_c_norm")]
    scanned = _scan(at, inner, convolved, step, *sides)
    look_ahead(at)
    gate = at.wide(inner, at.graph.view(projected, half))
    return at.graph.view(at.multiply("ssm_out", _opened(at, inner, at.weigh("ssm_d", convolved), scanned, gate)))


def _mamba2(at: Pass, source: int, beside: int | None) -> int:
    inner = at.shapes["ssm_out"][0]
    kept = _rolling(at)
    projected = at.multiply("ssm_in", source)
    channels = at.shapes["ssm_conv1d"][1]
    joined = _joined(at, channels, at.graph.view(projected), kept)
    at.graph.read(home=at.store)
    convolved = _convolve(at, channels, joined)
    step = at.weigh("ssm_dt.bias", at.wide(at.shapes["ssm_a"][-1], at.graph.view(projected)))
    scanned = _scan(at, inner, convolved, step, convolved, convolved)
    look_ahead(at)
    attended = None if beside is None else project(at, beside)
    gate = at.wide(inner, at.graph.view(projected))
    opened = _opened(at, inner, at.wide(inner, convolved, weight="ssm_d"), scanned, gate)
    if "ssm_norm" in at.shapes:  # by group, so through a view
        opened = at.weigh("ssm_norm", at.wide(inner, opened))
    mixed = at.multiply("ssm_out", opened)
    return mixed if attended is None else at.graph.add(attended, mixed)


def _scan(at: Pass, inner: int, *sources: int) -> int:
    """The scan reads the states where they lie, twice: those of the batch, and those of the other slots, which
    it moves; then the new ones are written back."""
    graph = at.graph
    size = at.values * at.sequences * FLOAT
    held, moved = graph.outside(size, at.store), graph.outside(size, at.store)
    scanned = graph.op(inner * at.rows * FLOAT + size, held, *sources, at.state.slots[1])
    graph.read(graph.view(graph.op(0, moved, at.state.slots[2])), home=at.store)
    graph.read(graph.view(scanned, size), home=at.store)
    return scanned


def _opened(at: Pass, inner: int, skip: int, scanned: int, gate: int) -> int:
    """The scan's result plus what skipped it, through the gate."""
    total = at.graph.op(inner * at.rows * FLOAT, scanned, skip, reuse=(skip,))
    return at.wide(inner, gate, total)
