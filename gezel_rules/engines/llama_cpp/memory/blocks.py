"""What one layer does to activations, read off the tensors it has: attention, feed-forward, experts. In the order of
the engine's graph builders (``llama-graph.cpp``, ``models/*.cpp``), with the sizes of the weights: an architecture
nobody has described is priced by its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gezel_rules.engines.llama_cpp.memory.graph import Graph
from gezel_rules.engines.llama_cpp.memory.tables import Architecture
from gezel_rules.record import NamedTuple

FLOAT = 4  # bytes
Shapes = Mapping[str, tuple[int, ...]]
"""Tensor dimensions of one layer (fastest first) by name without block and suffix."""


class Indexer(NamedTuple):
    """What narrows attention to the best cells. ``zeros``: a constant of every layer; ``turn``: the matrix
    that rotates its keys and queries; ``mask``: the indexer's own;
    ``cells``: it scores; ``top``: it leaves; ``picks``: the last layer's choice (shared by all layers)."""

    zeros: int
    turn: int
    mask: int
    cells: int
    top: int
    picks: list[int]


class CacheInputs(NamedTuple):
    """What a graph is given for a cache. ``positions``: of the tokens; ``turn_k``, ``turn_v``: the matrices that
    rotate the heads of quantised rows (Hadamard); ``keys``, ``values``: the places of the rows to write;
    ``mask``: which cells a token sees."""

    positions: int
    turn_k: int | None
    turn_v: int | None
    keys: int
    values: int
    mask: int


class State(NamedTuple):
    """A recurrent state. ``store``: its device; ``sizes``: bytes of the rows its layer fetches; ``slots``: which rows
    these are, a view of that, and an empty one of the others."""

    number: int
    store: int
    sizes: tuple[int, ...]
    slots: tuple[int, int, int]


class Pass(NamedTuple):
    """One batch through one layer.

    ``number``: of the layer; ``rows``: tokens; ``sequences``: slots in the batch; ``cells``: of its cache, 0
    where flash attention keeps scores out of memory; ``mask``: which of them a token sees; ``inputs``: of its
    cache; ``picks``: which rows need logits; ``used``: experts per token; ``held``: its K and V; ``transposed``:
    bytes of the copy of V that is made without flash attention; ``cast``: of those that flash attention makes of
    types it cannot read; ``rotates``: positions turn queries and keys; ``values``: f32 values of a recurrent
    state; ``state``: what the layer fetches of it; ``ahead``: what it fetches for the next; ``picked``: the
    residual and how many of its rows go on, where sums begin with it; ``owns``: has a cache of its own;
    ``indexer``: what narrows its attention. Devices (-1 = host): ``store``: of its cache; ``home``: of its
    weights, but for those that lie ``elsewhere``, by name.
    """

    graph: Graph
    number: int
    shapes: Shapes
    row: Architecture
    rows: int
    sequences: int
    cells: int
    mask: int
    picks: int
    inputs: CacheInputs
    used: int
    heads: int
    head_k: int
    head_v: int
    held: tuple[int, ...]
    transposed: int
    cast: int
    values: int
    state: State
    ahead: State | None
    picked: tuple[int, int] | None
    owns: bool
    rotates: bool
    store: int
    home: int
    elsewhere: Mapping[str, int]
    indexer: Indexer | None

    def width(self, stem: str) -> int:
        """Values per token that this matrix gives: its second dimension, times the third of a stack of heads."""
        dims = self.shapes[stem]
        return dims[1] if len(dims) > 1 else dims[0]

    def where(self, stem: str) -> int:
        """The device of a weight."""
        return self.elsewhere.get(stem, self.home)

    def multiply(self, stem: str, source: int) -> int:
        """One matrix applied to every token, its bias added in place."""
        out = self.wide(self.width(stem), source, weight=stem)
        return self.weigh(f"{stem}.bias", out) if f"{stem}.bias" in self.shapes else out

    def wide(self, values: int, *sources: int, weight: str | None = None) -> int:
        """A fresh tensor of so many values per token."""
        return self.graph.op(values * self.rows * FLOAT, *sources, home=None if weight is None else self.where(weight))

    def weigh(self, stem: str, source: int) -> int:
        """A weight of one value per value, in place."""
        return self.graph.inplace(source, home=self.where(stem))


