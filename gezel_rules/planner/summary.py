"""A launch in a few figures, as argv has them in the end: the operator's own arguments come last and win."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from gezel_rules.decisions.trace import Explainer
from gezel_rules.decisions.words import say
from gezel_rules.engines.family import Probe, SummaryRow
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.planner.plan import Plan
from gezel_rules.policy.model import STAND_DOWNS

BUDGET = "flag.reasoning-budget"
UNBOUNDED = "unbounded"
SHOW = "show."


def summary(plan: Plan, explain: Explainer) -> dict[str, Any]:
    """The rows of policy's ``launch_summary``, the window of one slot (tokens), and who bounds the thinking.

    ``None`` where the engine is left to choose.
    """
    policies = plan.trace.policies
    spellings, rows = policies.tables.get("option_spellings", {}), policies.rows_if_any("launch_summary", SummaryRow)
    found = {name: _effective(plan.argv, row, spellings) for name, row in rows.items()}
    context, slots = found.pop("context", None), found.get("slots")
    window = context // slots if isinstance(context, int) and isinstance(slots, int) and slots > 0 else None
    return {"window": window, **found, "reasoning_budget_source": _budget_source(plan, explain, found)}


def _effective(argv: Sequence[str], row: SummaryRow, spellings: Mapping[str, Sequence[str]]) -> Any:
    """The last value of an option under any of its spellings."""
    names = {row.flag, *spellings.get(row.flag, ())}
    values = [value for name, value in pairwise(argv) if name.replace("_", "-") in names]
    if not values:
        return row.otherwise
    if row.file:
        return values[-1].replace("\\", "/").rsplit("/", 1)[-1]
    return int(values[-1]) if values[-1].lstrip("-").isdecimal() else values[-1]


def _budget_source(plan: Plan, explain: Explainer, found: Mapping[str, Any]) -> str:
    if found.get("reasoning_budget") is None:
        return UNBOUNDED
    judgement = plan.trace.judgements[BUDGET]
    return "operator" if stood_down(judgement.winner) else explain.level(judgement)


def stood_down(winner: Any) -> bool:
    """Whether a planned flag gave way to the operator's own argument."""
    return winner is not None and winner.rule.id == STAND_DOWNS[1]


def headlines(plan: Plan, explain: Explainer) -> Iterator[tuple[str, str]]:
    """The launch in a few lines: every ``show.`` decision, its label and its words."""
    for name, judgement in plan.trace.judgements.items():
        if name.startswith(SHOW) and judgement.value is not None and judgement.value is not UNKNOWN:
            yield name.removeprefix(SHOW), explain.because(judgement)


def warnings(plan: Plan, explain: Explainer) -> list[str]:
    """What may go wrong, in words: every ``warn.`` decision that fell for something."""
    return list(_said(plan, explain, "warn."))


def notes(plan: Plan, explain: Explainer) -> list[str]:
    """What is worth knowing: every ``note.`` decision, and planned flags that gave way to the operator's arguments."""
    gave_way = [j.decision.flag for j in plan.trace.judgements.values() if j.decision.flag and stood_down(j.winner)]
    own = f"the operator's own {', '.join(map(str, gave_way))} counts; the memory plan does not know of it"
    return [
        *_said(plan, explain, "note."), *([own] if gave_way else []), *_laid_over(plan), *_set_elsewhere(plan),
        *_behind(plan),
    ]  # fmt: skip


def _laid_over(plan: Plan) -> Iterator[str]:
    """Layers, which change what the policies of everybody else say."""
    for file in plan.trace.policies.files:
        if file.is_layer:
            yield f"{file.file} {file.version} is laid over the policies: {file.summary}"


def _set_elsewhere(plan: Plan) -> Iterator[str]:
    """Settings of the environment and of site files, which no command line shows."""
    for name, fact in plan.trace.facts.items():
        if name.startswith("settings.") and fact.source.startswith(("environment ", "site ")):
            yield f"{fact.source} is in force: {name.removeprefix('settings.')} = {say(fact.value)}"


def _behind(plan: Plan) -> Iterator[str]:
    """What the engine itself reads from variables and files, and no flag of the plan beats."""
    if plan.program is None:
        return
    request, policies = plan.request, plan.trace.policies
    probe = Probe(plan.program, policies, request.environ, request.cache)
    for setting in plan.subject.family.outside_settings(probe):
        if setting.stands and setting.option and not {*setting.names} & {*plan.argv}:
            yield f"{setting.source} is in force, and no policy knows of it: {setting.option} {setting.value}".rstrip()


def _said(plan: Plan, explain: Explainer, prefix: str) -> Iterator[str]:
    for name, judgement in plan.trace.judgements.items():
        if name.startswith(prefix) and judgement.value is not None and judgement.value is not UNKNOWN:
            yield explain.because(judgement)
