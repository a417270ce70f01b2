"""The host buffer the logits are copied to."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.flags import Context
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry

FLOAT = 4  # bytes


def output_bytes(geo: Geometry, context: Context) -> int:
    """As reserved at start: one f32 row of logits per slot (``llama_context::output_reserve``). It grows when a batch
    asks for more rows, up to ``context.outputs``. Absent from the engine's own breakdown."""
    return FLOAT * geo.vocab * context.slots