def norm(at: Pass, stem: str, source: int) -> int:
    """A norm and its weight: one fresh tensor while the source is still needed, else in place. Absent: the source."""
    return at.weigh(stem, at.graph.inplace(source)) if stem in at.shapes else source


def attention(at: Pass, source: int) -> int:
    """Self-attention of a layer that caches K and V in full, up to its output projection."""
    query, key, value, gate = _projections(at, source)
    store(at, key, value)
    width = at.heads * at.head_v
    scored = scores(at, query, width)
    if gate is not None:
        scored = turned(at, at.inputs.turn_v, scored)
    if gate is not None:  # the query projection carries a gate: half of it opens the output
        opened = at.graph.inplace(at.wide(width, gate))
        scored = at.graph.op(at.graph.size(scored), scored, opened, reuse=(opened,))
    return scored


def store(at: Pass, *rows: int | None) -> None:
    """Write rows into the cache, where it lies: on another device that ends the split."""
    for row, places in zip(rows, at.inputs[3:], strict=False):
        if row is not None:
            at.graph.read(row, places, home=at.store)


def project(at: Pass, scored: int) -> int:
    """The output projection of an attention, and the norm some architectures put after it."""
    if not _gated(at):
        scored = turned(at, at.inputs.turn_v, scored)
    stem = "attn_output" if "attn_output" in at.shapes else "attn_out"
    return at.multiply(stem, scored) if stem in at.shapes else scored


def _projections(at: Pass, source: int) -> tuple[int, int | None, int | None, int | None]:
    """Query, key, value and, where the query matrix is twice as wide as its heads, the gate it carries."""
    if "attn_qkv" in at.shapes:
        joined = at.multiply("attn_qkv", source)
        kv = (at.width("attn_qkv") - at.heads * at.head_k) * at.head_k // (at.head_k + at.head_v or 1)
        values = at.graph.view(joined, at.graph.size(joined) - (at.width("attn_qkv") - kv) * FLOAT)
        return at.wide(at.heads * at.head_k, joined), at.wide(kv, joined), values, None
    full = at.multiply("attn_q", source)
    gate = full if _gated(at) else None
    if gate is None:
        query = _by_head(at, "attn_q", full)
    else:
        query = turned(at, at.inputs.turn_k, at.wide(at.heads * at.head_k, full))
    if "attn_k" not in at.shapes or not at.owns:
        return query, None, None, gate
    value = None if at.row.key_first else _value(at, source)
    key = at.multiply("attn_k", source)
    by_head = _by_head(at, "attn_k", key)
    if value is None:  # some layers cache the key as value too
        value = _value(at, source) or at.wide(at.width("attn_k"), key)
    return query, by_head, value, gate


def _gated(at: Pass) -> bool:
    """The query matrix is twice as wide as its heads: the other half opens the output."""
    shape = at.shapes.get("attn_q")
    return shape is not None and "attn_q_norm" in at.shapes and shape[1] == 2 * at.heads * at.head_k


def _value(at: Pass, source: int) -> int | None:
    if "attn_v" not in at.shapes:
        return None
    value = at.multiply("attn_v", source)
    if at.row.norms_values:
        value = at.graph.op(at.graph.size(value), value)
    return turned(at, at.inputs.turn_v, value)


def _by_head(at: Pass, stem: str, source: int) -> int:
    """A projection split into heads: what is then done to it (a norm per head, the rotation) cannot be done in place,
    because the split is a view; what follows can."""
    scale = at.shapes.get(f"{stem}_norm")
    size = at.graph.size(source)
    if at.rotates or not (scale is None or scale[0] == at.width(stem)):
        source = at.graph.op(size, source, *([at.inputs.positions] if at.rotates else ()))
    return turned(at, at.inputs.turn_k, source)


