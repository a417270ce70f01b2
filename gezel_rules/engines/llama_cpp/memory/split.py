"""Tensor splits: how many units (layers, and the output as one more) each of several devices gets.

The engine gives contiguous runs in device order, weighted by --tensor-split. Weights that are whole counts of units
land exactly on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from gezel_rules.engines.llama_cpp.memory.estimate import PoolUse, estimate_geometry
from gezel_rules.engines.llama_cpp.memory.flags import Launch, mtp_context, settle
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.kv_cache import caches, mtp_caches
from gezel_rules.engines.llama_cpp.memory.offload import HOST, Owners, place_weights
from gezel_rules.engines.llama_cpp.memory.recurrent import state_parts


def unit_bytes(geo: Geometry, launch: Launch) -> list[int]:
    """Bytes each offloaded unit brings to its device: weights that stay, caches and states."""
    units = len(geo.layers) + 1
    wanted = units if launch.n_gpu_layers is None else min(launch.n_gpu_layers, units)
    start = units - wanted
    each = Owners(tuple(HOST if i < start else i for i in range(units - 1)), units - 1, wanted)
    sums = [0] * units
    context = settle(launch, geo.trained, geo.nextn, geo.row, geo.tables)
    second = mtp_context(launch, context, geo.tables) if geo.nextn else None
    for load, device in place_weights(geo, second is not None, launch, each):
        if device != HOST:
            sums[device] += load.bytes
    if not launch.no_kv_offload:
        held = (*caches(geo, context), *(mtp_caches(geo, second) if second else ()))
        for parts in (*(c.parts for c in held), state_parts(geo, context)):
            for layer, size in parts:
                sums[layer] += size
    return sums[start:]


def balanced(geo: Geometry, launch: Launch, capacities: Sequence[int]) -> tuple[float, ...]:
    """Units in proportion to what each device may take, by the bytes they bring."""
    sizes = unit_bytes(geo, launch)
    total, room = sum(sizes) or 1, sum(max(0, c) for c in capacities) or 1
    counts = [0] * len(capacities)
    device, held, share = 0, 0.0, capacities[0] / room * total
    for size in sizes:
        while device + 1 < len(capacities) and held + size / 2 > share:
            device += 1
            share += max(0, capacities[device]) / room * total
        counts[device] += 1
        held += size
    return tuple(float(c) for c in counts)


def filled(geo: Geometry, even: Launch, pools: Sequence[PoolUse], capacities: Sequence[int]) -> tuple[float, ...]:
    """Devices filled in order as far as they go, the compute buffer each would need taken off first; what is left over
    lands on the last. ``pools``: what the ``even`` split takes."""
    sizes = unit_bytes(geo, even)
    first = _fill_around(sizes, pools, capacities)
    if first == even.tensor_split:
        return first
    # compute buffers depend a little on the split: once more with what the first filling needs
    return _fill_around(sizes, estimate_geometry(geo, even._replace(tensor_split=first)).pools, capacities)


def _fill_around(sizes: Sequence[int], pools: Sequence[PoolUse], capacities: Sequence[int]) -> tuple[float, ...]:
    """Devices filled in order beside the compute buffers of ``pools``."""
    return _fill(sizes, [c - p.compute_bytes for c, p in zip(capacities, pools, strict=False)])


def _fill(sizes: Sequence[int], capacities: Sequence[int]) -> tuple[float, ...]:
    counts, device, left = [0] * len(capacities), 0, capacities[0]
    for size in sizes:
        while size > left and device + 1 < len(capacities):
            device += 1
            left = capacities[device]
        counts[device] += 1
        left -= size
    return tuple(float(c) for c in counts)
