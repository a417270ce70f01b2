"""The context that a separate draft model opens: window and slots of the model, over its own layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gezel_rules.errors import BadInput
from gezel_rules.facts.gguf.records import Header
from gezel_rules.memory.estimate import estimate_geometry
from gezel_rules.memory.geometry import Geometry, geometry
from gezel_rules.memory.launch import Launch


class DraftContext:
    """Bytes of that context, each window and slot count worked out once. Without a header it is 0: nobody knows."""

    def __init__(self, header: Header | None, tables: Mapping[str, Any]) -> None:
        self._geometry, self._tables = _geometry(header, tables), tables
        self._found: dict[tuple[int | None, int | None, bool], int] = {}

    def bytes(self, launch: Launch, spec: str, *, on_gpu: bool) -> int:
        """Caches and compute buffers beside a launch of the model; 0 for a type that opens no context of its own.

        Its cache keeps the engine's own precision, whatever the model's is (llama.cpp 0.6.0-dev).
        """
        own = self._tables["speculation"].get(spec, {}).get("context") == "model"
        if self._geometry is None or not own:
            return 0
        key = launch.ctx, launch.parallel, on_gpu
        if key not in self._found:
            self._found[key] = self._measure(self._geometry, launch, on_gpu)
        return self._found[key]

    def _measure(self, geo: Geometry, launch: Launch, on_gpu: bool) -> int:
        kind = self._tables["engine_defaults"]["memory"]["draft_cache_type"]
        units = len(geo.layers) + 1
        own = launch._replace(type_k=kind, type_v=kind, spec=(), n_max=None)
        placed = own._replace(devices=1, n_gpu_layers=units) if on_gpu else own
        pool = estimate_geometry(geo, placed).pools[0]
        return pool.context_bytes + pool.compute_bytes


def _geometry(header: Header | None, tables: Mapping[str, Any]) -> Geometry | None:
    try:
        return geometry(header, tables) if header is not None else None
    except BadInput:
        return None