def turned(at: Pass, matrix: int | None, source: int) -> int:
    """Rows turned by a Hadamard matrix, where their cache is quantised."""
    return source if matrix is None else at.graph.op(at.graph.size(source), matrix, source)


def scores(at: Pass, query: int, width: int) -> int:
    """Attention itself: one fused tensor with flash attention; else scores for every cell, head and token."""
    if not at.cells:
        copied = (at.graph.op(at.cast, *at.held),) if at.cast else at.held
        scored = at.wide(width, query, *copied, at.mask)
        at.graph.attended[at.number] = scored
        return scored
    values = (at.graph.op(at.transposed, *at.held[1:]),) if at.transposed else at.held[1:]
    scores = at.graph.op(at.cells * at.heads * at.rows * FLOAT, query, *at.held[:1])
    weights = at.graph.op(at.graph.size(scores), scores, at.mask, reuse=(scores,))
    scored = at.wide(width, at.wide(width, *values, weights))
    at.graph.attended[at.number] = scored
    return scored


def feed_forward(at: Pass, source: int, suffix: str = "") -> int:
    """A dense feed-forward block: gate and up side by side, their product, down; or up alone."""
    up, gate, down = f"ffn_up{suffix}", f"ffn_gate{suffix}", f"ffn_down{suffix}"
    inner = at.shapes[down][0]
    if gate in at.shapes:
        opened = at.multiply(gate, source)
        raised = at.multiply(up, source)
        return at.multiply(down, at.wide(inner, opened, raised))
    raised = at.multiply(up, source)
    acted = at.graph.inplace(raised) if at.width(up) == inner else at.wide(inner, raised)
    return at.multiply(down, acted)


def experts(at: Pass, routed: int, source: Callable[[], int]) -> int:
    """Mixture of experts: route, run the chosen ones side by side, weigh, add up (``build_moe_ffn``). ``source``: gives
    what they read."""
    graph = at.graph
    logits = at.multiply("ffn_gate_inp", routed)
    count = at.width("ffn_gate_inp")
    biased = any(stem.startswith("exp_probs_b") for stem in at.shapes)
    chosen = at.wide(count, graph.op(graph.size(logits), logits) if biased else logits)
    weights = at.wide(at.used, logits, chosen)
    into = source()
    if at.row.experts_weigh_input:
        into = graph.inplace(at.wide(at.shapes["ffn_gate_exps"][0], into, weights))
    out = _stacked(at, into, chosen)
    if not at.row.experts_weigh_input:
        out = graph.op(graph.size(out), out, weights, reuse=(out,))
    width = at.shapes["ffn_down_exps"][1]
    total = at.wide(width, out, out) if at.used > 1 else at.wide(width, out)
    for _ in range(at.used - 2):
        total = graph.op(graph.size(total), total, out, reuse=(total,))
    return total


def _stacked(at: Pass, source: int, chosen: int) -> int:
    """The chosen experts' matrices over every token: ``used`` rows per token."""
    inner = at.shapes["ffn_down_exps"][0]
    if "ffn_gate_up_exps" in at.shapes:
        both = _chosen(at, "ffn_gate_up_exps", 2 * inner, source, chosen)
        acted = at.wide(inner * at.used, both, both)
    elif "ffn_gate_exps" in at.shapes:
        opened = _chosen(at, "ffn_gate_exps", inner, source, chosen)
        raised = _chosen(at, "ffn_up_exps", inner, source, chosen)
        acted = at.wide(inner * at.used, opened, raised)
    else:
        acted = at.graph.inplace(_chosen(at, "ffn_up_exps", inner, source, chosen))
    return _chosen(at, "ffn_down_exps", at.shapes["ffn_down_exps"][1], acted, chosen)


def _chosen(at: Pass, stem: str, width: int, source: int, chosen: int) -> int:
    out = at.wide(width * at.used, source, chosen, weight=stem)
    return at.weigh(f"{stem}.bias", out) if f"{stem}.bias" in at.shapes else out
