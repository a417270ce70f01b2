"""Memory arithmetic lent to the policies: what fits, what it takes, where it goes. Bound to one model and machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property
from typing import Any

from gezel_rules.decisions.decide import decide
from gezel_rules.engines.llama_cpp.draft_context import DraftContext
from gezel_rules.engines.llama_cpp.functions import PLAIN
from gezel_rules.engines.llama_cpp.memory.capacity import largest
from gezel_rules.engines.llama_cpp.memory.estimate import Estimate
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry, geometry
from gezel_rules.engines.llama_cpp.memory.launch import Launch
from gezel_rules.engines.llama_cpp.memory.placement import Placement, as_asked, place
from gezel_rules.engines.llama_cpp.memory.placement import Pool as MemoryPool
from gezel_rules.engines.llama_cpp.memory.tables import memory_tables
from gezel_rules.engines.pools import Pool, PoolKind, device_pools, lessened, ram_pool
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.gguf.records import Header
from gezel_rules.policy.model import PolicySet

ENDLESS = 1 << 62
"""Bytes of a pool whose size is unknown."""


class Capacity:
    """Answers the policies' questions about memory; every estimate is made once."""

    def __init__(
        self,
        header: Header,
        policies: PolicySet,
        facts: Mapping[str, Fact],
        held: Mapping[str, int],
        draft: Header | None = None,
    ) -> None:
        """``held``: bytes other launches have reserved, by pool; ``draft``: the header of the drafter that may come
        along, for the context it would open."""
        self.header, self.policies, self._facts = header, policies, facts
        self._drafter = DraftContext(draft, memory_tables(policies))
        kinds = policies.rows("pool_kinds", PoolKind)
        self.cards: tuple[Pool, ...] = device_pools(facts, kinds, held)
        self.ram: Pool = ram_pool(facts, kinds, held, self.cards)
        self.steps_down = 0
        self._placed: dict[tuple[Any, ...], Placement] = {}
        self._n_max: dict[str, int | None] = {}

    def of(self, header: Header) -> Capacity:
        """The same machine with another model."""
        other = copy(self)
        other.header, other._placed, other._drafter = header, {}, DraftContext(None, memory_tables(self.policies))
        other.__dict__.pop("geometry", None)
        return other

    def with_facts(self, facts: Mapping[str, Fact]) -> Capacity:
        """The same machine and model under other facts."""
        other = copy(self)
        other._facts, other._placed, other._n_max = facts, {}, {}
        return other

    def degraded(self) -> Capacity | None:
        """The same with one step less of each card; ``None`` when policy has no step left."""
        rule = self.policies.tables["degradation"]["step"]
        if not self.cards or self.steps_down >= int(rule["most"]):
            return None
        other = copy(self)
        other.cards = tuple(lessened(card, float(rule["share"])) for card in self.cards)
        other.steps_down, other._placed = self.steps_down + 1, {}
        return other

    @property
    def share(self) -> float:
        """How much of each card is counted on, after so many steps down."""
        return float(self.policies.tables["degradation"]["step"]["share"]) ** self.steps_down

    def exceeded_by(self, found: Estimate, beside: int) -> bool:
        """Whether a launch takes more of some card than there is."""
        return any(_over(used, card.usable) for used, card in zip(taken(found, beside), self.cards, strict=False))

    @cached_property
    def geometry(self) -> Geometry:
        """The model's geometry, with the architecture tables of the policies."""
        return geometry(self.header, memory_tables(self.policies))

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

    def _launch(self, kv: str, window: int, slots: int, spec: str) -> Launch:
        """The flags that move memory, before anything is placed."""
        setting = {name: self._facts[f"settings.{name}"].value for name in ("ubatch", "swa_full", "flash_attn")}
        return Launch(
            ctx=window * slots, type_k=kv, type_v=kv, parallel=slots, ubatch=setting["ubatch"],
            swa_full=setting["swa_full"] or False, flash_attn=setting["flash_attn"] or "auto",
            spec=(spec,), n_max=self.n_max(spec),
        )  # fmt: skip

    def n_max(self, spec: str) -> int | None:
        """Tokens drafted at once under a speculative type, as policy decides it."""
        if spec not in self._n_max:
            trace = decide(self.policies, self._facts, PLAIN, ("spec.n_max",), {"spec.type": spec})
            found = trace.value("spec.n_max")
            self._n_max[spec] = None if found is UNKNOWN else found
        return self._n_max[spec]

    def beside(self, kv: str, window: int, slots: int, spec: str, beside: int, mode: str) -> int:
        """What stands beside the model: what was given, and the context a drafter opens for this window."""
        launch = self._launch(kv, window, slots, spec)
        return beside + self._drafter.bytes(launch, spec, on_gpu=mode != "cpu", own_head=self.geometry.nextn > 0)

    def _fits(self, kv: str, window: int, slots: int, spec: str, beside: int, mode: str) -> bool:
        return self.placed(kv, window, slots, spec, beside, mode).fits

    def window_that_fits(self, kv: str, cap: int, spec: str, beside: int, mode: str) -> int:
        """The largest window up to ``cap`` of one slot; a multiple of the engine's padding unless it is the cap; 0 when
        none fits."""
        padding = int(self.policies.tables["engine_defaults"]["memory"]["cell_padding"])
        return largest(lambda window: self._fits(kv, window, 1, spec, beside, mode), padding, cap, padding)

    def slots_that_fit(self, kv: str, window: int, cap: int, spec: str, beside: int, mode: str) -> int:
        """The most slots up to ``cap`` of that window."""
        return largest(lambda slots: self._fits(kv, window, slots, spec, beside, mode), 1, cap, 1)

    def bytes_needed(self, kv: str, window: int, slots: int, spec: str, beside: int) -> int:
        """Everything resident on the cards (or, without any, in RAM)."""
        found = self.placed(kv, window, slots, spec, beside, "resident" if self.cards else "cpu").estimate
        mode = "resident" if self.cards else "cpu"
        extra = self.beside(kv, window, slots, spec, beside, mode)
        return extra + (sum(pool.total for pool in found.pools[:-1]) if self.cards else found.total_bytes)

    def place(self, kv: str, window: int, slots: int, spec: str, beside: int, mode: str) -> dict[str, Any]:
        """Where the weights go, as policies read it."""
        found = self.placed(kv, window, slots, spec, beside, mode)
        launch, pools = found.launch, self._pools(mode)
        split = launch.tensor_split
        return {
            "fits": found.fits,
            "says": self._words(found),
            "n_gpu_layers": found.n_gpu_layers,
            "n_cpu_moe": launch.n_cpu_moe or None,
            "override_tensor": ",".join(f"{names}={buffer}" for names, buffer in launch.override_tensor) or None,
            "tensor_split": ",".join(f"{share:g}" for share in split) if len(split) > 1 else None,
            "needed_bytes": found.estimate.total_bytes + self.beside(kv, window, slots, spec, beside, mode),
            "usable_bytes": sum(pool.usable_bytes for pool in pools if pool.usable_bytes < ENDLESS),
            "shortfall_bytes": found.shortfall_bytes,
            "ram_left_bytes": self._ram_left(found.estimate, self.beside(kv, window, slots, spec, beside, mode)),
        }

    def _ram_left(self, found: Estimate, beside: int) -> int | None:
        """What a launch leaves of the RAM it may take; ``None`` when nobody knows how much that is."""
        if self.ram.usable is None:
            return None
        return max(0, self.ram.usable - taken(found, beside)[-1] - found.output_bytes + found.lazy_bytes)

    def placed(self, kv: str, window: int, slots: int, spec: str, beside: int, mode: str) -> Placement:
        """Everything resident, everything on the CPU, or the first offload step of the policy that is enough."""
        key = (kv, window, slots, spec, beside, mode)
        found = self._placed.get(key)
        if found is None:
            found = self._placed[key] = self._search(*key)
        return found

    def _search(self, kv: str, window: int, slots: int, spec: str, beside: int, mode: str) -> Placement:
        launch = self._launch(kv, window, slots, spec)
        beside = self.beside(kv, window, slots, spec, beside, mode)
        asked = {name: self._facts[f"settings.{name}"].value for name in ("n_gpu_layers", "n_cpu_moe")}
        if mode == "offloaded" and any(value is not None for value in asked.values()):
            return as_asked(self.geometry, launch, self._pools(mode), beside, **asked)
        steps = self.policies.tables["offload_steps"] if mode == "offloaded" else ()
        return place(self.geometry, launch, self._pools(mode), beside, steps=steps)

    def _pools(self, mode: str) -> list[MemoryPool]:
        """The pools of a mode. One whose size nobody knows is taken as endless: the engine's own fit decides then.

        A GPU that shares the RAM is a pool of its own here: it may take its share, and the RAM pool has the rest.
        A card that is full keeps one byte: layers are shared out by proportions, and those of nothing there are none.
        """
        cards = [MemoryPool(p.name, "device", ENDLESS if p.usable is None else max(1, p.usable)) for p in self.cards]
        ram = MemoryPool(self.ram.name, "ram", ENDLESS if self.ram.usable is None else self.ram.usable)
        return [*(cards if mode != "cpu" else ()), ram]

    def _words(self, found: Placement) -> str:
        layers, units = len(self.geometry.layers), len(self.geometry.layers) + 1
        return str(self.policies.tables["placement_words"][found.step]).format(
            moved=found.moved, layers=layers, on_gpu=units - found.moved, units=units
        )

    def replan(self, drafter_bytes: int) -> dict[str, Any]:
        """KV type, window and slots as they would be decided if the drafter took that many bytes."""
        given = {"drafter.resident": drafter_bytes, "drafter.loads": drafter_bytes > 0}
        goals = ("kv.type", "window.tokens", "slots.count", "spec.type", "memory.beside")
        facts = {**self._facts, **self.facts()}
        trace = decide(self.policies, facts, self.functions(), goals, given)
        kv, window, spec = (trace.value(name) for name in ("kv.type", "window.tokens", "spec.type"))
        resident = self.bytes_needed(kv, window, 1, spec, trace.value("memory.beside"))
        return {"kv_type": kv, "window": window, "slots": trace.value("slots.count"), "resident_bytes": resident}


def taken(found: Estimate, beside: int) -> list[int]:
    """Bytes by pool, what stands beside the model counted on the first."""
    return [pool.total + (beside if number == 0 else 0) for number, pool in enumerate(found.pools)]


def _over(used: int, usable: int | None) -> int:
    return max(0, used - usable) if usable is not None else 0


def _usable(pools: tuple[Pool, ...], why: str) -> Fact:
    sizes = [pool.usable for pool in pools]
    if any(size is None for size in sizes):
        return Fact(UNKNOWN, why, "probe", settle="gezel-rules devices")
    return Fact(sum(size or 0 for size in sizes), why, "policy")
