"""Compute buffers of graphs that are not replayed, from their widest tensors: for architectures whose blocks are not
known to ``compute`` and for files whose layers are incomplete. Callers must say that it is coarse."""

from __future__ import annotations

from itertools import pairwise

from gezel_rules.engines.llama_cpp.memory.blocks import FLOAT
from gezel_rules.engines.llama_cpp.memory.flags import Context
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.kv_cache import window_cells
from gezel_rules.engines.llama_cpp.memory.layers import number
from gezel_rules.engines.llama_cpp.memory.offload import HOST, Owners

HALF = 2  # bytes of a mask entry with flash attention
MOST_STEPS = 192
"""Different steps from one kind of layer to the next that are replayed: the engine loads 512 layers, and no model is
known that has as many steps as this; a header made to cost time has."""


def replayed(geo: Geometry) -> bool:
    """Whether the blocks of this model are known: not those with hyper-connections, compressed caches, or an indexer
    outside latent attention; and not more than a replay can tell in good time."""
    indexed = geo.row.indexer != "none" and geo.indexer > 0
    strange = geo.row.compressed or geo.row.indexer_slots is not None or (indexed and not geo.mla)
    if strange or number(geo.header, "hyper_connection.count", 0) > 1:
        return False
    return geo.once(_steps) <= MOST_STEPS


def _steps(geo: Geometry) -> int:
    """How many different steps there are from one kind of layer to the next."""
    return len(set(pairwise(geo.kinds)))


def coarse_parts(geo: Geometry, context: Context, own: Owners) -> dict[int, int]:
    """Bytes on every device: feed-forward, queries twice, residual streams three times, masks (for each KV head and
    twice where an indexer narrows them), scores without flash attention, logits. Against the engine on two
    architectures with indexers (DeepSeek-V4, MiniMax-M3) and one device: 1.1 to 2.3 times its figure. Low where a
    model is split over devices: what crosses between them is left out."""
    streams = max(1, number(geo.header, "hyper_connection.count", 1))
    heads = max((x.heads for x in geo.layers), default=0)
    kv_heads = max((x.kv_heads for x in geo.layers), default=0)
    wide = max((_feed(geo, i) for i in range(len(geo.layers))), default=0)
    rows = context.ubatch * FLOAT * (wide + 2 * heads * geo.head_k + (3 * streams + 2) * geo.embedding)
    masks = HALF * context.ubatch * (context.ctx_seq + (window_cells(geo, context) if geo.window else 0))
    if geo.indexer and geo.row.indexer != "none":
        masks += 2 * FLOAT * context.ubatch * context.ctx_seq * max(1, kv_heads)
    scores = 0 if context.flash else FLOAT * context.ctx_seq * context.ubatch * heads
    return dict.fromkeys((*own.layers, own.output, HOST), rows + masks + scores + geo.vocab * context.slots * FLOAT)


def _feed(geo: Geometry, layer: int) -> int:
    """Values per token of a layer's feed-forward at its widest."""
    experts = geo.shapes[layer].get("ffn_down_exps")
    dense = 3 * geo.layers[layer].ff
    return max(dense, geo.experts_used * (3 * experts[0] + 2 * geo.embedding)) if experts else dense
