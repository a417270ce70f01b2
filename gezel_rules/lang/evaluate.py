"""Evaluation on simpleeval, narrowed: only the language's nodes, key lookup instead of attributes, unknown as a value.

The only importer of simpleeval. Every compound node's value is recorded: that record is the "why" of a decision.
Unknown follows Kleene: ``false and unknown`` is false, ``true and unknown`` is unknown; every comparison, sum or
call with an unknown is unknown. simpleeval's recursive scan of results is off, which is sound because facts are
plain JSON (the boundary enforces it) and functions come only from an explicit table.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from simpleeval import SimpleEval

from gezel_rules.lang.rebuild import MOST
from gezel_rules.unknown import UNKNOWN

Value = Any  # plain JSON, or UNKNOWN
Record = list[tuple[ast.expr, Value]]

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}  # fmt: skip


class EvaluationError(Exception):
    """A rule met a value it cannot work with (a missing table row, a division by zero); says which node.

    The checker keeps most of them from happening; values whose type is ``any`` are only known here.
    """

    def __init__(self, message: str, node: ast.expr) -> None:
        super().__init__(message)
        self.message, self.node = message, node


class Evaluator(SimpleEval):  # type: ignore[misc]
    """Evaluates bound trees over ``names`` (dotted name → plain JSON value or UNKNOWN).

    ``record`` collects (node, value) for every compound node, in the order they were computed.
    """

    def __init__(self, names: Mapping[str, Value], functions: Mapping[str, Callable[..., Value]]) -> None:
        self.names, self.functions = names, functions
        self.record: Record = []
        self.nodes: dict[type, Callable[..., Value]] = {
            ast.Name: self._on_name, ast.Constant: self._on_constant, ast.List: self._on_list,
            ast.BoolOp: self._on_boolop, ast.UnaryOp: self._on_unary, ast.BinOp: self._on_binop,
            ast.Compare: self._on_compare, ast.IfExp: self._on_ifexp, ast.Call: self._on_call,
            ast.Subscript: self._on_subscript, ast.Attribute: self._on_attribute,
        }  # fmt: skip

    def evaluate(self, tree: ast.expr) -> Value:
        """The tree's value. Raises EvaluationError."""
        return self.nodes[tree.__class__](tree)

    def _eval(self, node: ast.expr) -> Value:
        return self.nodes[node.__class__](node)

    def _on_name(self, node: ast.Name) -> Value:
        return self.names[node.id]

    def _on_constant(self, node: ast.Constant) -> Value:
        return node.value

    def _on_list(self, node: ast.List) -> Value:
        try:
            return node.gezel_items  # type: ignore[attr-defined]
        except AttributeError:
            node.gezel_items = [self._eval(item) for item in node.elts]  # type: ignore[attr-defined]
            return node.gezel_items  # type: ignore[attr-defined]

    def _on_boolop(self, node: ast.BoolOp) -> Value:
        decisive = node.op.__class__ is ast.Or
        other = not decisive
        result: Value = other
        for operand in node.values:
            value = self.nodes[operand.__class__](operand)
            if value is decisive:
                result = decisive
                break
            if value is UNKNOWN:
                result = UNKNOWN
            elif value is not other:
                raise _not_a_flag(value, operand)
        self.record.append((node, result))
        return result

    def _on_unary(self, node: ast.UnaryOp) -> Value:
        value = self._eval(node.operand)
        if value is not UNKNOWN:
            value = not _flag(value, node.operand) if node.op.__class__ is ast.Not else -_number(value, node.operand)
        self.record.append((node, value))
        return value

    def _on_binop(self, node: ast.BinOp) -> Value:
        left, right = self._eval(node.left), self._eval(node.right)
        if left is UNKNOWN or right is UNKNOWN:
            value: Value = UNKNOWN
        else:
            value = _calculated(node, _number(left, node.left), _number(right, node.right))
        self.record.append((node, value))
        return value

    def _on_compare(self, node: ast.Compare) -> Value:
        try:
            name, left_node, constant, right_node, operation = node.gezel_parts  # type: ignore[attr-defined]
        except AttributeError:
            name, left_node, constant, right_node, operation = _parts(node)
        left = self.names[name] if name is not None else self.nodes[left_node.__class__](left_node)
        right = constant if right_node is None else self.nodes[right_node.__class__](right_node)
        if left is UNKNOWN or right is UNKNOWN:
            value: Value = UNKNOWN
        else:
            try:
                value = operation(left, right)
            except TypeError:
                raise EvaluationError(f"cannot compare {left!r} with {right!r}", node) from None
        self.record.append((node, value))
        return value

    def _on_ifexp(self, node: ast.IfExp) -> Value:
        test = self._eval(node.test)
        value = UNKNOWN if test is UNKNOWN else self._eval(node.body if _flag(test, node.test) else node.orelse)
        self.record.append((node, value))
        return value

    def _on_call(self, node: ast.Call) -> Value:
        args = [self._eval(arg) for arg in node.args]
        name: str = node.func.id  # type: ignore[attr-defined]
        if name == "known":
            value: Value = args[0] is not UNKNOWN
        elif any(arg is UNKNOWN for arg in args):
            value = UNKNOWN
        else:
            try:
                value = self.functions[name](*args)
            except (ArithmeticError, TypeError) as error:  # TypeError: one of them is none, in a rule that did not fire
                raise EvaluationError(f"{name}(): {error}", node) from None
        self.record.append((node, value))
        return value

    def _on_subscript(self, node: ast.Subscript) -> Value:
        table, key = self._eval(node.value), self._eval(node.slice)
        if key is UNKNOWN:
            return UNKNOWN
        if not isinstance(key, str) or key not in table:
            raise EvaluationError(f"the table has no row {key!r}", node)
        value = table[key]
        self.record.append((node, value))
        return value

    def _on_attribute(self, node: ast.Attribute) -> Value:
        row = self._eval(node.value)
        if row is None:
            raise EvaluationError(f"{ast.unparse(node.value)} is not set", node)
        try:
            value = UNKNOWN if row is UNKNOWN else row.get(node.attr)
        except AttributeError:  # a case of a policy test gives something else
            raise EvaluationError(f"{ast.unparse(node.value)} is {row!r}, which has no '{node.attr}'", node) from None
        self.record.append((node, value))
        return value


