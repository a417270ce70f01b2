"""What one layer does to activations, read off the tensors it has: attention, feed-forward, experts. In the order of
the engine's graph builders (``llama-graph.cpp``, ``models/*.cpp``), with the sizes of the weights: an architecture
nobody has described is priced by its tensors."""

from __future__ import annotations

from collections.abc import Mapping

from gezel_rules.engines.llama_cpp.memory.graph import Graph
from gezel_rules.engines.llama_cpp.memory.tables import Architecture
from gezel_rules.record import NamedTuple

FLOAT = 4  # bytes
Shapes = Mapping[str, tuple[int, ...]]
"""Tensor dimensions of one layer (fastest first) by name without block and suffix."""


class Indexer(NamedTuple):
    """What narrows attention to the best cells. ``zeros``: a constant of every layer; ``mask``: the indexer's own;
    ``cells``: it scores; ``top``: it leaves; ``picks``: the last layer's choice (shared by all layers)."""

    zeros: int
    mask: int
    cells: int
    top: int
    picks: list[int]


class Pass(NamedTuple):
    """One batch through one layer.

    ``rows``: tokens; ``sequences``: slots in the batch; ``cells``: of its cache, 0 where flash attention keeps scores
    out of memory; ``mask``: the mask's node; ``places``: of V values in a transposed cache; ``used``: experts per
    token; ``held``: its K and V, where they are not on its device; ``cast``: bytes of the copies flash attention makes
    of types it cannot read; ``rotates``: positions turn queries and keys; ``hadamard_k/v``: rows of a quantised cache
    go through one more multiplication; ``state``: f32 values of a recurrent state; ``owns``: has a cache of its own;
    ``indexer``: what narrows its attention. Devices (-1 = host): ``store``: of its cache; ``gate``: where a state's
    gate is computed; ``score``: attention itself; ``attend``/``norm``/``feed``/``expert``: its parts; ``follow``: the
    next layer.
    """

    graph: Graph
    shapes: Shapes
    row: Architecture
    rows: int
    sequences: int
    cells: int
    mask: int
    places: int | None
    used: int
    heads: int
    head_k: int
    head_v: int
    held: tuple[int, ...]
    cast: int
    state: int
    owns: bool
    rotates: bool
    hadamard_k: bool
    hadamard_v: bool
    store: int
    gate: int
    score: int
    attend: int
    norm: int
    feed: int
    expert: int
    follow: int
    indexer: Indexer | None

    def width(self, stem: str) -> int:
        """Values per token that this matrix gives: its second dimension, times the third of a stack of heads."""
        dims = self.shapes[stem]
        return dims[1] if len(dims) > 1 else dims[0]

    def multiply(self, stem: str, source: int) -> int:
        """One matrix applied to every token, its bias added in place."""
        out = self.graph.op(self.width(stem) * self.rows * FLOAT, source)
        return self.graph.inplace(out) if f"{stem}.bias" in self.shapes else out

    def wide(self, values: int, *sources: int) -> int:
        """A fresh tensor of so many values per token."""
        return self.graph.op(values * self.rows * FLOAT, *sources)


def norm(at: Pass, stem: str, source: int, near: int | None = None) -> int:
    """A norm and its weight: one fresh tensor while the source is still needed, else in place. Absent: the source.
    The norm itself has no weight and stays on the device before (``near``), unless that is the host."""
    if stem not in at.shapes:
        return source
    graph, here = at.graph, at.graph.device
    if near is not None and near >= 0:
        graph.device = near
    normed = graph.inplace(source)
    graph.device = here
    return graph.inplace(normed)


def attention(at: Pass, source: int) -> int:
    """Self-attention of a layer that caches K and V in full, up to its output projection."""
    at.graph.device = at.attend
    query, key, value, gate = _projections(at, source)
    store(at, key, value)
    width = at.heads * at.head_v
    scored = scores(at, query, width)
    if gate is not None and at.hadamard_v:
        scored = at.wide(width, scored)
    if gate is not None:  # the query projection carries a gate: half of it opens the output
        opened = at.graph.inplace(at.wide(width, gate))
        scored = at.graph.op(at.graph.size(scored), scored, opened, reuse=(opened,))
    return scored


def store(at: Pass, *rows: int | None) -> None:
    """Write rows into the cache, where it lies: on another device that ends the split."""
    at.graph.device = at.store
    for row in (*rows, at.places):
        if row is not None:
            at.graph.read(row)
    at.graph.device = at.attend


def project(at: Pass, scored: int) -> int:
    """The output projection of an attention, and the norm some architectures put after it."""
    at.graph.device = at.attend
    if at.hadamard_v and not _gated(at):
        scored = at.graph.op(at.graph.size(scored), scored)
    stem = "attn_output" if "attn_output" in at.shapes else "attn_out"
    return at.multiply(stem, scored) if stem in at.shapes else scored


def _projections(at: Pass, source: int) -> tuple[int, int | None, int | None, int | None]:
    """Query, key, value and, where the query matrix is twice as wide as its heads, the gate it carries."""
    if "attn_qkv" in at.shapes:
        joined = at.multiply("attn_qkv", source)
        kv = (at.width("attn_qkv") - at.heads * at.head_k) * at.head_k // (at.head_k + at.head_v or 1)
        return at.wide(at.heads * at.head_k, joined), at.wide(kv, joined), joined, None
    full = at.multiply("attn_q", source)
    gate = full if _gated(at) else None
    query = _by_head(at, "attn_q", full) if gate is None else at.wide(at.heads * at.head_k, full)
    if "attn_k" not in at.shapes or not at.owns:
        return query, None, None, gate
    value = None if at.row.key_first else _value(at, source)
    key = at.multiply("attn_k", source)
    turned = _by_head(at, "attn_k", key)
    if value is None:  # some layers cache the key as value too
        value = _value(at, source) or at.wide(at.width("attn_k"), key)
    return query, turned, value, gate


