"""The plan: facts gathered, policies judged, argv and memory put together, or a refusal that says what is short."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gezel_rules.decisions.decide import Trace, decide
from gezel_rules.engines.llama_cpp.capacity import Capacity, taken
from gezel_rules.engines.llama_cpp.memory.estimate import Estimate
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.gguf.records import Header
from gezel_rules.planner import gather
from gezel_rules.planner.argv import Flag, flags
from gezel_rules.planner.policies import read_policies as read_policies
from gezel_rules.planner.subject import Places, Subject, find_subject, header_at
from gezel_rules.policy.model import PolicySet
from gezel_rules.record import NamedTuple

PLACED_BY = ("kv.type", "window.tokens", "slots.count", "spec.type", "memory.beside", "placement.mode")
"""The decisions a placement follows from, in the order ``Capacity.placed`` takes them."""


class Request(NamedTuple):
    """What somebody asks for. ``engine``: kind and command of the engine, ``None`` when none was found; ``held``:
    bytes that other launches have reserved, by pool;
    ``broke``: whether a drafter failed with an engine build."""

    model: str
    policies: Path
    places: Places
    cache: Path | None
    environ: Mapping[str, str]
    sites: Sequence[Path] = ()
    assignments: Sequence[str] = ()
    host: Path | None = None
    engine: tuple[str, tuple[str, ...]] | None = None
    held: Mapping[str, int] = {}
    broke: Callable[[str, str], bool] = lambda build, drafter: False


class Plan(NamedTuple):
    """One launch as decided: everything else about it is computed from these when somebody asks."""

    request: Request
    subject: Subject
    trace: Trace
    flags: list[Flag]
    capacity: Capacity

    @property
    def argv(self) -> list[str]:
        """All tokens, in order: flags only (what stands before them is the engine's command)."""
        return [token for flag in self.flags for token in flag.tokens]

    @property
    def refused(self) -> bool:
        """Whether there is to be no launch."""
        return self.trace.value("refusal") is not None

    @property
    def estimate(self) -> Estimate:
        """The memory of this launch, pool by pool, without what stands beside the model."""
        return self.capacity.placed(*(self.trace.value(name) for name in PLACED_BY)).estimate

    @property
    def beside(self) -> int:
        """Bytes beside the model on its first pool: drafter with its context, and projector."""
        return self.capacity.beside(*(self.trace.value(name) for name in PLACED_BY))

    @property
    def pools(self) -> dict[str, int]:
        """Bytes this launch takes of each pool, by the name the machine knows it under."""
        cards = self.capacity.cards[: len(self.estimate.pools) - 1]
        names = [*(card.name for card in cards), self.capacity.ram.name]
        return dict(zip(names, taken(self.estimate, self.beside), strict=True))


def make_plan(request: Request) -> Plan:
    """Decide one launch; starts nothing. Raises BadInput for whatever is wrong with the input."""
    policies = read_policies(request.policies, request.cache)
    subject = find_subject(request.model, request.places)
    facts = gather_facts(request, subject, policies)
    capacity = Capacity(subject.header, policies, facts, request.held, _draft_header(request, subject, facts))
    return _decided(request, subject, capacity, facts)


def _draft_header(request: Request, subject: Subject, facts: Mapping[str, Fact]) -> Header | None:
    """The drafter whose context counts: the operator's own, else the catalog's where no measured figure covers it."""
    own = facts["settings.draft_model"].value
    if own is not None:
        return header_at(own, request.places)
    draft = subject.draft
    return draft.header if draft is not None and draft.here and not draft.measured else None


def plan_with(plan: Plan, settings: Mapping[str, Any]) -> Plan:
    """The same launch under other settings; ``None`` for one that is dropped."""
    changed = {f"settings.{name}": Fact(value, "tried", "operator") for name, value in settings.items()}
    facts = {**plan.trace.facts, **changed}
    return _decided(plan.request, plan.subject, plan.capacity.with_facts(facts), facts)


def plan_without_drafter(plan: Plan) -> Plan:
    """The same launch after its catalog drafter failed."""
    facts = {**plan.trace.facts, "launch.draft_failed": Fact(True, "this launch")}
    return _decided(plan.request, plan.subject, plan.capacity.with_facts(facts), facts)


def plan_degraded(plan: Plan) -> Plan | None:
    """The same launch with less of each card, after the GPU ran out of memory: the first step that changes a flag.

    ``None`` when policy has no step left, or what is left would not fit.
    """
    facts = dict(plan.trace.facts)
    less = plan.capacity.degraded()
    while less is not None:
        if less.exceeded_by(plan.estimate, plan.beside):
            after = _decided(plan.request, plan.subject, less, facts)
            if after.argv != plan.argv:
                return None if after.refused else after
        less = less.degraded()
    return None


def _decided(request: Request, subject: Subject, capacity: Capacity, facts: dict[str, Fact]) -> Plan:
    facts = facts | capacity.facts()
    trace = decide(capacity.policies, facts, capacity.functions())
    return Plan(request, subject, trace, flags(trace), capacity)


def build_of(facts: Mapping[str, Fact]) -> str:
    """The name under which failures of an engine build are remembered: its version, and the identity of its files
    where it was asked itself. Empty when nobody knows either."""
    known = (facts[name].value for name in ("engine.version", "engine.identity"))
    return " ".join(str(word) for word in known if word is not UNKNOWN)


def gather_facts(request: Request, subject: Subject, policies: PolicySet) -> dict[str, Fact]:
    """Every fact of the vocabulary for this request."""
    tables = policies.tables
    settings = gather.setting_facts(tables, request.environ, request.sites, request.assignments, subject.id)
    lenders, lent_by = settings["settings.rpc"].value or (), policies.decisions["flag.rpc"].flag or ""
    machine = gather.Machine(request.host, request.engine, request.cache, request.environ, lenders, lent_by)
    facts = gather.machine_facts(machine, tables)
    backend, build = facts["engine.backend"].value, build_of(facts)
    draft = subject.draft.name if subject.draft else ""
    failed = bool(draft) and bool(build) and request.broke(build, draft)
    facts |= gather.header_facts(subject, tables) | settings | gather.entry_facts(subject, backend, tables)
    own = settings["settings.draft_model"].value
    facts |= gather.own_draft_facts(own, own and header_at(own, request.places), tables)
    return facts | gather.launch_facts(subject, settings, tables, failed)
