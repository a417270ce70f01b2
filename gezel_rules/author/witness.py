"""Fact sets that show what rules of one decision do together: which fire on the same facts, and on which none does.

Every name that conditions read gets the few values at which a condition can change: below, at and above a bound, each
word and one more, each row. What is found on such a fact set is so. That nothing is found proves something where all
conditions compare one name with constants (``exact``) and every combination was tried.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from gezel_rules.engines.plain_functions import CALLABLES
from gezel_rules.lang.evaluate import EvaluationError, Evaluator
from gezel_rules.lang.parse import below
from gezel_rules.lang.types import Type
from gezel_rules.record import NamedTuple

KNOWN = "known"
"""The evaluator's own function."""
STRANGER = "something-else"
"""A word that no condition speaks of."""


class Case(NamedTuple):
    """One fact set, and for each rule whether it fires on it."""

    facts: Mapping[str, Any]
    fires: tuple[bool, ...]

    def said(self, names: Sequence[str]) -> str:
        """These facts, for people."""
        return ", ".join(f"{name} is {_said(self.facts[name])}" for name in names)


class Cases(NamedTuple):
    """Fact sets for the rules of a decision; ``exact``: between them, they stand for all there are."""

    found: tuple[Case, ...]
    exact: bool


def cases(
    conditions: Sequence[ast.expr | None], names: Mapping[str, Any], types: Mapping[str, Type], most: int
) -> Cases:
    """The fact sets of some rules' conditions (``None``: always fires). ``names`` are the tables; ``types`` those of
    facts and decisions; none at all where there would be more than ``most``, or where nobody can say what to try."""
    values, exact = _values([tree for tree in conditions if tree is not None], names, types)
    if values is None or prod(map(len, values.values())) > most:
        return Cases((), False)
    evaluator = Evaluator({}, CALLABLES)
    found = []
    for combination in product(*values.values()):
        facts = dict(zip(values, combination, strict=True))
        fires = _fires(conditions, {**names, **facts}, evaluator)
        if fires is None:
            exact = False
        else:
            found.append(Case(facts, fires))
    return Cases(tuple(found), exact)


def read_by(tree: ast.expr | None, names: Mapping[str, Any]) -> list[str]:
    """The facts and decisions that a condition reads, in order."""
    read = [node.id for node in below(tree) if isinstance(node, ast.Name)] if tree is not None else []
    return [name for name in dict.fromkeys(read) if name not in names]


def _fires(
    conditions: Sequence[ast.expr | None], names: Mapping[str, Any], evaluator: Evaluator
) -> tuple[bool, ...] | None:
    """``None`` for facts of a kind that the conditions cannot be asked about: a row that is not there, a record."""
    evaluator.names, evaluator.record = names, []
    try:
        return tuple(tree is None or evaluator.evaluate(tree) is True for tree in conditions)
    except (EvaluationError, TypeError, AttributeError):
        return None


def _values(
    trees: Sequence[ast.expr], names: Mapping[str, Any], types: Mapping[str, Type]
) -> tuple[dict[str, list[Any]] | None, bool]:
    """What to try of each name, and whether that stands for everything; ``None`` where the use of a name does not
    tell."""
    found: dict[str, dict[Any, None]] = {name: {} for tree in trees for name in read_by(tree, names)}
    exact = True
    nodes = [node for tree in trees for node in below(tree)]
    if any(isinstance(node, ast.Call) and _name_of(node) not in (KNOWN, *CALLABLES) for node in nodes):
        return None, False  # what a family's functions give, nobody knows without a model
    for node in nodes:
        if isinstance(node, ast.Compare):
            exact = _compared(node, found, names) and exact
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and isinstance(node.value, ast.Name):
            found.get(node.slice.id, {}).update(dict.fromkeys(names.get(node.value.id, ())))
        elif isinstance(node, (ast.Call, ast.BinOp, ast.Attribute, ast.Subscript)):
            exact = False
    for name, values in found.items():
        _more(values, types.get(name))
    if any(not values for values in found.values()):
        return None, False
    return {name: list(values) for name, values in found.items()}, exact


def _compared(node: ast.Compare, found: dict[str, dict[Any, None]], names: Mapping[str, Any]) -> bool:
    """Take the values at which a comparison can change; whether it is of one name with constants."""
    left, right = node.left, node.comparators[0]
    if isinstance(right, ast.Name) and right.id in names and isinstance(left, ast.Name):
        found.get(left.id, {}).update(dict.fromkeys([*names[right.id], STRANGER]))
        return True
    if isinstance(left, ast.Constant) and isinstance(right, ast.Name) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        found.get(right.id, {}).update({(): None, (left.value,): None})  # a list, without the word and with it
        return True
    if isinstance(left, ast.Constant):
        left, right = right, left
    constants = [right] if isinstance(right, ast.Constant) else getattr(right, "elts", [])
    if not isinstance(left, ast.Name) or not all(isinstance(item, ast.Constant) for item in constants) or not constants:
        return False
    for item in constants:
        found.get(left.id, {}).update(dict.fromkeys(_around(item.value)))
    return True


def _name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _around(value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None:
        return [value]
    if isinstance(value, (int, float)):
        return [value - 1, value, value + 1]
    return [value, STRANGER]


def _more(values: dict[Any, None], type_: Type | None) -> None:
    """What the type of a name adds: both flags, a word that is really one, something beside none."""
    kind, choices = (type_.kind, type_.choices) if type_ is not None else ("any", None)
    if kind == "flag":
        values.update({True: None, False: None})
    if choices is not None:
        values.pop(STRANGER, None)
        values.update(dict.fromkeys(sorted(choices - values.keys())[:1]))
    if not values.keys() - {None}:
        values.update(dict.fromkeys([0, 1] if kind in ("integer", "number") else [STRANGER]))


def _said(value: Any) -> str:
    """As conditions have it; a number with separators."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)
