"""Multi-head latent attention (MLA), with or without its queries absorbed into the latent space, and the lightning
indexer that narrows it to the best cells (``models/deepseek2.cpp``, ``deepseek32.cpp``, ``glm-dsa.cpp``)."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.blocks import Indexer, Pass, attention, norm, scores, store, turned


def attend(at: Pass, source: int) -> int:
    """Self-attention of a layer, latent or not, up to its output projection."""
    if "attn_kv_a_mqa" not in at.shapes:
        return attention(at, source)
    if at.indexer is not None and "indexer.attn_k" in at.shapes:
        _index_keys(at, at.indexer, source)
    low = norm(at, "attn_q_a_norm", at.multiply("attn_q_a", source)) if "attn_q_a" in at.shapes else source
    query = at.multiply("attn_q_b" if "attn_q_a" in at.shapes else "attn_q", low)
    if "attn_kv_b" in at.shapes:
        return _unabsorbed(at, query, source)
    return _absorbed(at, query, low, source)


def _absorbed(at: Pass, query: int, low: int, source: int) -> int:
    """One K row for all heads; queries are turned into the latent space, results out of it."""
    latent = at.shapes["attn_kv_a_norm"][0]
    rope = at.width("attn_kv_a_mqa") - latent
    absorbed = at.wide(latent * at.heads, query)
    rotated = at.wide(rope * at.heads, query, at.inputs.positions) if at.rotates else query
    joined = at.wide((latent + rope) * at.heads, absorbed, rotated)
    compressed = at.multiply("attn_kv_a_mqa", source)
    normed = at.wide(latent, compressed)
    rotated = at.wide(rope, compressed, at.inputs.positions) if at.rotates else compressed
    store(at, at.wide(latent + rope, normed, rotated))
    if at.indexer is not None:
        at = at._replace(mask=_narrowed(at, low, source))
    scored = scores(at, joined, latent * at.heads)
    value = at.shapes["attn_v_b"][1] if "attn_v_b" in at.shapes else at.head_v
    return at.wide(value * at.heads, at.wide(value * at.heads, scored))


def _unabsorbed(at: Pass, query: int, source: int) -> int:
    """K and V in full, from files that still have both in one matrix."""
    latent = at.shapes["attn_kv_a_norm"][0]
    rope = at.width("attn_kv_a_mqa") - latent
    if at.rotates:
        query = at.wide(at.heads * at.head_k, query, at.inputs.positions)
    compressed = at.multiply("attn_kv_a_mqa", source)
    both = at.multiply("attn_kv_b", at.wide(latent, compressed))
    value = at.wide(at.heads * at.head_v, both)
    rotated = at.wide(rope, compressed, at.inputs.positions) if at.rotates else compressed
    key = at.wide(at.heads * at.head_k, both, at.wide(rope * at.heads, rotated))
    query, key = turned(at, at.inputs.turn_k, query), turned(at, at.inputs.turn_k, key)
    value = turned(at, at.inputs.turn_v, value)
    store(at, key, value)
    return scores(at, query, at.heads * at.head_v)


def _index_keys(at: Pass, index: Indexer, source: int) -> None:
    """The indexer's own keys: projected, normed, turned, spread (Hadamard), stored."""
    key = at.wide(at.width("indexer.attn_k"), at.multiply("indexer.attn_k", source), weight="indexer.attn_k")
    for given in (at.inputs.positions, index.turn):
        key = at.graph.op(at.graph.size(key), key, given)
    store(at, key)


def _narrowed(at: Pass, low: int, source: int) -> int:
    """The mask that leaves only the best cells: every cell scored by its indexer key, the best picked, all others
    masked. Layers without an indexer of their own use the last one's picks."""
    graph, index = at.graph, at.indexer
    assert index is not None
    zeros = graph.inplace(index.zeros)
    if "indexer.attn_q_b" in at.shapes:
        query = at.multiply("indexer.attn_q_b", low)
        for given in (at.inputs.positions, index.turn):
            query = graph.op(graph.size(query), query, given)
        weights = query
        if "indexer.proj" in at.shapes:
            weights = at.wide(at.width("indexer.proj"), at.multiply("indexer.proj", source))
        scored = at.wide(index.cells, query, weights, index.mask)
        best = at.wide(index.top, scored)
        index.picks[:] = [graph.op(graph.size(best), best)]
    hidden = graph.op(graph.size(at.mask), at.mask)
    graph.read(zeros, graph.view(index.picks[0]), hidden)
    return graph.op(graph.size(hidden), graph.view(hidden), at.mask, reuse=(at.mask,))
