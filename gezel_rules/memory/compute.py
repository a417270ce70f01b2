"""Compute buffers."""

from __future__ import annotations

from gezel_rules.memory.geometry import Geometry
from gezel_rules.memory.kv_cache import Cache
from gezel_rules.memory.launch import Context
from gezel_rules.memory.offload import HOST, Owners


def compute_parts(geo: Geometry, context: Context, caches: tuple[Cache, ...], own: Owners) -> dict[int, int]:
    """Bytes per device: one batch of the widest FFN and of the residual stream, and one mask row set per cache."""
    ff = max((x.ff for x in geo.layers), default=0)
    activations = context.ubatch * 4 * (3 * ff + 5 * geo.embedding)
    masks = sum(c.cells * context.ubatch * (2 if context.flash else 4) for c in caches)
    scores = (
        0 if context.flash else max((x.heads for x in geo.layers), default=0) * context.ctx_seq * context.ubatch * 4
    )
    return dict.fromkeys({*own.layers, own.output, HOST}, activations + masks + scores)
