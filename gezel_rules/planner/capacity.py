"""Memory arithmetic lent to the policies: what fits, what it takes, where it goes. Bound to one model and machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property
from typing import Any

from gezel_rules.engine.decide import decide
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.facts.gguf.records import Header
from gezel_rules.memory.estimate import Estimate, estimate_geometry
from gezel_rules.memory.geometry import Geometry, geometry
from gezel_rules.memory.launch import Launch
from gezel_rules.planner.functions import PLAIN
from gezel_rules.planner.offload import Step, least, offload_steps
from gezel_rules.planner.pools import Pool, device_pools, lessened, ram_pool
from gezel_rules.policy.model import PolicySet

STEP = 256
"""Tokens: the engine pads cells to this (llama.cpp 0.6.0-dev), so a window between two steps gains nothing."""


class Capacity:
    """Answers the policies' questions about memory; every estimate is made once."""

    def __init__(
        self,
        header: Header,
        policies: PolicySet,
        facts: Mapping[str, Fact],
        held: Mapping[str, int],
    ) -> None:
        self.header, self.policies, self._facts = header, policies, facts
        kinds = policies.tables["pool_kinds"]
        self.cards: tuple[Pool, ...] = device_pools(facts, kinds, held)
        self.ram: Pool = ram_pool(facts, kinds, held, self.cards)
        self.steps_down = 0
        self._estimates: dict[Launch, Estimate] = {}

    def of(self, header: Header) -> Capacity:
        """The same machine with another model."""
        other = copy(self)
        other.header, other._estimates = header, {}
        other.__dict__.pop("geometry", None)
        return other

    def with_facts(self, facts: Mapping[str, Fact]) -> Capacity:
        """The same machine and model under other facts."""
        other = copy(self)
        other._facts, other._estimates = facts, {}
        return other

    def degraded(self) -> Capacity | None:
        """The same with one step less of each card; ``None`` when policy has no step left."""
        rule = self.policies.tables["degradation"]["step"]
        if not self.cards or self.steps_down >= int(rule["most"]):
            return None
        other = copy(self)
        other.cards = tuple(lessened(card, float(rule["share"])) for card in self.cards)
        other.steps_down = self.steps_down + 1
        return other

    @property
    def share(self) -> float:
        """How much of each card is counted on, after so many steps down."""
        return float(self.policies.tables["degradation"]["step"]["share"]) ** self.steps_down

    def exceeded_by(self, found: Estimate) -> bool:
        """Whether a launch takes more of some card than there is."""
        return any(_over(pool.total, card.usable) for pool, card in zip(found.pools, self.cards, strict=False))

    @cached_property
    def geometry(self) -> Geometry:
        """The model's geometry, with the architecture tables of the policies."""
        return geometry(self.header, self.policies.tables)

    def facts(self) -> dict[str, Fact]:
        """``gpu.usable`` and ``ram.usable``."""
        return {
            "gpu.usable": _usable(self.cards, "; ".join(card.why for card in self.cards) or "no GPU"),
            "ram.usable": _usable((self.ram,), self.ram.why),
        }

    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions of ``SIGNATURES``, bound."""
        return {
            **PLAIN,
            "window_that_fits": self.window_that_fits,
            "slots_that_fit": self.slots_that_fit,
            "bytes_needed": self.bytes_needed,
            "place": self.place,
            "replan": self.replan,
        }

    def launch(self, kv: str, window: int, slots: int, spec: str, on_cards: bool) -> Launch:
        """The flags that move memory, every layer on the cards or none."""
        setting = lambda name: self._facts[f"settings.{name}"].value  # noqa: E731
        shares = [card.usable or 0 for card in self.cards] if on_cards else []
        return Launch(
            ctx=window * slots, type_k=kv, type_v=kv, parallel=slots, ubatch=setting("ubatch"),
            swa_full=setting("swa_full") or False, flash_attn=setting("flash_attn") or "auto",
            spec=(spec,), n_max=setting("draft_n_max"), devices=len(shares),
            tensor_split=tuple(share / STEP for share in shares) if len(shares) > 1 else (),
        )  # fmt: skip

    def estimate(self, launch: Launch) -> Estimate:
        """The memory of a launch, from the geometry; remembered."""
        found = self._estimates.get(launch)
        if found is None:
            found = self._estimates[launch] = estimate_geometry(self.geometry, launch)
        return found

    def shortfall(self, launch: Launch, beside: int) -> int:
        """Bytes by which a launch exceeds the pools, summed over cards and RAM."""
        found = self.estimate(launch)
        host = found.pools[-1].total + found.output_bytes - found.lazy_bytes
        short_host = _over(host + (0 if launch.devices else beside), self.ram.usable)
        return short_host + self.shortfall_on_cards(launch, beside)

    def shortfall_on_cards(self, launch: Launch, beside: int) -> int:
        """Bytes by which it exceeds the cards, each by itself; ``beside`` lies on the first."""
        used = [pool.total for pool in self.estimate(launch).pools[:-1]]
        if used:
            used[0] += beside
        return sum(_over(size, card.usable) for size, card in zip(used, self.cards, strict=False))

    def _fits(self, kv: str, window: int, slots: int, spec: str, beside: int, mode: str) -> bool:
        if mode == "offloaded":
            return bool(self.place(kv, window, slots, spec, beside, mode)["fits"])
        return not self.shortfall(self.launch(kv, window, slots, spec, mode == "resident"), beside)

    def window_that_fits(self, kv: str, cap: int, spec: str, beside: int, mode: str) -> int:
        """The largest window up to ``cap`` of one slot; a multiple of STEP unless it is the cap; 0 when none fits."""
        if self._fits(kv, cap, 1, spec, beside, mode):
            return cap
        low, high = 0, cap // STEP + (cap % STEP > 0)  # low fits (or is nothing), high does not
        while high - low > 1:
            middle = (low + high) // 2
            if self._fits(kv, middle * STEP, 1, spec, beside, mode):
                low = middle
            else:
                high = middle
        return low * STEP

    def slots_that_fit(self, kv: str, window: int, cap: int, spec: str, beside: int, mode: str) -> int:
        """The most slots up to ``cap`` of that window."""
        for slots in range(cap, 0, -1):
            if self._fits(kv, window, slots, spec, beside, mode):
                return slots
        return 0

    def bytes_needed(self, kv: str, window: int, slots: int, spec: str, beside: int) -> int:
        """Everything resident on the cards (or, without any, in RAM)."""
        launch = self.launch(kv, window, slots, spec, bool(self.cards))
        found = self.estimate(launch)
        if not launch.devices:
            return found.total_bytes + beside
        return sum(pool.total for pool in found.pools if pool.name != "host") + beside

    def place(self, kv: str, window: int, slots: int, spec: str, beside: int, mode: str) -> dict[str, Any]:
        """Where the weights go, as policies read it."""
        launch, says = self.placed(kv, window, slots, spec, beside, mode)
        return self._layout(launch, beside, says)

    def placed(self, kv: str, window: int, slots: int, spec: str, beside: int, mode: str) -> tuple[Launch, str]:
        """Everything resident, everything on the CPU, or the first offload step of the policy that is enough for the
        cards; in words too."""
        launch = self.launch(kv, window, slots, spec, mode != "cpu")
        if mode != "offloaded":
            return launch, _RESIDENT if launch.devices else _CPU
        asked = self._asked(launch)
        if asked is not None:
            return asked, "the operator decides what the GPU gets"
        chosen = launch, _RESIDENT
        for step in offload_steps(launch, self.geometry, self.policies.tables["offload_steps"]):
            count = self._least(step, beside)
            chosen = step.launch(count or step.most), step.says(count or step.most)
            if count:
                break
        return chosen

    def _least(self, step: Step, beside: int) -> int | None:
        return least(1, step.most, lambda n: not self.shortfall_on_cards(step.launch(n), beside))

    def _asked(self, launch: Launch) -> Launch | None:
        layers, moe = (self._facts[f"settings.{name}"].value for name in ("n_gpu_layers", "n_cpu_moe"))
        if layers is None and moe is None:
            return None
        return launch._replace(n_gpu_layers=layers, n_cpu_moe=moe or 0)

    def _layout(self, launch: Launch, beside: int, says: str) -> dict[str, Any]:
        short = self.shortfall(launch, beside)
        usable = [pool.usable for pool in (*self.cards[: launch.devices], self.ram)]
        overrides = ",".join(f"{pattern}={buffer}" for pattern, buffer in launch.override_tensor)
        units = len(self.geometry.layers) + 1
        return {
            "fits": not short,
            "says": says,
            "n_gpu_layers": (units if launch.n_gpu_layers is None else launch.n_gpu_layers) if launch.devices else None,
            "n_cpu_moe": launch.n_cpu_moe or None,
            "override_tensor": overrides or None,
            "tensor_split": ",".join(f"{share:.0f}" for share in launch.tensor_split) or None,
            "needed_bytes": self.estimate(launch).total_bytes + beside,
            "usable_bytes": sum(size or 0 for size in usable),
            "shortfall_bytes": short,
        }

    def replan(self, drafter_bytes: int) -> dict[str, Any]:
        """KV type, window and slots as they would be decided if the drafter took that many bytes."""
        given = {"drafter.resident": drafter_bytes, "drafter.loads": drafter_bytes > 0}
        goals = ("kv.type", "window.tokens", "slots.count", "spec.type", "memory.beside")
        facts = {**self._facts, **self.facts()}
        trace = decide(self.policies, facts, self.functions(), goals, given)
        kv, window, spec = (trace.value(name) for name in ("kv.type", "window.tokens", "spec.type"))
        resident = self.bytes_needed(kv, window, 1, spec, trace.value("memory.beside"))
        return {"kv_type": kv, "window": window, "slots": trace.value("slots.count"), "resident_bytes": resident}


_RESIDENT = "every layer is on the GPU"
_CPU = "every layer is on the CPU"


def _over(used: int, usable: int | None) -> int:
    return max(0, used - usable) if usable is not None else 0


def _usable(pools: tuple[Pool, ...], why: str) -> Fact:
    sizes = [pool.usable for pool in pools]
    if any(size is None for size in sizes):
        return Fact(UNKNOWN, why, "probe", settle="gezel-rules devices")
    return Fact(sum(size or 0 for size in sizes), why, "policy")
