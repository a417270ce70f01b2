"""Policies with one thing changed, as somebody might by mistake: each is to be noticed by a test."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from gezel_rules.author.testing.conditions import conditions
from gezel_rules.lang.parse import below
from gezel_rules.lang.sense import claims, excludes, written
from gezel_rules.policy.model import STAND_DOWNS, Decision, PolicySet, Rule
from gezel_rules.record import NamedTuple

KINDS = ("drop", "negate", "value", "bound", "swap", "cell")
"""A rule dropped; a condition turned round; another value given; a bound moved; two rules, or rows that are tried in
their order, changed places; another figure or word in a cell."""
_NEXT: dict[type, type] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_OTHER_VERDICT = {"accept": "reject", "reject": "accept"}
_OTHER_SIGN: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
}  # fmt: skip
_OTHER_CALL = {"min": "max", "max": "min"}


class Mutant(NamedTuple):
    """One thing changed: of which ``kind``, in which decision or table (``of``), at which rule or row (``part``), on
    which ``line``, in words; and the ``decision`` as it then is, or the ``tables``."""

    kind: str
    of: str
    part: str
    line: int
    says: str
    decision: Decision | None = None
    tables: Mapping[str, Any] = {}


def mutants(decision: Decision, policies: PolicySet) -> Iterator[Mutant]:
    """Every mutant of a decision; what cannot make a difference is left out."""
    for number, rule in enumerate(decision.rules):
        if rule.id in STAND_DOWNS:
            continue
        for kind, says, changed in _changed(number, decision, policies):
            yield Mutant(kind, decision.name, rule.id, rule.line, says, changed)


def _changed(number: int, decision: Decision, policies: PolicySet) -> Iterator[tuple[str, str, Decision]]:
    """Everything that may be changed at one rule."""
    rule, following = decision.rules[number], decision.rules[number + 1 : number + 2]
    if len(decision.rules) > 1:
        yield "drop", "without this rule", _with(decision, number, None)
    for kind, says, changed in _changes(rule, decision, policies):
        yield kind, says, _with(decision, number, changed)
    if following and _order_matters(rule, following[0], decision, policies):
        yield "swap", f"behind the next, '{following[0].id}'", _swapped(decision, number)


def _with(decision: Decision, number: int, rule: Rule | None) -> Decision:
    rules = decision.rules
    return decision._replace(rules=(*rules[:number], *([rule] if rule else ()), *rules[number + 1 :]))


def _swapped(decision: Decision, number: int) -> Decision:
    rules = list(decision.rules)
    rules[number], rules[number + 1] = rules[number + 1], rules[number]
    return decision._replace(rules=tuple(rules))


def _order_matters(one: Rule, other: Rule, decision: Decision, policies: PolicySet) -> bool:
    """Not where at most one may fire, nor where the conditions exclude each other."""
    if decision.hit == "unique" or one.when is None:
        return False
    if other.when is None:
        return True
    pairs = ((a, b) for a in claims(policies.tree(one.when)) for b in claims(policies.tree(other.when)))
    return not any(excludes(a, b) for a, b in pairs)


def _changes(rule: Rule, decision: Decision, policies: PolicySet) -> Iterator[tuple[str, str, Rule]]:
    if rule.when is not None:
        for node in conditions(rule, decision._replace(hit="search"), policies):
            text = _replaced(policies.tree(rule.when), node, ast.UnaryOp(ast.Not(), node))
            yield "negate", f"with 'not ({written(node)})'", rule._replace(when=text)
        for says, text in _bounds(policies.tree(rule.when)):
            yield "bound", says, rule._replace(when=text)
    for says, text in _values(rule, decision, policies):
        yield "value", says, rule._replace(then=text)


def _bounds(tree: ast.expr) -> Iterator[tuple[str, str]]:
    """Comparisons that hold one step further, and numbers that are one off."""
    for node in below(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _NEXT:
            other = ast.Compare(node.left, [_NEXT[type(node.ops[0])]()], node.comparators)
            yield f"with '{written(other)}'", _replaced(tree, node, other)
        yield from _other_figures(tree, node)


def _other_figures(tree: ast.expr, node: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        for step in (1, -1) if node.value else (1,):
            yield f"with {node.value + step} for {node.value}", _replaced(tree, node, ast.Constant(node.value + step))


def _values(rule: Rule, decision: Decision, policies: PolicySet) -> Iterator[tuple[str, str]]:
    """Another value: the other verdict, another word or number, nothing for what is passed on, another sign."""
    if decision.hit == "search":
        yield f"with '{_OTHER_VERDICT[rule.then]}'", _OTHER_VERDICT[rule.then]
        return
    tree = policies.tree(rule.then)
    yield f"with '{_another(tree)}' for '{written(tree)}'", _another(tree)
    if not isinstance(tree, ast.Constant):
        for node in below(tree):
            yield from _other_figures(tree, node)
            yield from _other_arithmetic(tree, node)


def _another(tree: ast.expr) -> str:
    value: Any = tree.value if isinstance(tree, ast.Constant) else True
    if isinstance(tree, ast.Constant) and isinstance(value, bool):
        return str(not value).lower()
    if isinstance(tree, ast.Constant) and value is None:
        return "'something'"
    if isinstance(value, str):
        return repr(f"other than {value}")
    return str(value + 1) if isinstance(tree, ast.Constant) else "none"


def _other_arithmetic(tree: ast.expr, node: ast.expr) -> Iterator[tuple[str, str]]:
    other: ast.expr | None = None
    if isinstance(node, ast.BinOp):
        other = ast.BinOp(node.left, _OTHER_SIGN[type(node.op)](), node.right)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _OTHER_CALL:
        other = ast.Call(ast.Name(_OTHER_CALL[node.func.id]), node.args, [])
    elif isinstance(node, ast.IfExp):
        other = ast.IfExp(node.test, node.orelse, node.body)
    if other is not None:
        yield f"with '{written(other)}'", _replaced(tree, node, other)


def _replaced(tree: ast.expr, node: ast.expr, other: ast.expr) -> str:
    """The expression's text with another node in the place of one."""
    return written(_copied(tree, node, other))


def _copied(tree: Any, node: ast.expr, other: ast.expr) -> Any:
    if tree is node:
        return other
    if isinstance(tree, list):
        return [_copied(each, node, other) for each in tree]
    if not isinstance(tree, ast.expr):
        return tree
    return type(tree)(**{name: _copied(value, node, other) for name, value in ast.iter_fields(tree)})