def _parts(node: ast.Compare) -> tuple[Any, ...]:
    """What a comparison is made of, kept with it: most hold a fact against a constant, and neither needs a call."""
    left, right = node.left, node.comparators[0]
    name = left.id if isinstance(left, ast.Name) else None
    constant = right.value if isinstance(right, ast.Constant) else None
    parts = name, left, constant, None if isinstance(right, ast.Constant) else right, _OPERATORS[type(node.ops[0])]
    node.gezel_parts = parts  # type: ignore[attr-defined]
    return parts


def _not_a_flag(value: Value, node: ast.expr) -> EvaluationError:
    return EvaluationError(f"{ast.unparse(node)} is {value!r}, not true or false", node)


def _flag(value: Value, node: ast.expr) -> bool:
    if value is True or value is False:
        return value
    raise _not_a_flag(value, node)


def _number(value: Value, node: ast.expr) -> int | float:
    """Only numbers are added and multiplied: a text times a million is somebody's mistake, or worse."""
    if isinstance(value, (int, float)):
        return value
    raise EvaluationError(f"{ast.unparse(node)} is {value!r}, not a number", node)


def _calculated(node: ast.BinOp, left: int | float, right: int | float) -> int | float:
    try:
        value: int | float = _OPERATORS[node.op.__class__](left, right)
    except ZeroDivisionError:
        raise EvaluationError("division by zero", node) from None
    except OverflowError:
        raise EvaluationError("the number is too large", node) from None
    if not (isfinite(value) if isinstance(value, float) else -MOST <= value < MOST):
        raise EvaluationError("the number is too large", node)
    return value
