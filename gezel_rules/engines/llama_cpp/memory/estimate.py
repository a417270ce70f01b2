"""The memory of one launch, pool by pool. Geometry is computed once; an estimate costs a millisecond or two
of arithmetic, so that a planner can ask for hundreds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gezel_rules.engines.llama_cpp.memory.coarse import coarse_parts, replayed
from gezel_rules.engines.llama_cpp.memory.compute import Layout, compute_parts, draft_parts, layout_of, strays
from gezel_rules.engines.llama_cpp.memory.flags import Context, Launch, mtp_context, settle
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry, geometry
from gezel_rules.engines.llama_cpp.memory.host_buffers import BUFFERS, processor_of
from gezel_rules.engines.llama_cpp.memory.kv_cache import Cache, caches, mtp_caches
from gezel_rules.engines.llama_cpp.memory.offload import HOST, owners, place_layers, place_weights
from gezel_rules.engines.llama_cpp.memory.output import output_bytes
from gezel_rules.engines.llama_cpp.memory.recurrent import state_parts
from gezel_rules.engines.llama_cpp.memory.refusals import refusals
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.engines.llama_cpp.memory.header_info import HeaderInfo
    from gezel_rules.engines.llama_cpp.memory.offload import Owners
    from gezel_rules.engines.llama_cpp.memory.tables import MemoryTables
    from gezel_rules.engines.llama_cpp.memory.weights import Load


INCOMPLETE = (KeyError, IndexError, ZeroDivisionError)
"""What building a graph raises when a layer lacks a tensor that it needs."""


class PoolUse(NamedTuple):
    """What one device, or the host, holds: bytes of weights, of caches and states, of compute buffers."""

    name: str
    model_bytes: int
    context_bytes: int
    compute_bytes: int

    @property
    def total(self) -> int:
        """All three, in bytes."""
        return self.model_bytes + self.context_bytes + self.compute_bytes


class DraftMemory(NamedTuple):
    """What the second context of an MTP head adds: caches, and bytes of its compute and output buffers."""

    caches: tuple[Cache, ...]
    compute_bytes: int
    output_bytes: int

    @property
    def total(self) -> int:
        """All of it, in bytes."""
        return sum(c.bytes for c in self.caches) + self.compute_bytes + self.output_bytes


class Estimate(NamedTuple):
    """Bytes of one launch; caches, compute and output are the main context's, ``draft`` an MTP head's.

    ``buffers``: the weights on the host by the engine's buffer; ``lazy_bytes``: part of the weights that is read on
    demand and need not be resident; ``unknown``: what the numbers rest on without proof; ``refused``: why the engine
    would not start like this.
    """

    arch: str
    context: Context
    weights_bytes: int
    buffers: Mapping[str, int]
    lazy_bytes: int
    caches: tuple[Cache, ...]
    recurrent_bytes: int
    compute_bytes: int
    output_bytes: int
    draft: DraftMemory | None
    pools: tuple[PoolUse, ...]
    unknown: tuple[str, ...]
    refused: tuple[str, ...]

    @property
    def kv_bytes(self) -> int:
        """All KV caches of the main context."""
        return sum(c.bytes for c in self.caches)

    @property
    def total_bytes(self) -> int:
        """Everything that has to be resident."""
        parts = self.weights_bytes, self.kv_bytes, self.recurrent_bytes, self.compute_bytes, self.output_bytes
        return sum(parts) - self.lazy_bytes + (self.draft.total if self.draft else 0)

    def to_json(self) -> dict[str, Any]:
        """The ``memory`` shape of the command line."""
        return {
            "arch": self.arch,
            "ctx": self.context.ctx,
            "weights_bytes": self.weights_bytes,
            "buffers": dict(self.buffers),
            "lazy_bytes": self.lazy_bytes,
            "kv": _caches_json(self.caches),
            "recurrent_bytes": self.recurrent_bytes,
            "compute_bytes": self.compute_bytes,
            "output_bytes": self.output_bytes,
            "draft": self.draft
            and {
                "kv": _caches_json(self.draft.caches),
                "compute_bytes": self.draft.compute_bytes,
                "output_bytes": self.draft.output_bytes,
            },
            "total_bytes": self.total_bytes,
            "flash_attention": self.context.flash,
            "unknown": list(self.unknown),
            "refused": list(self.refused),
            "pools": [p._asdict() for p in self.pools],
        }


def estimate(header: HeaderInfo, launch: Launch, tables: MemoryTables) -> Estimate:
    """The memory of a launch of the model behind ``header``, by the policies' tables. :raises BadInput: when the
    header or a flag makes no sense."""
    return estimate_geometry(geometry(header, tables), launch)


def estimate_geometry(geo: Geometry, launch: Launch) -> Estimate:
    """The same from a geometry at hand; the cheap call for searches."""
    own = owners(geo, launch)
    layout = layout_of(geo, launch, own)
    context = _resolved(geo, launch, layout, settle(launch, geo.trained, geo.nextn, geo.row, geo.tables))
    second = mtp_context(launch, context, geo.tables) if geo.nextn else None
    main, drafting, states = caches(geo, context), mtp_caches(geo, second) if second else (), state_parts(geo, context)
    placed = place_weights(geo, second is not None, launch, own)
    buffers = _buffers(placed, processor_of(launch, geo.tables))
    model = _sums((device, load.bytes) for load, device in placed if device != HOST) | {HOST: sum(buffers.values())}
    held = [place_layers(parts, launch, own) for parts in (*(c.parts for c in (*main, *drafting)), states)]
    stored = _sums(item for part in held for item in part.items())
    compute, extra, doubts = _compute(geo, context, second, layout, own)
    if launch.op_offload and launch.devices:
        compute[0] = compute.get(0, 0) + _largest_copied(placed)
    return Estimate(
        arch=geo.arch,
        context=context,
        weights_bytes=sum(model.values()),
        buffers=buffers,
        lazy_bytes=sum(load.lazy for load, _ in placed),
        caches=main,
        recurrent_bytes=sum(size for _, size in states),
        compute_bytes=sum(compute.values()),
        output_bytes=output_bytes(geo, context),
        draft=DraftMemory(drafting, sum(extra.values()), output_bytes(geo, second)) if second else None,
        pools=tuple(
            _pool(d, model, stored, compute.get(d, 0) + extra.get(d, 0)) for d in (*range(launch.devices), HOST)
        ),
        unknown=(*geo.unknown, *doubts),
        refused=refusals(geo, context, launch, own),
    )


def _resolved(geo: Geometry, launch: Launch, layout: Layout, context: Context) -> Context:
    """The context after the engine's check of flash attention: left to itself it turns it off, unless V needs it, when
    a layer's attention would be computed on another device than the layer's (``resolve_fused_ops``)."""
    asked = launch.flash_attn == "auto" and launch.devices and not geo.tables.quantized(context.type_v)
    if not asked or not replayed(geo):
        return context
    try:
        return context._replace(flash=context.flash and not strays(geo, context, launch, layout))
    except INCOMPLETE:
        return context


def _compute(
    geo: Geometry, context: Context, second: Context | None, layout: Layout, own: Owners
) -> tuple[dict[int, int], dict[int, int], tuple[str, ...]]:
    """Compute buffers of the main and the drafter's context by device, and what they rest on without proof."""
    doubt = f"the compute buffer of {geo.arch} is a coarse estimate"
    if replayed(geo):
        try:
            extra = draft_parts(geo, second, layout) if second else {}
            return compute_parts(geo, context, layout), extra, ()
        except INCOMPLETE:
            doubt = "this file's layers are incomplete: its compute buffer is a coarse estimate"
    coarse = coarse_parts(geo, context, own)
    return coarse, dict(coarse) if second else {}, (doubt,)


