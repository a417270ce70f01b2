"""The context that a separate draft model opens: window and slots of the model, over its own layers."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.estimate import estimate_geometry
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry, geometry
from gezel_rules.engines.llama_cpp.memory.launch import Launch
from gezel_rules.engines.llama_cpp.memory.tables import MemoryTables
from gezel_rules.errors import BadInput
from gezel_rules.gguf.records import Header


class DraftContext:
    """Bytes of that context, each window and slot count worked out once. Without a header it is 0: nobody knows."""

    def __init__(self, header: Header | None, tables: MemoryTables) -> None:
        self._geometry, self._tables = _geometry(header, tables), tables
        self._found: dict[tuple[int | None, int | None, bool, str], int] = {}

    def bytes(self, launch: Launch, spec: str, *, on_gpu: bool, own_head: bool) -> int:
        """Caches and compute buffers beside a launch of the model; 0 for a type that opens no context of its own, and
        for an MTP head that is the model's own (``own_head``: its context is in the model's estimate).

        Its cache keeps the engine's own precision, whatever the model's is (llama.cpp 0.6.0-dev).
        """
        row = self._tables.speculation.get(spec)
        context = row.context if row else "none"
        if self._geometry is None or context == "none" or (context == "mtp" and own_head):
            return 0
        key = launch.ctx, launch.parallel, on_gpu, context
        if key not in self._found:
            measure = _head if context == "mtp" else self._whole
            self._found[key] = measure(self._geometry, launch, on_gpu)
        return self._found[key]

    def _whole(self, geo: Geometry, launch: Launch, on_gpu: bool) -> int:
        """The context of a whole draft model."""
        kind = self._tables.defaults.draft_cache_type
        units = len(geo.layers) + 1
        own = launch._replace(type_k=kind, type_v=kind, spec=(), n_max=None)
        placed = own._replace(devices=1, n_gpu_layers=units) if on_gpu else own
        pool = estimate_geometry(geo, placed).pools[0]
        return pool.context_bytes + pool.compute_bytes


def _head(geo: Geometry, launch: Launch, on_gpu: bool) -> int:
    """The context of an MTP head in a file of its own; one that reads the model's cache has none."""
    draft = estimate_geometry(geo, launch).draft
    return draft.total if draft else 0


def _geometry(header: Header | None, tables: MemoryTables) -> Geometry | None:
    try:
        return geometry(header, tables) if header is not None else None
    except BadInput:
        return None
