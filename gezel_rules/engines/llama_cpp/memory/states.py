"""Layers that keep a state instead of (or beside) a KV cache: what they do to activations."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.blocks import FLOAT, Pass, project
from gezel_rules.engines.llama_cpp.memory.rwkv import time_mix


def recurrence(at: Pass, source: int, beside: int | None = None) -> int:
    """The recurrent part of a layer, told by its tensors: short convolution, delta net, Mamba 1 or 2, RWKV.
    ``beside``: what attention gave in the same layer, projected before the gate opens (Mamba 2) and added."""
    at.graph.device = at.attend
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


def _joined(at: Pass, width: int, source: int) -> int:
    """The kept rows of the causal convolution joined to the batch; the last ones are kept again."""
    kernel = at.shapes["ssm_conv1d"][0] if "ssm_conv1d" in at.shapes else at.shapes["shortconv.conv"][0]
    joined = at.graph.op((at.rows + (kernel - 1) * at.sequences) * width * FLOAT, source)
    at.graph.read(joined)
    return joined


def _convolve(at: Pass, width: int, joined: int) -> int:
    """The convolution itself, its bias and activation in place."""
    return at.graph.inplace(at.wide(width, joined))


def _short_convolution(at: Pass, source: int) -> int:
    joined = at.multiply("shortconv.in_proj", source)
    width = at.width("shortconv.in_proj") // 3
    product = at.wide(width, joined, joined)
    convolved = _convolve(at, width, _joined(at, width, product))
    return at.multiply(
        "shortconv.out_proj", at.graph.op(width * at.rows * FLOAT, joined, convolved, reuse=(convolved,))
    )


def _delta_net(at: Pass, source: int) -> int:
    """Gated delta net: Q, K and V convolved together, one fused update of the state."""
    joined = at.width("attn_qkv")
    inner = at.shapes["ssm_out"][0]
    keys = (joined - inner) // 2
    kept = _joined(at, joined, at.multiply("attn_qkv", source))
    state = at.graph.op(at.state * at.sequences * FLOAT)
    convolved = _convolve(at, joined, kept)
    query, key = at.wide(keys, convolved), at.wide(keys, convolved)
    if at.row.delta_repeats:  # keys are spread over the value heads first
        query = at.wide(inner, query)
        key = at.wide(inner, key)
    heads = at.shapes["ssm_dt"][0] if "ssm_dt" in at.shapes else at.shapes["ssm_a"][0]
    decay, rate = at.wide(heads, source), at.wide(heads, source)
    out = at.graph.op((inner * at.rows + at.state * at.sequences) * FLOAT, query, key, convolved, decay, rate, state)
    at.graph.read(out)
    normed = at.wide(inner, out)
    opened = at.graph.inplace(at.multiply("attn_gate", source))
    gated = at.graph.op(inner * at.rows * FLOAT, normed, opened, reuse=(normed, opened))
    return at.multiply("ssm_out", gated)


def _delta_attention(at: Pass, source: int) -> int:
    """Kimi's delta attention: three convolutions and a per-channel gate."""
    width = at.width("attn_q")
    parts = []
    for stem in ("attn_q", "attn_k", "attn_v"):
        projected = at.multiply(stem, source)
        parts.append(at.graph.inplace(at.wide(width, at.wide(width, projected))))
    state = at.graph.op(at.state * at.sequences * FLOAT)
    decay, rate = at.wide(width, source), at.wide(at.heads, source)
    out = at.graph.op((width * at.rows + at.state * at.sequences) * FLOAT, *parts, decay, rate, state)
    at.graph.read(out)
    gate = at.wide(width, source)
    gated = at.graph.op(width * at.rows * FLOAT, at.wide(width, out), gate, reuse=(gate,))
    return at.multiply("attn_output", gated) if "attn_output" in at.shapes else gated


def _mamba1(at: Pass, source: int) -> int:
    inner = at.width("ssm_in") // 2
    joined = at.multiply("ssm_in", source)
    convolved = _convolve(at, inner, _joined(at, inner, joined))
    ranked = at.multiply("ssm_x", convolved)
    step = at.multiply("ssm_dt", at.wide(at.shapes["ssm_dt"][0], ranked))
    out = at.graph.op((inner * at.rows + at.state * at.sequences) * FLOAT, convolved, step, ranked, ranked)
    _store_states(at, out)
    gate = _gate(at, inner, joined)
    return at.multiply("ssm_out", _opened(at, inner, convolved, out, gate))


def _mamba2(at: Pass, source: int, beside: int | None) -> int:
    inner = at.shapes["ssm_out"][0]
    joined = at.multiply("ssm_in", source)
    channels = at.shapes["ssm_conv1d"][1]
    convolved = _convolve(at, channels, _joined(at, channels, joined))
    step = at.graph.inplace(at.wide(at.shapes["ssm_a"][-1], joined))
    out = at.graph.op((inner * at.rows + at.state * at.sequences) * FLOAT, convolved, step, convolved, convolved)
    _store_states(at, out)
    attended = None if beside is None else project(at, beside)
    gate = _gate(at, inner, joined)
    opened = _opened(at, inner, convolved, out, gate)
    if "ssm_norm" in at.shapes:  # by group, so through a view
        opened = at.graph.inplace(at.wide(inner, opened))
    mixed = at.multiply("ssm_out", opened)
    return mixed if attended is None else at.graph.add(attended, mixed)


def _store_states(at: Pass, scanned: int) -> None:
    """Write the new states back; those of the other slots are moved through a copy."""
    at.graph.read(at.graph.op(at.state * (at.sequences - 1) * FLOAT))
    at.graph.read(scanned)


def _gate(at: Pass, inner: int, joined: int) -> int:
    """The gate's half of the projection. It has no weight: where the next recurrent layer's state has been fetched
    just before, it is computed on that layer's device."""
    at.graph.device = at.gate
    gate = at.wide(inner, joined)
    at.graph.device = at.attend
    return gate


def _opened(at: Pass, inner: int, convolved: int, scanned: int, gate: int) -> int:
    """The scan's result plus the skip of its input, through the gate."""
    skip = at.wide(inner, convolved)
    total = at.graph.op(inner * at.rows * FLOAT, scanned, skip, reuse=(skip,))
    return at.wide(inner, gate, total)
