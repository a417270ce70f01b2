"""The plan: facts gathered, policies judged, argv and memory put together, or a refusal that says what is short."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gezel_rules.decisions.decide import Trace, decide
from gezel_rules.engines.family import DRAFTER
from gezel_rules.errors import GezelError
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.planner import gather
from gezel_rules.planner.argv import Flag, flags
from gezel_rules.planner.entry_facts import entry_facts, launch_facts
from gezel_rules.planner.known import Known
from gezel_rules.planner.subject import Places, find_subject
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.engines.family import MemoryUse, Program
    from gezel_rules.engines.protocol import Family, Fit
    from gezel_rules.engines.subject import Subject
    from gezel_rules.policy.model import PolicySet


class Request(NamedTuple):
    """What somebody asks for. ``host``: a described machine instead of this one; ``program``: a family's program here
    (``None``: none was found; raises BadInput when one was named that is not there); ``held``: bytes that
    other launches have reserved, by pool; ``broke``: whether a part of a launch failed with a build; ``known``: what
    other plans have read already of the same policies and catalog."""

    model: str
    policies: Path
    places: Places
    cache: Path | None
    environ: Mapping[str, str]
    sites: Sequence[Path] = ()
    assignments: Sequence[str] = ()
    host: Path | None = None
    program: Callable[[Family], Program | None] = lambda family: None
    held: Mapping[str, int] = {}
    broke: Callable[[str, str], bool] = lambda build, part: False
    known: Known | None = None


class Plan(NamedTuple):
    """One launch as decided: everything else about it is computed from these when somebody asks. ``program``: what
    starts it; ``None`` for a described machine, or where no engine was found."""

    request: Request
    subject: Subject
    program: Program | None
    trace: Trace
    flags: list[Flag]
    fit: Fit

    @property
    def argv(self) -> list[str]:
        """All tokens, in order: flags only (what stands before them is the engine's command)."""
        return [token for flag in self.flags for token in flag.tokens]

    @property
    def known(self) -> Known:
        """What was read on the way, for other plans by the same policies and catalog."""
        return cast("Known", self.request.known)  # ``make_plan`` sees to it

    @property
    def refused(self) -> bool:
        """Whether there is to be no launch."""
        return self.trace.value("refusal") is not None

    @property
    def memory(self) -> MemoryUse:
        """What this launch takes of each pool."""
        return self.fit.memory(self.trace)


def make_plan(request: Request) -> Plan:
    """Decide one launch; starts nothing. Raises BadInput for whatever is wrong with the input."""
    known = request.known or Known(request.policies, request.places.catalog, request.cache)
    request = request._replace(known=known)
    subject = find_subject(request.model, request.places, known.entries)
    policies = known.policies(subject.family.name)
    program = None if request.host else request.program(subject.family)
    facts = gather_facts(request, subject, policies, program)
    fit = subject.family.fit(subject, policies, facts, request.held, request.cache)
    return _decided(request, subject, program, policies, fit, facts)


def plan_with(plan: Plan, settings: Mapping[str, Any]) -> Plan:
    """The same launch under other settings; ``None`` for one that is dropped."""
    return _under(plan, {f"settings.{name}": Fact(value, "tried", "operator") for name, value in settings.items()})


def plan_under(plan: Plan, policies: PolicySet) -> Plan:
    """The same launch by other policies that have the same tables: facts and arithmetic are those there are."""
    facts = dict(plan.trace.facts)
    return _decided(plan.request, plan.subject, plan.program, policies, plan.fit.under(policies), facts)


def plan_without_drafter(plan: Plan) -> Plan:
    """The same launch after its catalog drafter failed."""
    return _under(plan, {"launch.draft_failed": Fact(True, "this launch")})


def plan_without(plan: Plan, part: str, held: Mapping[str, int] | None = None) -> Plan | None:
    """The same launch after a part of it failed, by policy's word for the part: the family says which fact that is.
    With ``held``, on the memory that is free now. ``None`` when it changes nothing, or what is left is refused."""
    failed = {**plan.subject.family.leaves_out, DRAFTER: "launch.draft_failed"}
    if part not in failed:
        return None
    plan = _beside(plan, held)
    facts, fit = _now(plan, held)
    facts |= {failed[part]: Fact(True, "this launch")}
    after = _again(plan, fit.with_facts(facts), facts)
    return None if after.refused or after.argv == plan.argv else after


def _under(plan: Plan, changed: Mapping[str, Fact]) -> Plan:
    facts = {**plan.trace.facts, **changed}
    return _again(plan, plan.fit.with_facts(facts), facts)


def plan_degraded(plan: Plan, held: Mapping[str, int] | None = None) -> Plan | None:
    """The same launch with less of each card, after the GPU ran out of memory: the first step that changes a flag.
    With ``held`` (bytes that other launches have reserved, by pool) memory is measured anew first, and where that alone
    changes a flag, it is the step.

    ``None`` when policy has no step left, or what is left would not fit.
    """
    plan = _beside(plan, held)
    taken, (facts, fit) = plan.memory, _now(plan, held)
    less = fit if fit.exceeded_by(taken) else fit.degraded(taken)
    while less is not None:
        after = _again(plan, less, facts)
        if after.argv != plan.argv:
            return None if after.refused else after
        less = less.degraded(taken)
    return None


def _beside(plan: Plan, held: Mapping[str, int] | None) -> Plan:
    """The plan with what other launches hold now."""
    return plan if held is None else plan._replace(request=plan.request._replace(held=held))


def _now(plan: Plan, held: Mapping[str, int] | None) -> tuple[dict[str, Fact], Fit]:
    """The plan's facts and arithmetic, on the memory that is free now where ``held`` is given. A machine that does not
    list the same devices as before (a driver that broke) is taken as it was."""
    facts, request = dict(plan.trace.facts), plan.request
    if held is None:
        return facts, plan.fit
    machine = gather.Machine(request.host, plan.program, request.cache, request.environ)
    try:
        found = gather.machine_facts(machine, plan.subject.family, plan.trace.policies, facts)
    except GezelError:
        return facts, plan.fit
    if found["gpu.devices"].value != facts["gpu.devices"].value:
        return facts, plan.fit
    facts |= {name: fact for name, fact in found.items() if gather.is_memory(name)}
    return facts, plan.fit.measured(facts, held)


def _again(plan: Plan, fit: Fit, facts: dict[str, Fact]) -> Plan:
    return _decided(plan.request, plan.subject, plan.program, plan.trace.policies, fit, facts)


def _decided(
    request: Request, subject: Subject, program: Program | None, policies: PolicySet, fit: Fit, facts: dict[str, Fact]
) -> Plan:
    trace = decide(policies, facts | fit.facts(), fit.functions())
    return Plan(request, subject, program, trace, flags(trace), fit)


def build_of(facts: Mapping[str, Fact]) -> str:
    """The name under which failures of an engine build are remembered: its version, and the identity of its files
    where it was asked itself. Empty when nobody knows either."""
    known = (facts[name].value for name in ("engine.version", "engine.identity"))
    return " ".join(str(word) for word in known if word is not UNKNOWN)


def gather_facts(request: Request, subject: Subject, policies: PolicySet, program: Program | None) -> dict[str, Fact]:
    """Every fact of the family's vocabulary for this request."""
    family, tables = subject.family, policies.tables
    said = gather.Said(request.environ, request.sites, request.assignments)
    settings = gather.setting_facts(family, policies, said, subject.id)
    machine = gather.Machine(request.host, program, request.cache, request.environ)
    facts = gather.machine_facts(machine, family, policies, settings)
    backend, build = facts["engine.backend"].value, build_of(facts)
    draft = subject.draft.identity if subject.draft else ""
    failed = bool(draft) and bool(build) and request.broke(build, draft)
    facts |= family.model_facts(subject, settings, policies, request.cache)
    for part, name in family.leaves_out.items():
        facts[name] = Fact(bool(build) and request.broke(build, part), "remembered failures")
    return facts | settings | entry_facts(subject, backend) | launch_facts(subject, settings, tables, failed)
