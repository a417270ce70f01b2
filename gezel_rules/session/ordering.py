"""From a plan to what the runtime is told: the order, and the guide it asks when something fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gezel_rules.engines.family import DEGRADATION, DRAFTER
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.planner.needs import Step
from gezel_rules.planner.plan import Plan, build_of, plan_degraded, plan_without
from gezel_rules.planner.record import plan_record
from gezel_rules.runtime.journal import MODEL_PATH
from gezel_rules.runtime.order import Guide, Order


def order_of(plan: Plan) -> Order:
    """What is launched. The plan has a program: it was made for this machine."""
    assert plan.program is not None
    return Order(
        engine=plan.program, contract=plan.subject.family.contract, argv=tuple(plan.argv), env={},
        model=plan.subject.id, model_bytes=_size(plan.subject.model_path),
        pools={pool.name: pool.used for pool in plan.memory.pools}, build=build_of(plan.trace.facts),
        parts=_parts(plan), called=_called(plan), folders=_folders(plan), record=_record(plan),
    )  # fmt: skip


def _record(plan: Plan) -> dict[str, Any]:
    """What the journal keeps: the plan, and the model's file, by which others know what this engine holds."""
    return {MODEL_PATH: str(Path(plan.subject.model_path).absolute()), **plan_record(plan)}


def _parts(plan: Plan) -> dict[str, str]:
    """What recovery may leave out: the catalog's drafter, and what the engine family names."""
    draft = plan.subject.draft
    drafter = {DRAFTER: draft.identity} if draft and plan.trace.get("drafter.may_drop") else {}
    return drafter | {part: part for part in plan.fit.may_leave_out(plan.trace)}


def _called(plan: Plan) -> dict[str, str]:
    """What people call the drafter that is remembered by its identity."""
    draft = plan.subject.draft
    return {draft.identity: draft.name} if draft else {}


def _folders(plan: Plan) -> dict[str, str]:
    """The directory for saved slots, where the launch names one: the engine refuses one that does not exist."""
    fact = plan.trace.facts.get("launch.slot_directory")
    return {} if fact is None or fact.value is None else {"slot_save_path": str(fact.value)}


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def guide_of(plan: Plan, say: Callable[[str], None], held: Callable[[], Mapping[str, int]]) -> Guide:
    """Judges logs by the log policies, and gives the next order after a failure, on the memory that is free then;
    ``held()``: bytes that other launches have reserved, by pool."""
    current, tried = [plan], {tuple(plan.argv)}

    def again(step: Step) -> Order | None:
        before, others = current[0], held()
        degrades = step.needs == DEGRADATION
        following = plan_degraded(before, others) if degrades else plan_without(before, step.needs, others)
        if following is None or tuple(following.argv) in tried:
            return None  # what failed already is not started again
        current[0] = following
        tried.add(tuple(following.argv))
        return order_of(following)

    on_gpu = bool(plan.trace.get("backend.gpu"))
    can = frozenset({DEGRADATION} if on_gpu else ())
    return Guide(_judge(plan), again, can, say, gpu=on_gpu)


def _judge(plan: Plan) -> Callable[[Sequence[str], int | None], Any]:
    facts = {name: plan.trace.facts[f"engine.{name}"].value for name in ("backend", "version")}
    known = {name: None if value is UNKNOWN else value for name, value in facts.items()}

    def judge(lines: Sequence[str], exit_status: int | None) -> Any:
        from gezel_rules.logs.sealed import log_policy
        from gezel_rules.logs.watch import classify

        return classify(lines, log_policy(plan.trace.policies), known["backend"], exit_status, known["version"])

    return judge
