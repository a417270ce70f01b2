"""A case that failed, in words: what was expected, what came, the rule that fired, and what kept the other from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gezel_rules.author.testing.given import Words, shown
from gezel_rules.author.testing.judge import Difference, Ran, same
from gezel_rules.author.testing.launches import RanLaunch
from gezel_rules.author.testing.logs import RanLog
from gezel_rules.author.testing.run import AnyRan, Results
from gezel_rules.decisions.decide import Judgement, Trace
from gezel_rules.decisions.explain import rule_gives
from gezel_rules.decisions.trace import Explainer
from gezel_rules.decisions.words import say
from gezel_rules.engines import plain_functions


def failures(results: Results) -> Iterator[list[str]]:
    """The lines of every case that failed, in the order of the file."""
    for ran in results.failed:
        yield [_heading(ran), *(f"    {label:9} {said}" for label, said in _told(ran, results.suite.words))]


def place(ran: AnyRan) -> str:
    """``file:line`` of a case."""
    key = ran.case.node.key or ran.case.node
    return f"{key.text.name}:{key.line}"


def about(ran: AnyRan) -> str:
    """What a case is about: a decision, or the kind of case."""
    return ran.case.decision if isinstance(ran, Ran) else "launch" if isinstance(ran, RanLaunch) else "log"


def _heading(ran: AnyRan) -> str:
    return f"{place(ran)}: {about(ran)}: {ran.case.says}"


def _told(ran: AnyRan, words: Words) -> Iterator[tuple[str, str]]:
    if isinstance(ran, RanLog):
        yield from _log(ran)
    elif ran.fault is not None:
        yield from (("at fault", str(problem)) for problem in ran.fault.problems)
    elif isinstance(ran, Ran):
        yield from _decision(ran, words)
    else:
        yield from _launch(ran, words)


def _decision(ran: Ran, words: Words) -> Iterator[tuple[str, str]]:
    assert ran.trace is not None
    judgement, explain = ran.trace.judgements[ran.case.decision], _explainer(ran.trace, words)
    rule = f", by rule {ran.case.rule}" if ran.case.rule else ""
    yield "expected", shown(ran.case.value) + rule
    yield "got", _outcome(judgement)
    yield "because", explain.because(judgement)
    for difference in ran.differences:
        if difference.what not in ("value", "rule"):
            yield "also", _said(difference)
    if any(difference.what in ("value", "rule") for difference in ran.differences):
        yield from _instead(ran, judgement, explain)


def _explainer(trace: Trace, words: Words) -> Explainer:
    units = {name: type_.unit for name, type_ in words.facts.items() if type_.unit}
    return Explainer(trace, {**units, **plain_functions.units(words.functions)})


def _outcome(judgement: Judgement) -> str:
    winner, decision = judgement.winner, judgement.decision
    if winner is None:
        return f"{shown(judgement.value)}, and no rule fires ({decision.file}:{decision.line})"
    return f"{shown(judgement.value)}, by rule {winner.rule.id} ({decision.file}:{winner.rule.line})"


def _instead(ran: Ran, judgement: Judgement, explain: Explainer) -> Iterator[tuple[str, str]]:
    """The rules that would have given what was expected, and the fact that kept each from it."""
    lines = {rule.id: rule.line for rule in judgement.decision.rules}
    found = False
    for label, why in explain.beaten(judgement):
        rule = label.partition(" ")[0]
        wanted = rule == ran.case.rule if ran.case.rule else rule_gives(explain, judgement, label, say(ran.case.value))
        if wanted and rule in lines:
            found = True
            yield "why not", f"rule {label} ({judgement.decision.file}:{lines[rule]}): {why}"
    if not found and not same(ran.case.value, judgement.value):
        yield "why not", f"no rule of {judgement.decision.name} gives {shown(ran.case.value)} on these facts"


def _launch(ran: RanLaunch, words: Words) -> Iterator[tuple[str, str]]:
    assert ran.trace is not None
    explain = _explainer(ran.trace, words)
    decisions = {each.decision.flag: name for name, each in ran.trace.judgements.items() if each.decision.flag}
    decisions["refused"] = "refusal"
    for difference in ran.differences:
        yield "expected", f"{difference.what} {shown(difference.expected)}"
        judgement = ran.trace.judgements.get(decisions.get(difference.what, difference.what))
        yield "got", _outcome(judgement) if judgement else shown(difference.got)
        if judgement:
            yield "because", explain.because(judgement)


def _log(ran: RanLog) -> Iterator[tuple[str, str]]:
    for difference in ran.differences:
        yield "expected", f"{difference.what} {shown(difference.expected)}"
        yield "got", f"{difference.what} {shown(difference.got)}"
    for rule in dict.fromkeys((ran.verdict.rule, ran.verdict.gpu_rule)):
        if rule is not None:
            yield "rule", f"{rule.id} ({rule.file}:{rule.line})"
    if ran.verdict.line:
        yield "line", ran.verdict.line


def _said(difference: Difference) -> str:
    return f"{difference.what}: expected {shown(difference.expected)}, got {shown(difference.got)}"


def as_json(ran: AnyRan) -> dict[str, Any]:
    """A case and what became of it, as data."""
    fault = ran.fault if isinstance(ran, (Ran, RanLaunch)) else None
    return {
        "place": place(ran), "about": about(ran), "says": ran.case.says, "passed": ran.passed,
        "differences": [
            {"what": each.what, "expected": shown(each.expected), "got": shown(each.got)} for each in ran.differences
        ],
        "rule": _rule(ran), "fault": str(fault) if fault else None,
    }  # fmt: skip


def _rule(ran: AnyRan) -> dict[str, Any] | None:
    """The rule that decided, with its place."""
    if isinstance(ran, RanLog):
        return ran.verdict.rule._asdict() if ran.verdict.rule else None
    judgement = ran.trace.judgements[ran.case.decision] if isinstance(ran, Ran) and ran.trace else None
    if judgement is None or judgement.winner is None:
        return None
    return {"id": judgement.winner.rule.id, "file": judgement.decision.file, "line": judgement.winner.rule.line}
