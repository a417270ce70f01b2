"""Rules that can never decide, each with the rule that keeps it from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gezel_rules.lang.parse import place
from gezel_rules.lang.sense import Claim, claim_of, claims, excludes
from gezel_rules.policy.model import Decision, Rule
from gezel_rules.record import NamedTuple


class _Seen(NamedTuple):
    """A rule further up: it fires whenever all its ``demands`` hold."""

    rule: Rule
    demands: frozenset[str]


def unreachable(decision: Decision, conditions: Sequence[ast.expr | None]) -> Iterator[tuple[int, str]]:
    """Index and fault of every rule that cannot decide; ``conditions`` are the rules' checked trees.

    Sound but not complete: a rule is found when what it demands includes all that a rule above it demands.
    """
    seen: list[_Seen] = []
    denied: list[tuple[str, Claim]] = []  # what must be so where a rule further up did not fire
    for index, (rule, condition) in enumerate(zip(decision.rules, conditions, strict=True)):
        if rule.when == "False":
            yield index, f"rule '{rule.id}' never fires"
            continue
        demands = _demands(rule.when, condition)
        blocker = next((other for other in seen if other.demands <= demands), None)
        if blocker and decision.hit != "collect":
            yield index, _said(rule, demands, blocker, decision.hit)
        elif condition is not None and decision.hit in ("first", "search"):
            wanted = claims(condition)
            barred = next((other for other, claim in denied if any(excludes(claim, each) for each in wanted)), None)
            if barred is not None:
                yield index, f"rule '{rule.id}' is never reached: '{barred}' before it fires whenever it would"
        if condition is not None and (claim := claim_of(condition)) is not None:
            denied.append((rule.id, claim.denied))
        seen.append(_Seen(rule, demands))


def _demands(text: str | None, condition: ast.expr | None) -> frozenset[str]:
    """The conditions that have to hold together, as written; none for a rule that always fires."""
    if text is None or text == "True":
        return frozenset()
    if condition is None:
        return frozenset((text,))  # at fault, and said elsewhere
    operands = [condition]
    if isinstance(condition, ast.BoolOp) and isinstance(condition.op, ast.And):
        operands = condition.values
    places = [place(operand) for operand in operands]
    return frozenset(" ".join(text[start : start + width].split()) for start, width in places)


def _said(rule: Rule, demands: frozenset[str], blocker: _Seen, hit: str) -> str:
    if hit == "unique":
        return f"rule '{rule.id}' fires only together with '{blocker.rule.id}', and under 'hit: unique' that is a fault"
    why = "fires whenever it would"
    if not blocker.demands:
        why = "always fires"
    elif blocker.demands == demands:
        why = "has the same 'when'"
    return f"rule '{rule.id}' is never reached: '{blocker.rule.id}' before it {why}"
