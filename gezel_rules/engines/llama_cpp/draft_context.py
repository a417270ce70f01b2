"""The context that a separate draft model opens: window and slots of the model, over its own layers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gezel_rules.engines.llama_cpp.memory.checkpoints import drafter_checkpoint_bytes
from gezel_rules.engines.llama_cpp.memory.estimate import Estimate, estimate_geometry
from gezel_rules.engines.llama_cpp.memory.flags import Launch
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry, geometry_by
from gezel_rules.engines.llama_cpp.memory.tables import memory_tables
from gezel_rules.errors import BadInput
from gezel_rules.gguf.records import Header

if TYPE_CHECKING:
    from gezel_rules.engines.subject import Subject
    from gezel_rules.facts.fact import Fact
    from gezel_rules.policy.model import PolicySet


def draft_header(subject: Subject, facts: Mapping[str, Fact], cache: Path | None) -> Header | None:
    """The drafter whose context counts: the operator's own, else the catalog's where no measured figure covers it."""
    own = facts["settings.draft_model"].value
    if own is not None:
        from gezel_rules.engines.llama_cpp.draft_facts import own_drafter

        return own_drafter(own, cache)
    draft = subject.draft
    return cast("Header", draft.model) if draft is not None and draft.here and not draft.measured else None


class DraftContext:
    """What that context takes, each window and slot count worked out once. Without a header it is 0: nobody knows."""

    def __init__(self, header: Header | None, policies: PolicySet) -> None:
        self._geometry, self._tables = _geometry(header, policies), memory_tables(policies)
        self._found: dict[tuple[int | None, int | None, bool, str], Estimate] = {}

    def bytes(self, launch: Launch, spec: str, *, on_gpu: bool, own_head: bool) -> int:
        """Caches and compute buffers beside a launch of the model; 0 for a type that opens no context of its own, and
        for an MTP head that is the model's own (``own_head``: its context is in the model's estimate)."""
        context = self._context(spec, own_head)
        if self._geometry is None or context == "none":
            return 0
        found = self._estimate(self._geometry, launch, context, on_gpu)
        if context == "mtp":
            return found.draft.total if found.draft else 0
        return found.pools[0].context_bytes + found.pools[0].compute_bytes

    def checkpoint_bytes(self, launch: Launch, spec: str, *, own_head: bool) -> int:
        """What it adds to each context checkpoint of one slot of the model."""
        context = self._context(spec, own_head)
        if self._geometry is None or context == "none":
            return 0
        found = self._estimate(self._geometry, launch, context, on_gpu=False)
        return drafter_checkpoint_bytes(self._geometry, found, head=context == "mtp")

    def _context(self, spec: str, own_head: bool) -> str:
        row = self._tables.speculation.get(spec)
        context = row.context if row else "none"
        return "none" if context == "mtp" and own_head else context

    def _estimate(self, geo: Geometry, launch: Launch, context: str, on_gpu: bool) -> Estimate:
        """The estimate that the context is part of: an MTP head's file as the engine loads it, or a whole model."""
        key = launch.ctx, launch.parallel, on_gpu, context
        if key not in self._found:
            asked = launch if context == "mtp" else self._alone(geo, launch, on_gpu)
            self._found[key] = estimate_geometry(geo, asked)
        return self._found[key]

    def _alone(self, geo: Geometry, launch: Launch, on_gpu: bool) -> Launch:
        """The drafter launched by itself. Its cache keeps the engine's own precision, whatever the model's is
        (llama.cpp 0.6.0-dev)."""
        kind = self._tables.defaults.draft_cache_type
        own = launch._replace(type_k=kind, type_v=kind, spec=(), n_max=None)
        return own._replace(devices=1, n_gpu_layers=len(geo.layers) + 1) if on_gpu else own


def _geometry(header: Header | None, policies: PolicySet) -> Geometry | None:
    try:
        return policies.once(geometry_by, header) if header is not None else None
    except BadInput:
        return None
