"""Decisions in words for people who have a minute: why this value, what it beat, and why not another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, repeat
from typing import Any

from gezel_rules.decisions.decide import Judgement
from gezel_rules.decisions.trace import Explainer, place_of
from gezel_rules.decisions.words import say
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.lang.evaluate import EvaluationError
from gezel_rules.policy.model import STAND_DOWNS, Rule

LEVELS = {"policy": "policy default", "gguf": "GGUF header", "operator": "operator", "environment": "environment",
          "machine": "operator, machine-wide", "catalog": "catalog entry"}  # fmt: skip
"""Precedence levels as people call them."""


def block(explain: Explainer, judgement: Judgement) -> Iterator[str]:
    """A decision as a block of lines: value and rule, because, level, facts, beaten, evidence."""
    yield f"  {judgement.decision.name} = {said_value(explain, judgement)}      {decided_by(explain, judgement)}"
    yield f"    because   {explain.because(judgement)}"
    yield f"    level     {level_words(explain, judgement)}"
    yield from _rows("facts", facts_said(explain, judgement), " ")
    yield from _rows("beat", beaten_said(explain, judgement), ": ")
    if evidence := evidence_said(judgement):
        yield f"    evidence  {evidence}"


def decided_by(explain: Explainer, judgement: Judgement) -> str:
    """The place of the rule that won, its id, and the policy with its version."""
    decision, winner = judgement.decision, judgement.winner
    file, line = place_of(judgement)
    version = next(f"{f.policy} {f.version}" for f in explain.trace.policies.files if f.policy == decision.policy)
    rule = f"rule {winner.rule.id}" if winner else "no rule"
    return f"{file}:{line} · {rule} · {version}"


def said_value(explain: Explainer, judgement: Judgement) -> str:
    """The value with its unit; of a record, its parts that are set."""
    value = judgement.value
    if isinstance(value, dict):
        parts = {key: say(part, explain.units.get(f".{key}", "")) for key, part in value.items()}
        return ", ".join(f"{key} {said}" for key, said in parts.items() if value[key] not in (None, False))
    return say(value, judgement.decision.unit)


def level_words(explain: Explainer, judgement: Judgement) -> str:
    """The level that won, and the values of the levels below that it beat."""
    words = LEVELS.get(explain.level(judgement), explain.level(judgement))
    winner = judgement.winner
    fact = explain.trace.facts.get(winner.rule.then) if winner else None
    if fact is not None and fact.beaten:
        words += " over " + ", ".join(f"{say(value)} ({source})" for _, value, source in fact.beaten)
    return words


def _rows(label: str, said: Iterable[tuple[str, str]], between: str) -> Iterator[str]:
    for head, (name, words) in zip(chain([label], repeat("")), said, strict=False):
        yield f"    {head:9} {name}{between}{words}"


def facts_said(explain: Explainer, judgement: Judgement) -> Iterator[tuple[str, str]]:
    """The facts and decisions a decision rests on, each with its value and where it comes from."""
    for name in explain.rests_on(judgement):
        fact = explain.trace.facts.get(name)
        if fact is not None and fact.value is not None:
            settle = f"; {fact.settle} would tell" if fact.value is UNKNOWN and fact.settle else ""
            yield name, f"{say(fact.value, explain.units.get(name, ''))} ({fact.source}{settle})"
        elif fact is None:
            other = explain.trace.judgements[name]
            yield name, f"{said_value(explain, other)}: {explain.because(other)}"


def beaten_said(explain: Explainer, judgement: Judgement) -> list[tuple[str, str]]:
    """Rules that lost, each with why; of a search, the candidates that were turned down."""
    search = judgement.decision.hit == "search"
    lost = explain.rejected(judgement) if search else explain.beaten(judgement)
    return [(rule, why) for rule, why in lost if rule not in STAND_DOWNS]


def evidence_said(judgement: Judgement) -> str:
    """What the rule that won was measured by, and when; empty where it names nothing."""
    evidence = judgement.winner.rule.evidence if judgement.winner else None
    if not evidence:
        return ""
    dated = f"{evidence['measured']}: " if "measured" in evidence else ""
    return f"{dated}{evidence.get('note', '')}"


def sources(explain: Explainer, judgement: Judgement) -> list[Judgement]:
    """The decisions that were read on the way to this one."""
    return [explain.trace.judgements[name] for name in explain.read(judgement) if name in explain.trace.judgements]


def passed_on(explain: Explainer, judgement: Judgement) -> Judgement:
    """The decision whose value a flag hands on, or the judgement itself."""
    then = judgement.winner.rule.then if judgement.winner else None
    return explain.trace.judgements.get(str(then), judgement)


FURTHEST = 8
"""Decisions that are followed, one behind the other."""


def _is_nothing(value: Any) -> bool:
    return value is None or value is False or value == "none"


def held_back(explain: Explainer, judgement: Judgement) -> list[str]:
    """Decision by decision, why nothing is given: through the last rule that would have given something, to the one
    whose reason rests on no other that says no."""
    found: list[str] = []
    seen = {judgement.decision.name}
    following: Judgement | None = judgement
    while following is not None and len(found) < FURTHEST:
        nothing = [name for name in _ways(explain, following) if name not in seen]
        following = next((explain.trace.judgements[name] for name in nothing), None)
        if following is not None:
            seen.add(following.decision.name)
            value = said_value(explain, following)
            found.append(f"{following.decision.name} is {value}: {explain.because(following)}")
    return found


def _ways(explain: Explainer, judgement: Judgement) -> list[str]:
    """Decisions that say no, read by a rule that would have given something (the last first), then by the winner."""
    judgements = explain.trace.judgements
    giving = [rule for rule in judgement.decision.rules if rule.then not in ("None", "none", "False", "false")]
    of_rules = [rule.when for rule in reversed(giving) if rule.when and not _of_settings(rule)]
    read = [name for when in of_rules for name in explain.trace.policies.reads(when)]
    names = [*explain.rests_on(judgement), *read] if judgement.value is False else [*read, *explain.rests_on(judgement)]
    return [name for name in names if name in judgements and _is_nothing(judgements[name].value)]


def _of_settings(rule: Rule) -> bool:
    return rule.then.startswith("settings.")


def why_not_value(
    explain: Explainer, judgement: Judgement, value: str, gives: Callable[[str], bool] = lambda setting: True
) -> Iterator[str]:
    """Why the decision did not fall for ``value``: the rules that would have given it, and what kept each from it;
    where none would, those of the decision it passes on. ``gives``: whether a setting, as ``NAME=VALUE``, leads there.
    """
    if same(judgement.value, value):
        yield f"  it is {value}"
        return
    chain = _behind(explain, judgement)
    kept = [(each, lines) for each in chain if (lines := list(_kept_from(explain, each, value)))]
    at, said = (
        kept[0] if kept else (judgement, [f"  no rule of {judgement.decision.name} gives {value} on these facts"])
    )
    yield from said
    if not kept or at is not judgement:
        yield f"  {at.decision.name} is {said_value(explain, at)}: {explain.because(at)}"
    if _is_nothing(judgement.value):
        yield from (f"  held back: {line}" for line in held_back(explain, judgement))
    elif kept:
        yield from (f"  because {line}" for line in _stood_on(explain, at, value))
    names = dict.fromkeys(name for each in chain for name in _settable(each))
    yield from (f"  an operator may: --set {name}={value}" for name in names if gives(f"{name}={value}"))


def _behind(explain: Explainer, judgement: Judgement) -> list[Judgement]:
    """The decision, and those whose value it passes on, one behind the other."""
    chain = [judgement]
    while len(chain) < FURTHEST and (behind := passed_on(explain, chain[-1])) not in chain:
        chain.append(behind)
    return chain


def _kept_from(explain: Explainer, judgement: Judgement, value: str) -> Iterator[str]:
    """The rules of a decision that would give the value, and candidates of that name that were turned down."""
    for rule, why in explain.beaten(judgement):
        if rule_gives(explain, judgement, rule, value):
            yield f"  {judgement.decision.name} is not {value}: rule {rule}: {why}"
    for other in sources(explain, judgement):
        if other.decision.hit == "search":
            for rule, why in explain.rejected(other):
                if rule.endswith(f"({value})"):
                    yield f"  {other.decision.name} did not take {value}: rule {rule}: {why}"


def _stood_on(explain: Explainer, judgement: Judgement, value: str) -> Iterator[str]:
    """Decision by decision, what kept those rules from firing that would have given the value, and why."""
    judgements = explain.trace.judgements
    failed = [judged.rule for judged in judgement.judged if judged.fired is not True and judged.rule.when]
    giving = [rule for rule in failed if rule_gives(explain, judgement, rule.id, value) and not _of_settings(rule)]
    read = dict.fromkeys(name for rule in giving for name in explain.trace.policies.reads(str(rule.when)))
    names = [name for name in read if name in judgements]
    for name in islice(names, FURTHEST):  # which grows on the way
        yield f"{name} is {said_value(explain, judgements[name])}: {explain.because(judgements[name])}"
        names += [read for read in explain.rests_on(judgements[name]) if read in judgements and read not in names]


def _settable(judgement: Judgement) -> list[str]:
    """The settings that a rule of the decision passes on as they are."""
    passed = [rule.then for rule in judgement.decision.rules if rule.then.startswith("settings.")]
    return [name.removeprefix("settings.") for name in passed]


_SCALES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def same(found: Any, value: str) -> bool:
    """Whether people would write the value like this: 65,536, 65536 and 64k are one number."""
    text = value.replace(",", "").strip()
    scale = _SCALES.get(text[-1:].lower(), 0)
    if scale and text[:-1].isdecimal():
        text = str(int(text[:-1]) * scale)
    return say(found).replace(",", "") == text


def rule_gives(explain: Explainer, judgement: Judgement, label: str, value: str) -> bool:
    """Whether a rule (of a search: with its candidate), as ``beaten`` labels it, gives a value as people write it."""
    if judgement.decision.hit == "search":
        return label.endswith(f"({value})")
    rule = next((r for r in judgement.decision.rules if r.id == label), None)
    return rule is not None and _would_give(explain, rule, value)


def _would_give(explain: Explainer, rule: Rule, value: str) -> bool:
    try:
        return same(explain.evaluate(rule.then), value)
    except EvaluationError:
        return False
