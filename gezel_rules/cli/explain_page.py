"""``gezel-rules explain MODEL --html FILE``: the whole launch as one page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from itertools import takewhile

from gezel_rules.author.explain_page import Bar, Explained, Launch, Part, page
from gezel_rules.decisions.decide import Judgement
from gezel_rules.decisions.explain import beaten_said, decided_by, evidence_said, facts_said, level_words, said_value
from gezel_rules.decisions.trace import Explainer, place_of
from gezel_rules.decisions.words import say_bytes
from gezel_rules.engines.family import PoolUse
from gezel_rules.planner.plan import Plan
from gezel_rules.planner.report import explainer
from gezel_rules.planner.summary import headlines, notes, warnings
from gezel_rules.policy.files import policy_paths, shown_name
from gezel_rules.session.session import Session


def page_of(plan: Plan, session: Session) -> str:
    """The page, as HTML."""
    explain = explainer(plan)
    texts = _texts(session)
    decisions = [_explained(explain, judgement, texts) for judgement in plan.trace.judgements.values()]
    return page(_launch(plan, explain), list(map(_bar, plan.memory.pools)), decisions)


def _launch(plan: Plan, explain: Explainer) -> Launch:
    host = plan.request.host
    refusal = plan.trace.judgements["refusal"]
    said = (*(f"warning: {said}" for said in warnings(plan, explain)), *notes(plan, explain))
    return Launch(
        plan.subject.id, host.stem if host else "this machine", " ".join(map(shlex.quote, plan.argv)),
        explain.because(refusal) if plan.refused else "", tuple(headlines(plan, explain)), said,
    )  # fmt: skip


def _bar(pool: PoolUse) -> Bar:
    """A bar as long as what may be taken, or as what is taken where that is more."""
    whole = max(pool.usable or 0, pool.used, 1)
    parts = (Part(label, say_bytes(size), 100 * size / whole) for label, size in pool.parts.items())
    usable = "an unknown amount" if pool.usable is None else say_bytes(pool.usable)
    limit = None if pool.usable is None else 100 * pool.usable / whole
    return Bar(pool.name, f"{say_bytes(pool.used)} of {usable}", tuple(parts), limit)


def _explained(explain: Explainer, judgement: Judgement, texts: Mapping[str, str]) -> Explained:
    decision = judgement.decision
    file, line = place_of(judgement)
    return Explained(
        name=decision.name, flag=decision.flag or "", value=said_value(explain, judgement),
        decided_by=decided_by(explain, judgement), because=explain.because(judgement),
        level=level_words(explain, judgement), facts=tuple(facts_said(explain, judgement)),
        beaten=tuple(beaten_said(explain, judgement)), evidence=evidence_said(judgement),
        source=entry(texts.get(file, ""), line), reads=decision.reads,
    )  # fmt: skip


def _texts(session: Session) -> dict[str, str]:
    """Every policy and layer by the name that places give it. One that is no longer there shows no source."""
    paths = {shown_name(path, session.policies): path for path in policy_paths(session.policies)}
    paths |= {str(path): path for path in session.layers}
    return {name: path.read_text("utf-8", "replace") for name, path in paths.items() if path.is_file()}


def entry(text: str, line: int) -> str:
    """The entry of a YAML text that begins on a line (from 1): all that is indented further, less its own indent."""
    first, *rest = text.split("\n")[line - 1 :] or [""]
    indent = _indent(first)
    body = takewhile(lambda row: not row.strip() or _indent(row) > indent, rest)
    return "\n".join(row[indent:].rstrip() for row in (first, *body)).rstrip()


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip(" "))
