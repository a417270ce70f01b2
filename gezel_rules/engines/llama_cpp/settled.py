"""What policy decides of a launch's memory without asking how much there is: it is asked once for all placements."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from gezel_rules.decisions.decide import decide
from gezel_rules.engines.llama_cpp.memory.flags import Launch
from gezel_rules.engines.plain_functions import CALLABLES
from gezel_rules.facts.fact import UNKNOWN, Fact

if TYPE_CHECKING:
    from gezel_rules.decisions.decide import Trace
    from gezel_rules.engines.llama_cpp.loading import Loading
    from gezel_rules.policy.model import PolicySet

DECISIONS = ("batch.ubatch", "kv.swa_full", "kv.flash_attn", "processor.used", "backend.gpu")
"""Tokens per batch, whether sliding layers get a full-size cache, flash attention, what packs the weights on the CPU,
whether a GPU takes part."""


class Settled:
    """Those decisions, by the policies and on the facts of one launch."""

    def __init__(self, policies: PolicySet, facts: Mapping[str, Fact]) -> None:
        self._policies, self._facts = policies, facts
        self._n_max: dict[str, int | None] = {}

    @cached_property
    def _trace(self) -> Trace:
        return decide(self._policies, self._facts, CALLABLES, DECISIONS)

    @property
    def uses_gpu(self) -> bool:
        """Whether policy gives this launch a GPU."""
        return bool(self._trace.value("backend.gpu"))

    def n_max(self, spec: str) -> int | None:
        """Tokens drafted at once under a speculative type, as policy decides it."""
        if spec not in self._n_max:
            trace = decide(self._policies, self._facts, CALLABLES, ("spec.n_max",), {"spec.type": spec})
            found = trace.value("spec.n_max")
            self._n_max[spec] = None if found is UNKNOWN else found
        return self._n_max[spec]

    def launch(self, asked: Loading) -> Launch:
        """The flags that move memory, before anything is placed."""
        ubatch, swa_full, flash_attn, processor = (self._trace.value(name) for name in DECISIONS[:4])
        return Launch(
            ctx=asked.window * asked.slots, type_k=asked.kv, type_v=asked.kv, parallel=asked.slots,
            ubatch=ubatch, swa_full=swa_full, flash_attn=flash_attn, spec=(asked.spec,), n_max=self.n_max(asked.spec),
            processor=str(processor),
        )  # fmt: skip