def _gated(at: Pass) -> bool:
    """The query matrix is twice as wide as its heads: the other half opens the output."""
    shape = at.shapes.get("attn_q")
    return shape is not None and "attn_q_norm" in at.shapes and shape[1] == 2 * at.heads * at.head_k


def _value(at: Pass, source: int) -> int | None:
    if "attn_v" not in at.shapes:
        return None
    value = at.multiply("attn_v", source)
    return at.graph.op(at.graph.size(value), value) if at.hadamard_v else value


def _by_head(at: Pass, stem: str, source: int) -> int:
    """A projection split into heads: what is then done to it (a norm per head, the rotation) cannot be done in place,
    because the split is a view; what follows can."""
    scale = at.shapes.get(f"{stem}_norm")
    size = at.graph.size(source)
    if at.rotates or not (scale is None or scale[0] == at.width(stem)):
        source = at.graph.op(size, source)
    return at.graph.op(size, source) if at.hadamard_k else source


def scores(at: Pass, query: int, width: int) -> int:
    """Attention itself: one fused tensor with flash attention; else scores for every cell, head and token."""
    at.graph.device = at.score
    if not at.cells:
        copied = (at.graph.op(at.cast, *at.held),) if at.cast else at.held
        scored = at.wide(width, query, *copied, at.mask)
        at.graph.device = at.attend
        return scored
    scores = at.graph.op(at.cells * at.heads * at.rows * FLOAT, query, *at.held)
    weights = at.graph.op(at.graph.size(scores), scores, at.mask, reuse=(scores,))
    scored = at.wide(width, at.wide(width, weights))
    at.graph.device = at.attend
    return scored


def feed_forward(at: Pass, source: int, suffix: str = "") -> int:
    """A dense feed-forward block: gate and up side by side, their product, down; or up alone."""
    at.graph.device = at.feed
    up, gate, down = f"ffn_up{suffix}", f"ffn_gate{suffix}", f"ffn_down{suffix}"
    inner = at.shapes[down][0]
    if gate in at.shapes:
        opened = at.multiply(gate, source)
        raised = at.multiply(up, source)
        return at.multiply(down, at.wide(inner, opened, raised))
    raised = at.multiply(up, source)
    acted = at.graph.inplace(raised) if at.width(up) == inner else at.wide(inner, raised)
    return at.multiply(down, acted)


def experts(at: Pass, routed: int, source: int) -> int:
    """Mixture of experts: route, run the chosen ones side by side, weigh, add up (``build_moe_ffn``)."""
    graph = at.graph
    graph.device = at.feed
    logits = at.multiply("ffn_gate_inp", routed)
    count = at.width("ffn_gate_inp")
    biased = any(stem.startswith("exp_probs_b") for stem in at.shapes)
    chosen = at.wide(count, graph.op(graph.size(logits), logits) if biased else logits)
    weights = at.wide(at.used, logits, chosen)
    graph.device = at.expert
    if at.row.experts_weigh_input:
        source = graph.inplace(at.wide(at.shapes["ffn_gate_exps"][0], source, weights))
    out = _stacked(at, source, chosen)
    graph.device = _weighing(at)
    if not at.row.experts_weigh_input:
        out = graph.op(graph.size(out), out, weights, reuse=(out,))
    width = at.shapes["ffn_down_exps"][1]
    total = at.wide(width, out, out) if at.used > 1 else at.wide(width, out)
    for _ in range(at.used - 2):
        total = graph.op(graph.size(total), total, out, reuse=(total,))
    return total


def _weighing(at: Pass) -> int:
    """Where experts are weighed and added, which takes no weights: with them, unless they are on the host; then with
    whatever comes next."""
    if at.expert >= 0:
        return at.attend
    return at.feed if "ffn_down_shexp" in at.shapes or "ffn_down" in at.shapes else at.follow


def _stacked(at: Pass, source: int, chosen: int) -> int:
    """The chosen experts' matrices over every token: ``used`` rows per token."""
    inner = at.shapes["ffn_down_exps"][0]
    if "ffn_gate_up_exps" in at.shapes:
        both = at.wide(2 * inner * at.used, source, chosen)
        acted = at.wide(inner * at.used, both, both)
    elif "ffn_gate_exps" in at.shapes:
        opened = _biased(at, "ffn_gate_exps", at.wide(inner * at.used, source, chosen))
        raised = _biased(at, "ffn_up_exps", at.wide(inner * at.used, source, chosen))
        acted = at.wide(inner * at.used, opened, raised)
    else:
        acted = at.graph.inplace(at.wide(inner * at.used, source, chosen))
    return _biased(at, "ffn_down_exps", at.wide(at.shapes["ffn_down_exps"][1] * at.used, acted, chosen))


def _biased(at: Pass, stem: str, source: int) -> int:
    return at.graph.inplace(source) if f"{stem}.bias" in at.shapes else source
