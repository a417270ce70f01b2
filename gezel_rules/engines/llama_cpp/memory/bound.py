"""The fewest bytes a launch can take, wherever its weights lie: tells what no placement can make fit."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.flags import Launch, settle
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.host_buffers import processor_of
from gezel_rules.engines.llama_cpp.memory.kv_cache import caches
from gezel_rules.engines.llama_cpp.memory.offload import loads
from gezel_rules.engines.llama_cpp.memory.recurrent import state_parts


def least_bytes(geo: Geometry, launch: Launch) -> int:
    """Bytes over all pools: weights where they take least, what is read on demand left out, caches and states. Compute
    buffers, which no placement does without, are not counted."""
    context, processor = settle(launch, geo.trained, geo.nextn, geo.row, geo.tables), processor_of(launch, geo.tables)
    stored = sum(cache.bytes for cache in caches(geo, context)) + sum(size for _, size in state_parts(geo, context))
    return geo.once(_lightest)[processor] + stored


def _lightest(geo: Geometry) -> dict[str, int]:
    """By processor, the bytes of the trunk's weights where each takes least, on a device or on the host."""
    trunk = [load for load in geo.once(loads) if load.place < geo.trunk or load.kept]
    return {
        name: sum(min(load.bytes, sum(load.buffers[name].values())) - load.lazy for load in trunk)
        for name in geo.tables.processors
    }
