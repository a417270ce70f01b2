"""Recurrent state: always f32, one row per slot, times the snapshots a drafter rolls back through."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.kv_cache import COARSE_RATIO, FINE_RATIO
from gezel_rules.engines.llama_cpp.memory.launch import Context
from gezel_rules.engines.llama_cpp.memory.layers import number

FLOAT = 4  # bytes


def state_parts(geo: Geometry, context: Context) -> tuple[tuple[int, int], ...]:
    """Bytes of state by layer index (``llama_memory_recurrent``): 4 × (R + S) × slots × (1 + rollback)."""
    if geo.row.compressed:
        return _compressor_parts(geo, context)
    each = FLOAT * (geo.state_r + geo.state_s) * context.slots * context.states
    extra = dict(_hash_history(geo, context))
    return tuple((x.number, each + extra.get(x.number, 0)) for x in geo.layers if x.recurrent and not x.nextn)


def _hash_history(geo: Geometry, context: Context) -> tuple[tuple[int, int], ...]:
    """The convolution history of an n-gram embedding module: one more f32 row on the layers that list it."""
    header = geo.header
    listed, kernel = header.get("ple.layers", ()), number(header, "ple.conv_kernel", 0)
    paths = number(header, "hyper_connection.count", 0)
    values = (kernel - 1) * number(header, "ple.ngram_size", 0) * paths * geo.embedding
    if not isinstance(listed, tuple) or kernel < 1 or values <= 0:
        return ()
    return tuple((int(i), FLOAT * values * context.slots * context.states) for i in listed)


def _compressor_parts(geo: Geometry, context: Context) -> tuple[tuple[int, int], ...]:
    """DeepSeek-V4's compressor states: two f32 planes per slot and snapshot (``llama_dsv4_comp_state``)."""
    planes = 2 * FLOAT * context.slots * context.states
    head = geo.head_k
    by_ratio = {
        FINE_RATIO: planes * 2 * FINE_RATIO * 2 * (head + geo.indexer),
        COARSE_RATIO: planes * COARSE_RATIO * head,
    }
    return tuple((x.number, by_ratio[x.ratio]) for x in geo.layers if x.ratio in by_ratio and not x.nextn)