def _caches_json(held: tuple[Cache, ...]) -> dict[str, Any]:
    rows = [
        {"name": c.name, "cells": c.cells, "streams": c.streams, "layers": c.layers, "bytes": c.bytes} for c in held
    ]
    return {"total_bytes": sum(c.bytes for c in held), "caches": rows}


def _buffers(placed: Iterable[tuple[Load, int]], processor: str) -> dict[str, int]:
    """Bytes of the weights on the host, by the buffer the CPU gives them."""
    sums = dict.fromkeys(BUFFERS, 0)
    for load, device in placed:
        if device == HOST:
            for buffer, size in load.buffers[processor].items():
                sums[buffer] += size
    return sums


def _largest_copied(placed: Iterable[tuple[Load, int]]) -> int:
    """The largest matrix a device copies from the host at once: a layer's weight that stays there (each begins a new
    split, so their copies follow one another in the same place)."""
    return max((load.largest for load, device in placed if device == HOST and load.place >= 0), default=0)


def _sums(pairs: Any) -> dict[int, int]:
    sums: dict[int, int] = {}
    for device, size in pairs:
        sums[device] = sums.get(device, 0) + size
    return sums


def _pool(device: int, model: Mapping[int, int], stored: Mapping[int, int], compute: int) -> PoolUse:
    name = "host" if device == HOST else f"GPU{device}"
    return PoolUse(name, model.get(device, 0), stored.get(device, 0), compute)
