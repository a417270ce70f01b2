"""Embeddings that reach into the layers: one small embedding per layer and token, and Gemma 3n's stacked streams."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.blocks import FLOAT, Pass, attention, norm, project
from gezel_rules.engines.llama_cpp.memory.graph import Graph
from gezel_rules.engines.llama_cpp.memory.offload import HOST


class PerLayer:
    """Embeddings per layer: looked up on the host, joined with a projection of the input in the first layer that
    needs them, then kept to the end. ``size``: bytes for all layers; ``looked``: the host's part; ``scaled``: the
    embedded input; ``joined``: the result once it exists."""

    __slots__ = ("joined", "looked", "scaled", "size")

    def __init__(self, size: int, looked: int, scaled: int) -> None:
        self.size, self.looked, self.scaled = size, looked, scaled
        self.joined: int | None = None

    def join(self, graph: Graph) -> int:
        """The joined embeddings, made by the first caller."""
        if self.joined is None:
            projected = graph.op(self.size, self.scaled)
            normed = graph.op(self.size, projected)  # by layer, so through a view
            self.joined = graph.op(self.size, graph.add(normed, self.looked))
        return self.joined

    def slice(self, graph: Graph, size: int) -> int:
        """One layer's rows of them: on another device only these are copied."""
        return graph.view(self.join(graph), size)


def look_up(graph: Graph, values: int, rows: int, scaled: int) -> PerLayer:
    """The host's lookup of ``values`` per token over all layers, scaled where the first layer is."""
    size = values * rows * FLOAT
    looked = graph.op(size, home=HOST)
    by_layer = graph.view(looked)
    return PerLayer(size, graph.op(size, by_layer, reuse=(by_layer,)), scaled)


def inject(at: Pass, source: int, held: PerLayer) -> int:
    """A layer's own embedding, gated by its output, projected and normed: what is then added to the stream."""
    gate = at.graph.inplace(at.multiply("inp_gate", source))
    small = at.graph.op(at.graph.size(gate), gate, held.slice(at.graph, at.graph.size(gate)), reuse=(gate,))
    return norm(at, "post_norm", at.multiply("proj", small))


def stack(graph: Graph, scaled: int, streams: int, output: int) -> int:
    """Gemma 3n's parallel streams: the input projected once for each further stream, and normed to its size. The
    projection counts as an output weight and lies with it."""
    size = graph.size(scaled)
    more = graph.op(size * (streams - 1), graph.op(size * (streams - 1), scaled), home=output)
    length = graph.op(FLOAT, graph.op(size, scaled))
    grown = graph.op(graph.size(more), more, length)
    lengths = graph.op(FLOAT, graph.inplace(more))
    return graph.op(size * streams, scaled, graph.inplace(grown, lengths))


def stacked_layer(at: Pass, number: int, stacked: int, streams: int, held: PerLayer) -> int:
    """One Gemma 3n block over its streams: predict, attend beside a low-rank path, feed forward, correct, inject."""
    graph = at.graph
    whole = graph.size(stacked)
    one = whole // streams
    turned = graph.op(whole, stacked)
    mixed = graph.op(whole, turned, _coefficients(at, "altup_predict_coef", graph.op(one, graph.view(stacked, one))))
    predicted = graph.add(graph.op(whole, mixed), stacked)
    active = graph.view(predicted, one)
    normed = at.weigh("attn_norm", graph.op(one, active))
    attended = norm(at, "post_attention_norm", project(at, attention(at, normed)))
    gated = graph.inplace(attended, active)
    beside = norm(at, "laurel_post_norm", at.multiply("laurel_r", at.multiply("laurel_l", normed)))
    both = graph.inplace(graph.add(gated, graph.add(beside, normed)))
    out = _sparse(at, number, norm(at, "ffn_norm", both))
    fed = graph.add(norm(at, "post_ffw_norm", out), both)
    spread = graph.op(whole, graph.op(one, fed, active))
    corrected = graph.add(graph.inplace(spread, _coefficients(at, "altup_correct_coef", graph.inplace(fed))), predicted)
    first = graph.view(corrected, one)
    out = inject(at, at.wide(one // (at.rows * FLOAT), first, weight="altup_correct_scale"), held)
    rest = graph.op(whole - one, graph.view(corrected, whole - one), out)
    return graph.op(whole, graph.view(corrected, one), rest)


def _coefficients(at: Pass, stem: str, normed: int) -> int:
    """How much of each stream goes into each, from the norm of the active one."""
    routed = at.graph.inplace(at.weigh("altup_router_norm", normed))
    return at.multiply(stem, at.graph.inplace(at.multiply("altup_router", routed)))


def _sparse(at: Pass, number: int, source: int) -> int:
    """The first layers keep only the strongest gates: two more tensors of the gate's size."""
    graph, inner = at.graph, at.shapes["ffn_down"][0]
    raised = at.multiply("ffn_up", source)
    gate = at.multiply("ffn_gate", source)
    if number >= at.row.sparse_layers:
        kept = graph.inplace(gate)
        return at.multiply("ffn_down", graph.op(graph.size(raised), raised, kept, reuse=(raised, kept)))
    mean = at.wide(1, gate)
    spread = at.wide(1, graph.inplace(graph.op(inner * at.rows * FLOAT, gate, mean)))
    kept = graph.inplace(graph.op(inner * at.rows * FLOAT, gate, spread, reuse=(gate,)))
    return at.multiply("ffn_down", graph.op(inner * at.rows * FLOAT, raised, kept, reuse=(raised, kept)))
