"""Conditions that can never hold, or always do: found from pairs of comparisons of one value. Sound, not complete."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from gezel_rules.lang.parse import below
from gezel_rules.record import NamedTuple

_OPERATORS: dict[type, str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
    ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip
_OPPOSITE = {"==": "!=", "<": ">=", "<=": ">", "in": "not in", "is": "is not"}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}
_EXCLUDE = {"<": {">", ">=", "=="}, "<=": {">"}, ">": {"<", "<=", "=="}, ">=": {"<"}, "==": {"<", ">", "!="},
            "!=": {"=="}}  # fmt: skip

_PYTHON = re.compile(r"\b(None|True|False)\b")


class Claim(NamedTuple):
    """What one comparison says: of which value (as written), how it is compared, and with what: a constant, a list of
    them, or another value as written (``named``)."""

    of: str
    how: str
    other: Any
    named: bool = False

    @property
    def denied(self) -> Claim:
        """That it is not so; of a value that is known."""
        return self._replace(how=_OPPOSITE[self.how])


def nonsense(tree: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """Every part of an expression that can never hold, or always does, with what is to be said of it."""
    for node in below(tree):
        if isinstance(node, ast.BoolOp):
            yield from _of_pairs(node)
        elif isinstance(node, ast.Compare) and ast.unparse(node.left) == ast.unparse(node.comparators[0]):
            yield node, "compares a value with itself"


def _of_pairs(node: ast.BoolOp) -> Iterator[tuple[ast.expr, str]]:
    both = isinstance(node.op, ast.And)
    found: list[tuple[ast.expr, Claim]] = []
    for operand in _operands(node, type(node.op)):
        claim = claim_of(operand)
        if claim is None:
            continue
        for other, before in found:
            if excludes(before, claim) if both else excludes(before.denied, claim.denied):
                pair = f"'{written(other)}' and '{written(operand)}'"
                said = "never holds: {} exclude each other" if both else "always holds: one of {} is true"
                yield operand, said.format(pair)
                return
        found.append((operand, claim))


def written(node: ast.expr) -> str:
    """An expression as policies write it."""
    return _PYTHON.sub(lambda word: word[0].lower(), ast.unparse(node))


def _operands(node: ast.expr, op: type) -> Iterator[ast.expr]:
    """What is joined by one operator, nested or not."""
    for operand in node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, op) else (node,):
        if operand is not node and isinstance(operand, ast.BoolOp):
            yield from _operands(operand, op)
        else:
            yield operand


def claims(tree: ast.expr) -> list[Claim]:
    """What must hold for a condition to hold: its comparisons, where they are joined by 'and'."""
    return [claim for operand in _operands(tree, ast.And) if (claim := claim_of(operand)) is not None]


def claim_of(node: ast.expr) -> Claim | None:
    """What a condition claims, where it is a plain one."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = claim_of(node.operand)
        return inner.denied if inner is not None else None
    if isinstance(node, ast.Compare):
        return _comparison(node)
    if isinstance(node, (ast.BoolOp, ast.Constant)):
        return None
    return Claim(ast.unparse(node), "==", True)


def _comparison(node: ast.Compare) -> Claim | None:
    how, other = _OPERATORS[type(node.ops[0])], node.comparators[0]
    left = ast.unparse(node.left)
    if isinstance(node.left, ast.Constant):
        return None
    if isinstance(other, ast.Constant):
        return Claim(left, how, other.value)
    if isinstance(other, ast.List) and all(isinstance(item, ast.Constant) for item in other.elts):
        return Claim(left, how, tuple(item.value for item in other.elts if isinstance(item, ast.Constant)))
    return Claim(left, how, ast.unparse(other), True)


def excludes(one: Claim, other: Claim) -> bool:
    """Whether two claims of one value cannot both be true."""
    if one.of != other.of:
        return False
    if "is" in (one.how, other.how):
        return {one.how, other.how} != {"is"}  # none is neither set, nor equal to anything, nor more or less
    if "is not" in (one.how, other.how):
        return False
    if one.named or other.named:
        return one[2:] == other[2:] and (other.how in _EXCLUDE.get(one.how, ()) or _OPPOSITE[one.how] == other.how)
    return _no_value(one, other) or _no_value(other, one)


def _no_value(one: Claim, other: Claim) -> bool:
    """Whether no constant that ``one`` allows is allowed by ``other``."""
    if one.how == "==":
        return not _allows(other, one.other)
    if one.how == "in":
        return not any(_allows(other, value) for value in one.other)
    return one.how in ("<", "<=") and other.how in (">", ">=") and not _overlap(one, other)


def _overlap(below_: Claim, above: Claim) -> bool:
    both_closed = below_.how == "<=" and above.how == ">="
    return bool(above.other < below_.other or (both_closed and above.other == below_.other))


def _allows(claim: Claim, value: Any) -> bool:
    how, other = claim.how, claim.other
    if how in ("in", "not in"):
        return (value in other) is (how == "in")
    if how in ("==", "!="):
        return (value == other) is (how == "==")
    if not isinstance(value, (int, float)) or not isinstance(other, (int, float)):
        return True
    return {"<": value < other, "<=": value <= other, ">": value > other, ">=": value >= other}[how]
