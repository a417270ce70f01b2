"""Embeddings that reach into the layers: one small embedding per layer and token, and Gemma 3n's stacked streams."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.blocks import FLOAT, Pass, attention, norm, project
from gezel_rules.engines.llama_cpp.memory.graph import Graph


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
        joined = self.join(graph)
        home = graph.devices[joined]
        return joined if home == graph.device else graph.outside(size, home)


def look_up(graph: Graph, values: int, rows: int, scaled: int, first: int) -> PerLayer:
    """The host's lookup of ``values`` per token over all layers, scaled where the first layer is."""
    graph.device = -1
    size = values * rows * FLOAT
    looked = graph.op(size)
    graph.device = first
    return PerLayer(size, graph.op(size, looked), scaled)


def inject(at: Pass, stream: int, source: int, held: PerLayer) -> int:
    """A layer's own embedding, gated by its output, projected and normed: what is then added to the stream."""
    at.graph.device = at.attend
    gate = at.graph.inplace(at.multiply("inp_gate", source))
    small = at.graph.op(at.graph.size(gate), gate, held.slice(at.graph, at.graph.size(gate)), reuse=(gate,))
    del stream
    return norm(at, "post_norm", at.multiply("proj", small))


def stack(graph: Graph, scaled: int, streams: int, output: int) -> int:
    """Gemma 3n's parallel streams: the input projected once for each further stream, and normed to its size. The
    projection counts as an output weight and lies with it."""
    size = graph.size(scaled)
    graph.device = output
    more = graph.op(size * (streams - 1), graph.op(size * (streams - 1), scaled))
    grown = graph.op(graph.size(more), more)
    graph.read(graph.inplace(more))
    return graph.op(size * streams, scaled, graph.op(graph.size(grown), grown, reuse=(grown,)))


def stacked_layer(at: Pass, number: int, stacked: int, streams: int, held: PerLayer, before: int) -> int:
    """One Gemma 3n block over its streams: predict, attend beside a low-rank path, feed forward, correct, inject."""
    graph = at.graph
    whole = graph.size(stacked)
    one = whole // streams
    graph.device = before if before >= 0 else at.attend
    turned, normed = graph.op(whole, stacked), graph.op(one, stacked)
    graph.device = at.attend
    mixed = graph.op(whole, turned, graph.inplace(normed))
    predicted = graph.add(graph.op(whole, mixed), stacked)
    normed = graph.inplace(graph.op(one, predicted))
    attended = norm(at, "post_attention_norm", project(at, attention(at, normed)))
    gated = graph.op(one, attended, predicted, reuse=(attended,))
    beside = norm(at, "laurel_post_norm", at.multiply("laurel_r", at.multiply("laurel_l", normed)))
    both = graph.add(gated, graph.op(one, beside, normed, reuse=(beside,)))
    graph.device = at.norm
    out = _sparse(at, number, norm(at, "ffn_norm", both, at.attend))
    graph.device = at.attend
    fed = graph.add(norm(at, "post_ffw_norm", out), both)
    spread = graph.op(whole, graph.op(one, fed, predicted))
    graph.read(graph.inplace(graph.op(one, fed)))
    corrected = graph.op(whole, spread, predicted, reuse=(spread,))
    out = inject(at, corrected, graph.op(one, corrected), held)
    if at.attend >= 0 or at.follow < 0:
        return graph.op(whole, corrected, graph.op(whole - one, corrected, out))
    graph.device = at.follow  # the last steps have no weights: from the host they go to the next layer, which copies
    first, rest = graph.outside(one, at.attend), graph.outside(whole - one, at.attend)  # the parts it needs
    return graph.op(whole, first, graph.op(whole - one, rest, out, reuse=(rest,)))


def _sparse(at: Pass, number: int, source: int) -> int:
    """The first layers keep only the strongest gates: two more tensors of the gate's size."""
    graph, inner = at.graph, at.shapes["ffn_down"][0]
    graph.device = at.feed
    raised = at.multiply("ffn_up", source)
    gate = at.multiply("ffn_gate", source)
    if number >= at.row.sparse_layers:
        kept = graph.inplace(gate)
        return at.multiply("ffn_down", graph.op(graph.size(raised), raised, kept, reuse=(raised, kept)))
    mean = at.wide(1, gate)
    spread = at.wide(1, graph.inplace(graph.op(inner * at.rows * FLOAT, gate, mean)))
    kept = graph.inplace(graph.op(inner * at.rows * FLOAT, gate, spread, reuse=(gate,)))
    return at.multiply("ffn_down", graph.op(inner * at.rows * FLOAT, raised, kept, reuse=(raised, kept)))
