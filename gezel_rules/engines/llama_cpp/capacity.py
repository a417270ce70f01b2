"""Memory arithmetic lent to the policies: what fits, what it takes, where it goes. Bound to one model and machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gezel_rules.decisions.decide import decide
from gezel_rules.engines.family import MemoryUse
from gezel_rules.engines.llama_cpp.cards import ENDLESS, OnCards, memory_pools, on_busy_cards
from gezel_rules.engines.llama_cpp.cards import largest as largest_card
from gezel_rules.engines.llama_cpp.draft_context import DraftContext, draft_header
from gezel_rules.engines.llama_cpp.inputs import Inputs, exceeds, less, measured
from gezel_rules.engines.llama_cpp.loading import Loading, loading_of
from gezel_rules.engines.llama_cpp.memory.bound import least_bytes
from gezel_rules.engines.llama_cpp.memory.checkpoints import checkpoint_bytes
from gezel_rules.engines.llama_cpp.memory.estimate import Estimate
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry, geometry_by
from gezel_rules.engines.llama_cpp.memory.placement import Limits, Placement, place
from gezel_rules.engines.llama_cpp.memory.search import highest, largest, widest
from gezel_rules.engines.llama_cpp.memory.tables import EngineDefaults, Processor
from gezel_rules.engines.llama_cpp.memory_use import as_policies_read, memory_use, uncounted_of_projector, usable_fact
from gezel_rules.engines.llama_cpp.parts import PACKED_WEIGHTS
from gezel_rules.engines.llama_cpp.rows import KvType, PlacementMode, Window
from gezel_rules.engines.llama_cpp.settled import Settled
from gezel_rules.engines.plain_functions import CALLABLES
from gezel_rules.engines.pools import Pool, PoolKind, device_pools, lessened, ram_pool
from gezel_rules.facts.fact import Fact

if TYPE_CHECKING:
    from gezel_rules.decisions.decide import Trace
    from gezel_rules.engines.protocol import ModelFile
    from gezel_rules.engines.subject import Subject
    from gezel_rules.gguf.records import Header
    from gezel_rules.policy.model import PolicySet

_FIXED = ("n_gpu_layers", "n_cpu_moe")  # settings by which an operator decides what the GPU gets


def capacity(
    subject: Subject, policies: PolicySet, facts: Mapping[str, Fact], held: Mapping[str, int], cache: Path | None
) -> Capacity:
    """The arithmetic for a subject on the machine of ``facts``; ``held``: bytes reserved by other launches, by pool."""
    kinds = policies.rows("pool_kinds", PoolKind)
    cards = device_pools(facts, kinds, held)
    ram = ram_pool(facts, kinds, held, cards)
    inputs = Inputs(cast("Header", subject.model), policies, facts, cards, cards, ram)
    return _chosen(Capacity(inputs, DraftContext(draft_header(subject, facts, cache), policies)))


def _chosen(whole: Capacity) -> Capacity:
    """The same on the one card that policy leaves the launch to, if it does."""
    if len(whole.cards) < 2:
        return whole
    inputs = whole.inputs
    trace = decide(inputs.policies, {**inputs.facts, **whole.facts()}, whole.functions(), ("gpu.alone",))
    return whole.on_largest if trace.value("gpu.alone") is True else whole


class Capacity:
    """Answers the policies' questions about memory; every placement is worked out once."""

    def __init__(self, inputs: Inputs, drafter: DraftContext) -> None:
        self.inputs, self._drafter = inputs, drafter
        self._placed: dict[Loading, OnCards] = {}
        self._settled = Settled(inputs.policies, inputs.facts)

    @property
    def cards(self) -> tuple[Pool, ...]:
        """The pools of the devices that the launch may take, in the engine's order."""
        return self.inputs.cards

    @cached_property
    def on_largest(self) -> Capacity:
        """The same on the largest of the cards alone."""
        return self._again(self.inputs._replace(cards=(largest_card(self.inputs.offered),)))

    def _again(self, inputs: Inputs) -> Capacity:
        return Capacity(inputs, self._drafter)

    def with_facts(self, facts: Mapping[str, Fact]) -> Capacity:
        """The same machine and model under other facts."""
        return _chosen(self._again(self.inputs._replace(facts=facts, cards=self.inputs.offered)))

    def under(self, policies: PolicySet) -> Capacity:
        """The same by other policies that have the same tables: placements stand where they are asked for alike."""
        after = _chosen(self._again(self.inputs._replace(policies=policies, cards=self.inputs.offered)))
        if after.cards == self.cards and after._settled.uses_gpu == self._settled.uses_gpu:
            alike = [asked for asked in self._placed if after._settled.launch(asked) == self._settled.launch(asked)]
            after._placed.update((asked, self._placed[asked]) for asked in alike)
        return after

    def measured(self, facts: Mapping[str, Fact], held: Mapping[str, int]) -> Capacity:
        """The same on memory as it is now, never more of a card than before."""
        return _chosen(self._again(measured(self.inputs, facts, held)))

    def degraded(self, memory: MemoryUse) -> Capacity | None:
        """The same with so much less of each card that a launch that took ``memory`` would not fit; ``None`` when
        policy has no step left."""
        inputs = less(self.inputs, memory)
        return _chosen(self._again(inputs)) if inputs else None

    def lessened(self, share: float) -> Capacity:
        """The same with only that share of each card counted on."""
        cards = tuple(lessened(card, share) for card in self.inputs.offered)
        return _chosen(self._again(self.inputs._replace(offered=cards, cards=cards, share=share)))

    @property
    def share(self) -> float:
        """How much of each card is counted on, after the steps down."""
        return self.inputs.share

    def exceeded_by(self, memory: MemoryUse) -> bool:
        """Whether a launch takes more of some card than there is."""
        return exceeds(memory, self.cards)

    @cached_property
    def geometry(self) -> Geometry:
        """The model's geometry, with the architecture tables of the policies."""
        return self.inputs.policies.once(geometry_by, self.inputs.header)

    def facts(self) -> dict[str, Fact]:
        """``gpu.usable`` and ``ram.usable``."""
        why = "; ".join(card.why for card in self.cards) or "no GPU"
        return {
            "gpu.usable": usable_fact(self.cards, why),
            "ram.usable": usable_fact((self.inputs.ram,), self.inputs.ram.why),
        }

    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions of ``SIGNATURES``, bound."""
        return {
            **CALLABLES,
            "fits": lambda *asked: self.fits(Loading(*asked)),
            "window_that_fits": self.window_that_fits,
            "slots_that_fit": self.slots_that_fit,
            "bytes_needed": self.bytes_needed,
            "one_card_holds": self.one_card_holds,
            "place": lambda *asked: self.place(Loading(*asked)),
            "replan": self.replan,
        }

    def beside(self, asked: Loading) -> int:
        """What stands beside the model: what was given, and the context a drafter opens for this window."""
        on_gpu, own_head = asked.mode != "cpu", self.geometry.nextn > 0
        return asked.beside + self._drafter.bytes(
            self._settled.launch(asked), asked.spec, on_gpu=on_gpu, own_head=own_head
        )

    def window_that_fits(self, kv: str, cap: int, slots: int, spec: str, beside: int, mode: str) -> int:
        """The largest window up to ``cap`` of each slot: a multiple of the engine's padding, or the cap; 0 for none."""
        padding = self.inputs.policies.row("engine_defaults", "memory", EngineDefaults).cell_padding
        one = Loading(kv, cap, slots, spec, beside, mode)
        if not self.inputs.policies.row("placement_modes", mode, PlacementMode).steps:
            return widest(lambda window: self.excess(one._replace(window=window)), padding, cap, padding)
        most = widest(lambda window: self._lacking(one._replace(window=window)), padding, cap, padding)
        return highest(lambda window: self.placed(one._replace(window=window)).fits, padding, most, padding)

    def slots_that_fit(self, kv: str, window: int, cap: int, spec: str, beside: int, mode: str) -> int:
        """The most slots up to ``cap`` of that window."""
        one = Loading(kv, window, cap, spec, beside, mode)
        return largest(lambda slots: self.fits(one._replace(slots=slots)), 1, cap, 1)

    def one_card_holds(self, window: int, spec: str, beside: int) -> bool:
        """Whether the largest card alone holds everything in the KV type and with the slots that were asked for: in the
        finest type that is taken unasked, with one slot, where nobody asked."""
        if len(self.inputs.offered) < 2:
            return False
        own = {name: self.inputs.facts[f"settings.{name}"].value for name in ("kv_type", "slots")}
        asked = Loading(own["kv_type"] or self._finest, window, own["slots"] or 1, spec, beside, "resident")
        return self.on_largest.fits(asked)

    @property
    def _finest(self) -> str:
        """The finest KV type that is taken unasked."""
        return next(name for name, row in self.inputs.policies.rows("kv_types", KvType).items() if row.automatic)

    def bytes_needed(self, kv: str, window: int, slots: int, spec: str, beside: int) -> int:
        """Everything resident on the cards (or, without any, in RAM)."""
        asked = Loading(kv, window, slots, spec, beside, "resident" if self.cards else "cpu")
        found = self.placed(asked).estimate
        return self.beside(asked) + (sum(pool.total for pool in found.pools[:-1]) if self.cards else found.total_bytes)

    def place(self, asked: Loading) -> dict[str, Any]:
        """Where the weights go, as policies read it."""
        (found, cards), beside = self.on_cards(asked), self.beside(asked)
        pools = memory_pools(cards, self.inputs.ram)
        return {
            **as_policies_read(found, beside, self.inputs.ram),
            "says": self._words(found),
            "devices": [card.name for card in cards],
            "usable_bytes": sum(pool.usable_bytes for pool in pools if pool.usable_bytes < ENDLESS),
            "checkpoint_bytes": self._checkpoint_bytes(found, asked.spec),
        }

    def _checkpoint_bytes(self, found: Placement, spec: str) -> int:
        """One context checkpoint of one slot, the drafter's part included."""
        own, own_head = checkpoint_bytes(self.geometry, found.estimate), self.geometry.nextn > 0
        return own + self._drafter.checkpoint_bytes(found.launch, spec, own_head=own_head) if own else 0

    def fits(self, asked: Loading) -> bool:
        """Whether there is a placement that fits."""
        return self.excess(asked) <= 0

    def excess(self, asked: Loading) -> int:
        """Bytes by which the fullest pool is over at best (negative: what it has to spare); where all pools together
        are too small, what they lack, and nothing is placed."""
        lacking = 0 if asked in self._placed else self._lacking(asked)
        return lacking if lacking > 0 else self.placed(asked).excess

    def _lacking(self, asked: Loading) -> int:
        """Bytes that all pools together lack at least (negative: it depends on the placement)."""
        pools = memory_pools(self.cards if self._takes_cards(asked) else (), self.inputs.ram)
        return least_bytes(self.geometry, self._settled.launch(asked)) - sum(pool.usable_bytes for pool in pools)

    def placed(self, asked: Loading) -> Placement:
        """Everything resident, everything on the CPU, or the first offload step of the policy that is enough."""
        return self.on_cards(asked).placement

    def on_cards(self, asked: Loading) -> OnCards:
        """The same with the cards it is on."""
        rows = self.inputs.policies.rows("placement_modes", PlacementMode)
        if rows[asked.mode].steps == ("experts",) and not self.geometry.experts:
            asked = asked._replace(mode="resident")  # nothing could leave
        found = self._placed.get(asked)
        if found is None:
            cards = self.cards if self._takes_cards(asked) else ()
            found = self._placed[asked] = on_busy_cards(
                lambda taken: self._search(asked, taken, rows[asked.mode]), cards
            )
        return found

    def _takes_cards(self, asked: Loading) -> bool:
        return asked.mode != "cpu" and self._settled.uses_gpu

    def _search(self, asked: Loading, cards: Sequence[Pool], mode: PlacementMode) -> Placement:
        """What the operator fixed stands, and the rest is placed around it."""
        launch, beside, pools = self._settled.launch(asked), self.beside(asked), memory_pools(cards, self.inputs.ram)
        layers, experts = (self.inputs.facts[f"settings.{name}"].value if cards else None for name in _FIXED)
        limits = Limits(layers, experts, mode.experts)
        return place(self.geometry, launch, pools, beside, steps=mode.steps, limits=limits)

    def _words(self, found: Placement) -> str:
        layers, units = len(self.geometry.layers), len(self.geometry.layers) + 1
        return str(self.inputs.policies.tables["placement_words"][found.step]).format(
            moved=found.moved, layers=layers, on_gpu=units - found.moved, units=units
        )

    def replan(self, drafter_bytes: int) -> dict[str, Any]:
        """KV type, window and slots as they would be decided if the drafter took that many bytes."""
        given = {"drafter.resident": drafter_bytes, "drafter.loads": drafter_bytes > 0}
        goals = ("kv.type", "window.tokens", "slots.count", "spec.type", "memory.beside")
        facts = {**self.inputs.facts, **self.facts()}
        trace = decide(self.inputs.policies, facts, self.functions(), goals, given)
        kv, window, spec = (trace.value(name) for name in ("kv.type", "window.tokens", "spec.type"))
        resident = self.bytes_needed(kv, window, 1, spec, trace.value("memory.beside"))
        return {"kv_type": kv, "window": window, "slots": trace.value("slots.count"), "resident_bytes": resident}

    def estimate(self, trace: Trace) -> Estimate:
        """The memory of the launch that was decided, without what stands beside the model."""
        return self.placed(loading_of(trace)).estimate

    def memory(self, trace: Trace) -> MemoryUse:
        """What the launch takes that was decided."""
        asked = loading_of(trace)
        found, cards = self.on_cards(asked)
        return memory_use(found, self.beside(asked), cards, self.inputs.ram, [*uncounted_of_projector(trace)])

    def may_leave_out(self, trace: Trace) -> Sequence[str]:
        """Packed weights, where the CPU packs any and the operator did not say so."""
        row = self.inputs.policies.row("processors", trace.value("processor.used"), Processor)
        packs = (row.repack or row.amx) and trace.facts["settings.repack"].value is None
        return [PACKED_WEIGHTS] if packs else []

    def might_hold(self, other: ModelFile) -> bool:
        """Whether the smallest window that policy allows would fit with another model, in its finest cache."""
        policies = self.inputs.policies
        floor = policies.row("windows", "floor", Window).tokens
        inputs = self.inputs._replace(header=cast("Header", other), cards=self.inputs.offered)
        there = Capacity(inputs, DraftContext(None, policies))
        modes = ("resident", "offloaded") if self.cards else ("cpu",)
        return any(there.window_that_fits(self._finest, floor, 1, "none", 0, mode) >= floor for mode in modes)
