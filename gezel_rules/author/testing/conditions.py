"""The conditions of a rule: every comparison and flag in it, and what each came to when the rule was judged."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeGuard

from gezel_rules.decisions.decide import Judged
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.lang.parse import below
from gezel_rules.policy.model import Decision, PolicySet, Rule


def conditions(rule: Rule, decision: Decision, policies: PolicySet) -> list[ast.expr]:
    """Everything in a rule that is true or false: of its condition every part, of its value what a choice asks."""
    found = list(_parts(policies.tree(rule.when))) if rule.when is not None else []
    if decision.hit != "search":
        choices = [node for node in below(policies.tree(rule.then)) if isinstance(node, ast.IfExp)]
        found += [part for choice in choices for part in _parts(choice.test)]
    return found


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """A condition's parts, from left to right, groups before what they are made of; ``not`` says nothing of its own."""
    if isinstance(node, ast.UnaryOp):
        yield from _parts(node.operand)
    elif not isinstance(node, ast.Constant):
        yield node
        if isinstance(node, ast.BoolOp):
            for operand in node.values:
                yield from _parts(operand)


def outcomes(
    judged: Judged, decision: Decision, policies: PolicySet, names: Mapping[str, Any]
) -> Iterator[tuple[ast.expr, Any]]:
    """What each condition came to that was asked: true, false or unknown."""
    values = dict(judged.record)
    if judged.rule.when is not None:
        yield from _asked(policies.tree(judged.rule.when), values, names)
    if judged.fired is True and decision.hit != "search":
        for node in below(policies.tree(judged.rule.then)):
            if isinstance(node, ast.IfExp) and node in values:
                yield from _asked(node.test, values, names)


def _asked(node: ast.expr, values: Mapping[ast.expr, Any], names: Mapping[str, Any]) -> Iterator[tuple[ast.expr, Any]]:
    """As far as the evaluator went: it stops at the operand that settles a group."""
    if isinstance(node, ast.UnaryOp):
        yield from _asked(node.operand, values, names)
        return
    if isinstance(node, ast.BoolOp):
        settles = isinstance(node.op, ast.Or)
        for operand in node.values:
            yield from _asked(operand, values, names)
            if _value(operand, values, names) is settles:
                break
    if not isinstance(node, ast.Constant):
        yield node, _value(node, values, names)


def _value(node: ast.expr, values: Mapping[ast.expr, Any], names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return names.get(node.id, UNKNOWN)
    return node.value if isinstance(node, ast.Constant) else values.get(node, UNKNOWN)


def may_be_unknown(rule: Rule, decision: Decision, policies: PolicySet, unknowable: Collection[str]) -> set[ast.expr]:
    """The conditions of a rule that may come to unknown: they read a fact that may be, and nothing before them has made
    sure that it is known."""
    sure = _sure_before(rule, decision, policies)
    tree = policies.tree(rule.when) if rule.when is not None else None
    return set(_doubtful(tree, sure, unknowable)) if tree is not None else set()


def _sure_before(rule: Rule, decision: Decision, policies: PolicySet) -> set[str]:
    """Facts that are known where a rule is judged: each rule above would have fired, were they not."""
    above = decision.rules[: decision.rules.index(rule)] if decision.hit in ("first", "search") else ()
    return {name for each in above if each.when is not None for name in _known_if(policies.tree(each.when), False)}


def _known_if(node: ast.expr, holds: bool) -> set[str]:
    """Facts that must be known when a condition holds (or, with ``holds`` false, does not)."""
    if isinstance(node, ast.UnaryOp):
        return _known_if(node.operand, not holds)
    if isinstance(node, ast.BoolOp):
        sure = isinstance(node.op, ast.And) is holds  # every operand decided alike
        return {name for operand in node.values for name in _known_if(operand, holds)} if sure else set()
    if holds and _asks_known(node):
        return {name.id for name in below(node.args[0]) if isinstance(name, ast.Name)}
    return set()


def _asks_known(node: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "known"


def _doubtful(node: ast.expr, sure: Collection[str], unknowable: Collection[str]) -> Iterator[ast.expr]:
    if isinstance(node, ast.UnaryOp):
        yield from _doubtful(node.operand, sure, unknowable)
        return
    if any(True for _ in _unsure(node, sure, unknowable)):
        yield node
    if isinstance(node, ast.BoolOp):
        known = set(sure)
        for operand in node.values:
            yield from _doubtful(operand, known, unknowable)
            known |= _known_if(operand, isinstance(node.op, ast.And))


def _unsure(node: ast.expr, sure: Collection[str], unknowable: Collection[str]) -> Iterator[str]:
    """Names below a node whose being unknown makes it unknown; what ``known()`` asks about does not."""
    if _asks_known(node):
        return
    if isinstance(node, ast.BoolOp):
        known = set(sure)
        for operand in node.values:
            yield from _unsure(operand, known, unknowable)
            known |= _known_if(operand, isinstance(node.op, ast.And))
        return
    if isinstance(node, ast.Name):
        if node.id in unknowable and node.id not in sure:
            yield node.id
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and not (isinstance(node, ast.Call) and child is node.func):
            yield from _unsure(child, sure, unknowable)
