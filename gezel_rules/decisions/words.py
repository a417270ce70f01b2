"""Values and conditions in words: bytes as GiB, tokens with separators, and why a condition did not hold."""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from gezel_rules.facts.fact import UNKNOWN

if TYPE_CHECKING:
    from gezel_rules.lang.evaluate import Record

_NOT = {
    ast.Lt: "not below", ast.LtE: "above", ast.Gt: "not above", ast.GtE: "below",
}  # fmt: skip
GIB = 1 << 30
LONGEST_LISTED = 6
"""Members a list may have to be shown in full; the options of an engine are hundreds."""


def say(value: Any, unit: str = "") -> str:
    """A value as people read it."""
    if value is None:
        return "none"
    if value is UNKNOWN:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(say(item, unit) for item in value) if value else "nothing"
    if isinstance(value, (int, float)):
        return _say_number(value, unit)
    return str(value)


def _say_number(value: float, unit: str) -> str:
    if unit == "bytes":
        return say_bytes(int(value))
    if unit == "percent":
        return f"{value:g} %"
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return f"{text} {unit}".rstrip()


def say_bytes(count: int) -> str:
    """Bytes in the largest binary unit that keeps three figures: 21.3 GiB, 512 MiB, 87,040 B."""
    size = abs(count)
    if size >= GIB:
        return f"{count / GIB:,.1f} GiB"
    if size >= 1 << 20:
        return f"{count / (1 << 20):,.0f} MiB"
    return f"{count:,} B"


def why_not(tree: ast.expr, record: Record, names: Any, units: Any, decided: Container[str] = ()) -> str:
    """In words, what kept a condition from holding, from the values recorded while it was judged.

    ``decided`` are the names of decisions: one that gives nothing was not left unset by anybody.
    """
    return _Words(dict(record), names, units, decided).failing(tree)


class _Words:
    """Walks a judged condition; ``values`` are the recorded nodes, ``names`` the facts, ``units`` theirs."""

    def __init__(self, values: dict[ast.expr, Any], names: Any, units: Any, decided: Container[str]) -> None:
        self.values, self.names, self.units, self.decided = values, names, units, decided

    def value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.names.get(node.id, UNKNOWN)
        if isinstance(node, ast.List):
            return [self.value(item) for item in node.elts]
        return self.values.get(node, UNKNOWN)

    def said(self, node: ast.expr) -> str:
        return say(self.value(node), self._unit(node))

    def _unit(self, node: ast.expr) -> str:
        """Units are known by fact, by function, and by column (written ``.column``)."""
        key = node.id if isinstance(node, ast.Name) else f".{node.attr}" if isinstance(node, ast.Attribute) else ""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            key = node.func.id
        return str(self.units.get(key, ""))

    def name(self, node: ast.expr) -> str:
        """The node as written; of a call, its function and what it was first asked about."""
        if not isinstance(node, ast.Call) or len(node.args) < 3:
            return ast.unparse(node)
        return f"{ast.unparse(node.func)}({self.said(node.args[0])}, …)"

    def failing(self, node: ast.expr) -> str:
        """Why a condition that should hold does not."""
        if isinstance(node, ast.BoolOp):
            return self._failing_boolop(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._failing_not(node.operand)
        if isinstance(node, ast.Compare):
            return self._failing_compare(node)
        if self.value(node) is UNKNOWN:
            return self._unknown(node)
        return self._state(node)

    def _state(self, node: ast.expr) -> str:
        """A value that is no comparison, as it is; of a question with a plain answer, the answer."""
        function = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        args = node.args if isinstance(node, ast.Call) else []
        if function == "known":
            return f"{ast.unparse(args[0])} is {'known' if self.value(node) is True else 'unknown'}"
        if function == "overlap" and self.value(node) is False:
            return f"{ast.unparse(args[0])} ({self.said(args[0])}) has nothing of {ast.unparse(args[1])}"
        return f"{self.name(node)} is {self.said(node)}"

    def _failing_boolop(self, node: ast.BoolOp) -> str:
        if isinstance(node.op, ast.Or):
            return " and ".join(self.failing(operand) for operand in node.values)
        seen = [operand for operand in node.values if isinstance(operand, ast.Name) or operand in self.values]
        false = [operand for operand in seen if self.value(operand) is False]
        doubtful = [operand for operand in seen if self.value(operand) is UNKNOWN]
        return self.failing((false or doubtful or node.values)[0])

    def _failing_not(self, operand: ast.expr) -> str:
        if self.value(operand) is UNKNOWN:
            return self._unknown(operand)
        if isinstance(operand, ast.Compare):
            return f"{self.name(operand.left)} is {self.said(operand.left)}"
        return self._state(operand)

    def _failing_compare(self, node: ast.Compare) -> str:
        op, left, right = node.ops[0], node.left, node.comparators[0]
        if self.values.get(node) is UNKNOWN:
            return self._unknown(left if self.value(left) is UNKNOWN else right)
        name, actual = self.name(left), self.said(left)
        if self.value(left) is None and not isinstance(left, ast.Constant):
            return f"{name} is none" if name in self.decided else f"{name} is not set"
        if isinstance(op, ast.In):
            listed = f"not in {self._other(right)}"
            return f"{actual} is {listed}" if isinstance(left, ast.Constant) else f"{name} is {actual}, {listed}"
        if isinstance(op, ast.NotIn):
            listed = f"in {self._other(right)}"
            return f"{actual} is {listed}" if isinstance(left, ast.Constant) else f"{name} is {actual}, {listed}"
        if isinstance(op, ast.Eq):
            return f"{name} is {actual}, not {self._other(right)}"
        if isinstance(op, ast.NotEq) and not isinstance(right, ast.Constant):
            return f"{name} and {self.name(right)} are both {actual}"
        if type(op) in _NOT:
            return f"{name} is {actual}, {_NOT[type(op)]} {self._other(right)}"
        return f"{name} is {actual}"

    def _other(self, node: ast.expr) -> str:
        if isinstance(node, (ast.Constant, ast.List)):
            return self.said(node)
        value = self.value(node)
        if isinstance(value, dict) or (isinstance(value, list) and len(value) > LONGEST_LISTED):
            return self.name(node)
        return f"{self.name(node)} ({self.said(node)})"

    def _unknown(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return f"{node.id} is unknown"
        unknown = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and self.names.get(n.id) is UNKNOWN]
        return f"{' and '.join(dict.fromkeys(unknown)) or ast.unparse(node)} is unknown"
