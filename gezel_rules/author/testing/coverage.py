"""Which rules the tests made fire and not fire, and which of their conditions they made true, false and unknown.

Read off the traces that judging leaves anyway: nothing is slower for it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from gezel_rules.author.testing.conditions import conditions, may_be_unknown, outcomes
from gezel_rules.author.testing.places import line_of
from gezel_rules.decisions.decide import Judgement, Trace
from gezel_rules.documents.node import Node
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.lang.sense import written
from gezel_rules.policy.model import STAND_DOWNS, Decision, PolicySet, Rule
from gezel_rules.record import NamedTuple

_WORDS = {True: "true", False: "false", UNKNOWN: "unknown"}
Seen = dict[tuple[str, int], dict[Any, set[Any]]]
"""(decision, rule by its number) → what was seen of it: under None whether it fired, under a condition what it was."""


class Gap(NamedTuple):
    """Something no test shows: of a ``rule`` of a decision, at ``file:line``."""

    place: str
    decision: str
    rule: str
    says: str


class Covered(NamedTuple):
    """What the tests show of one policy file: how many of so many outcomes of rules and of conditions."""

    file: str
    rules: tuple[int, int]
    conditions: tuple[int, int]
    gaps: tuple[Gap, ...]


def seen_in(traces: Iterable[Trace]) -> Seen:
    """What all traces together show of every rule."""
    seen: Seen = {}
    for trace in traces:
        for judgement in trace.judgements.values():
            _note(judgement, trace, seen)
    return seen


def _note(judgement: Judgement, trace: Trace, seen: Seen) -> None:
    decision = judgement.decision
    numbers = {rule.id: number for number, rule in enumerate(decision.rules)}
    for judged in judgement.judged:
        of = seen.setdefault((decision.name, numbers[judged.rule.id]), {})
        of.setdefault(None, set()).add(judged.fired is True)
        for node, value in outcomes(judged, decision, trace.policies, trace.names):
            of.setdefault(node, set()).add(value)
    for number in range(len(judgement.judged), len(decision.rules)) if decision.hit == "first" else ():
        seen.setdefault((decision.name, number), {}).setdefault(None, set()).add(False)


def covered(file: str, root: Node | None, policies: PolicySet, seen: Seen, unknowable: Collection[str]) -> Covered:
    """What was seen of a policy file; ``root``: what stands in it (``None``: places are those of rules)."""
    rules = conditions_ = (0, 0)
    gaps: list[Gap] = []
    for decision, number, rule in _rules(file, policies):
        of = seen.get((decision.name, number), {})
        lacking = _wanted_of_rule(rule, decision) - of.get(None, set())
        rules = _plus(rules, len(_wanted_of_rule(rule, decision)), len(lacking))
        gaps += [Gap(f"{file}:{rule.line}", decision.name, rule.id, each) for each in _of_rule(lacking, bool(of))]
        doubtful = may_be_unknown(rule, decision, policies, unknowable)
        for node in conditions(rule, decision, policies):
            wanted = {True, False, UNKNOWN} if node in doubtful else {True, False}
            missing = wanted - of.get(node, set())
            conditions_ = _plus(conditions_, len(wanted), len(missing))
            gaps += _gaps(missing, node, rule, decision, root, policies) if of else ()
    return Covered(file, rules, conditions_, tuple(gaps))


def _rules(file: str, policies: PolicySet) -> Iterator[tuple[Decision, int, Rule]]:
    """The rules that are written in a file; those that every flag has are not."""
    for decision in policies.decisions.values():
        if decision.file == file:
            for number, rule in enumerate(decision.rules):
                if rule.id not in STAND_DOWNS:
                    yield decision, number, rule


def _wanted_of_rule(rule: Rule, decision: Decision) -> set[bool]:
    """A rule that always holds can only be kept from firing by one before it."""
    own = [each for each in decision.rules if each.id not in STAND_DOWNS]
    return {True} if rule.when is None and (own == [rule] or decision.hit != "first") else {True, False}


def _plus(counted: tuple[int, int], wanted: int, missing: int) -> tuple[int, int]:
    return counted[0] + wanted - missing, counted[1] + wanted


def _of_rule(lacking: set[bool], tried: bool) -> list[str]:
    if not tried:
        return ["no case tries it"]
    return ["fires in no case" if fired else "fires in every case that tries it" for fired in lacking]


def _gaps(
    missing: set[Any], node: ast.expr, rule: Rule, decision: Decision, root: Node | None, policies: PolicySet
) -> Iterator[Gap]:
    for value in sorted(missing, key=str):
        line = line_of(node, rule, decision, root, policies) if root else rule.line
        place = f"{decision.file}:{line}"
        yield Gap(place, decision.name, rule.id, f"never {_WORDS[value]}: {written(node)}")


def totals(files: Sequence[Covered]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Of rules and of conditions, over all files: outcomes that were seen, and all there are."""
    return (
        (sum(f.rules[0] for f in files), sum(f.rules[1] for f in files)),
        (sum(f.conditions[0] for f in files), sum(f.conditions[1] for f in files)),
    )
