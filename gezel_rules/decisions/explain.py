"""Decisions in words for people who have a minute: why this value, what it beat, and why not another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gezel_rules.decisions.decide import Judgement
from gezel_rules.decisions.trace import Explainer
from gezel_rules.decisions.words import say
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.lang.evaluate import EvaluationError
from gezel_rules.policy.model import STAND_DOWNS, Rule

_LEVELS = {"policy": "policy default", "gguf": "GGUF header", "operator": "operator", "environment": "environment",
           "machine": "operator, machine-wide", "catalog": "catalog entry"}  # fmt: skip


def block(explain: Explainer, judgement: Judgement) -> Iterator[str]:
    """A decision as a block of lines: value and rule, because, level, facts, beaten, evidence."""
    decision, winner = judgement.decision, judgement.winner
    version = next(f"{f.policy} {f.version}" for f in explain.trace.policies.files if f.policy == decision.policy)
    line = winner.rule.line if winner else decision.line
    rule = f"rule {winner.rule.id}" if winner else "no rule"
    yield f"  {decision.name} = {said_value(explain, judgement)}      {decision.file}:{line} · {rule} · {version}"
    yield f"    because   {explain.because(judgement)}"
    yield f"    level     {level_words(explain, judgement)}"
    yield from _facts(explain, judgement)
    yield from _beaten(explain, judgement)
    if winner and winner.rule.evidence:
        evidence = winner.rule.evidence
        dated = f"{evidence['measured']}: " if "measured" in evidence else ""
        yield f"    evidence  {dated}{evidence.get('note', '')}"


def said_value(explain: Explainer, judgement: Judgement) -> str:
    """The value with its unit; of a record, its parts that are set."""
    value = judgement.value
    if isinstance(value, dict):
        parts = {key: say(part, explain.units.get(f".{key}", "")) for key, part in value.items()}
        return ", ".join(f"{key} {said}" for key, said in parts.items() if value[key] not in (None, False))
    return say(value, judgement.decision.unit)


def level_words(explain: Explainer, judgement: Judgement) -> str:
    """The level that won, and the values of the levels below that it beat."""
    words = _LEVELS.get(explain.level(judgement), explain.level(judgement))
    winner = judgement.winner
    fact = explain.trace.facts.get(winner.rule.then) if winner else None
    if fact is not None and fact.beaten:
        words += " over " + ", ".join(f"{say(value)} ({source})" for _, value, source in fact.beaten)
    return words


def _facts(explain: Explainer, judgement: Judgement) -> Iterator[str]:
    label = "facts"
    for name in explain.rests_on(judgement):
        fact = explain.trace.facts.get(name)
        if fact is not None and fact.value is not None:
            settle = f"; {fact.settle} would tell" if fact.value is UNKNOWN and fact.settle else ""
            yield f"    {label:9} {name} {say(fact.value, explain.units.get(name, ''))} ({fact.source}{settle})"
            label = ""
        elif fact is None:
            other = explain.trace.judgements[name]
            yield f"    {label:9} {name} {said_value(explain, other)}: {explain.because(other)}"
            label = ""


def _beaten(explain: Explainer, judgement: Judgement) -> Iterator[str]:
    """Rules that lost; of a search, the candidates that were turned down."""
    search = judgement.decision.hit == "search"
    label = "beat"
    for rule, why in explain.rejected(judgement) if search else explain.beaten(judgement):
        if rule not in STAND_DOWNS:
            yield f"    {label:9} {rule}: {why}"
            label = ""


def sources(explain: Explainer, judgement: Judgement) -> list[Judgement]:
    """The decisions that were read on the way to this one."""
    return [explain.trace.judgements[name] for name in explain.read(judgement) if name in explain.trace.judgements]


def passed_on(explain: Explainer, judgement: Judgement) -> Judgement:
    """The decision whose value a flag hands on, or the judgement itself."""
    then = judgement.winner.rule.then if judgement.winner else None
    return explain.trace.judgements.get(str(then), judgement)


def why_not_value(explain: Explainer, judgement: Judgement, value: str) -> Iterator[str]:
    """Why the decision did not fall for ``value``: the rules that would have given it, and what kept each from it."""
    if _same(judgement.value, value):
        yield f"  it is {value}"
        return
    found = False
    beaten = explain.beaten(judgement)
    for rule, why in beaten:
        if _gives(explain, judgement, rule, value):
            found = True
            yield f"  {judgement.decision.name} is not {value}: rule {rule}: {why}"
    for other in sources(explain, judgement):
        if other.decision.hit == "search":
            for rule, why in explain.rejected(other):
                if rule.endswith(f"({value})"):
                    found = True
                    yield f"  {other.decision.name} did not take {value}: rule {rule}: {why}"
    if not found:
        yield f"  no rule of {judgement.decision.name} gives {value} on these facts"
        yield from (f"  an operator may: --set {name}={value}" for name in _settable(judgement))


def _settable(judgement: Judgement) -> list[str]:
    """The settings that a rule of the decision passes on as they are."""
    passed = [rule.then for rule in judgement.decision.rules if rule.then.startswith("settings.")]
    return [name.removeprefix("settings.") for name in passed]


def _same(found: Any, value: str) -> bool:
    """Whether people would write the value like this: 65,536 and 65536 are one number."""
    return say(found).replace(",", "") == value.replace(",", "")


def _gives(explain: Explainer, judgement: Judgement, label: str, value: str) -> bool:
    if judgement.decision.hit == "search":
        return label.endswith(f"({value})")
    rule = next((r for r in judgement.decision.rules if r.id == label), None)
    return rule is not None and _would_give(explain, rule, value)


def _would_give(explain: Explainer, rule: Rule, value: str) -> bool:
    try:
        return _same(explain.evaluate(rule.then), value)
    except EvaluationError:
        return False
