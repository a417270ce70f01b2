"""A plan as the JSON that ``plan --json`` and checks read; ``record`` has what the journal keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gezel_rules.decisions.trace import Explainer
from gezel_rules.engines import plain_functions
from gezel_rules.facts.vocabulary import units
from gezel_rules.planner.nearest import nearest
from gezel_rules.planner.plan import Plan, plan_degraded, plan_without_drafter
from gezel_rules.planner.summary import notes, summary, warnings

RUNGS = 3
"""Steps of the ladder that a plan shows; a launch may go further."""


def explainer(plan: Plan) -> Explainer:
    """Words for the plan's judgements, with the units of facts and functions."""
    family = plan.subject.family
    return Explainer(plan.trace, {**units(family.vocabulary()), **plain_functions.units(family.signatures())})


def plan_json(plan: Plan) -> dict[str, Any]:
    """The whole plan, explained."""
    explain = explainer(plan)
    policies = plan.trace.policies
    return {
        "model": plan.subject.id,
        "argv": plan.argv,
        "env": {},
        "files": list(files(plan)),
        "memory": _memory(plan),
        "flags": [{"tokens": list(flag.tokens), "decision": flag.decision} for flag in plan.flags],
        "decisions": [explain.to_json(judgement) for judgement in plan.trace.judgements.values()],
        "summary": summary(plan, explain),
        "warnings": warnings(plan, explain),
        "notes": notes(plan, explain),
        "ladder": list(ladder(plan)),
        "endpoint": plan.trace.value("prompt.endpoint"),
        "policy": {
            "digest": policies.digest,
            "files": [{"policy": file.policy, "version": file.version} for file in policies.files],
        },
        "refused": refusal(plan, explain),
    }


def _memory(plan: Plan) -> dict[str, Any]:
    """The family's own account of the memory, and what the launch takes of each pool of the machine."""
    memory = plan.memory
    taken = [{"pool": pool.name, "bytes": pool.used, "usable_bytes": pool.usable} for pool in memory.pools]
    return {**memory.account, "taken": taken}


def files(plan: Plan) -> Iterator[dict[str, Any]]:
    """Every file of the launch: its role, where it is or will be, and whether this launch loads it."""
    subject = plan.subject
    yield {"role": "model", "name": _name(subject.model_path), "path": subject.model_path, "here": subject.installed,
           "loads": True}  # fmt: skip
    loads = {"draft": plan.trace.get("drafter.loads"), "projector": plan.trace.get("vision.loads")}
    for role, companion in (("draft", subject.draft), ("projector", subject.projector)):
        if companion is not None:
            here = companion.here and subject.installed
            yield {"role": role, "name": companion.name, "path": companion.path, "here": here, "loads": loads[role]}


def _name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def refusal(plan: Plan, explain: Explainer) -> dict[str, Any] | None:
    """Why there is no launch, what is short, and what would fit; ``None`` when there is one."""
    kind = plan.trace.value("refusal")
    if kind is None:
        return None
    judgement = plan.trace.judgements["refusal"]
    found: dict[str, Any] = {"kind": kind, "because": explain.because(judgement)}
    if kind == "no-room":
        found["shortfall_bytes"] = plan.memory.shortfall_bytes
        near = nearest(plan)
        found |= {"nearest": near.says, "try": {"model": near.model, "set": near.settings}}
    return found


def ladder(plan: Plan) -> Iterator[dict[str, Any]]:
    """What is tried, in order, when the launch fails at start: without the catalog's drafter, then, for a GPU out of
    memory, with less and less of each card; each step with the flags that change."""
    if plan.refused:
        return
    before = plan
    if plan.trace.get("drafter.loads"):
        after = plan_without_drafter(before)
        yield _rung("without the drafter", before, after)
        before = after
    for _ in range(RUNGS):
        degraded = plan_degraded(before)
        if degraded is None:
            return
        yield _rung(f"with {degraded.fit.share * 100:.2g}% of each card", before, degraded)
        before = degraded


def _rung(says: str, before: Plan, after: Plan) -> dict[str, Any]:
    old, new = _by_decision(before), _by_decision(after)
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return {"step": says, "changes": {name: {"from": old.get(name), "to": new.get(name)} for name in changed}}


def _by_decision(plan: Plan) -> dict[str, list[str]]:
    return {flag.decision: list(flag.tokens) for flag in plan.flags}
