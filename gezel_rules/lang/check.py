"""Types of expressions, found before anything runs: unknown names, wrong types, words that do not exist."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from gezel_rules.documents.node import did_you_mean
from gezel_rules.lang.parse import ExpressionError, bind, parse, place
from gezel_rules.lang.rebuild import MOST
from gezel_rules.lang.types import FLAG, INTEGER, NUMBER, Function, Type, accepts, is_numeric, join, type_of
from gezel_rules.record import NamedTuple


class Scope(NamedTuple):
    """What an expression may name: facts, decisions and tables by their dotted name, and functions.

    ``present`` are optional values (as written) that are known to be set where the expression stands; ``asked`` words
    that conditions before it compare with: a value may be known to be none of them.
    """

    names: Mapping[str, Type]
    functions: Mapping[str, Function]
    present: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()

    def given(self, present: frozenset[str]) -> Scope:
        """The same scope where these values are set too."""
        return self._replace(present=self.present | present) if present else self


class Checked(NamedTuple):
    """A bound tree and the type it will have."""

    tree: ast.expr
    type: Type


def check(text: str, scope: Scope, parsed: ast.expr | None = None) -> Checked:
    """Parse, bind and type an expression. Raises ExpressionError (message, offset, width) at the first fault.

    ``parsed`` is its tree where somebody parsed it already; it is changed in place.
    """
    tree = bind(parse(text) if parsed is None else parsed, scope.names)
    return Checked(tree, _typed(tree, scope))


def set_when(tree: ast.expr, holds: bool) -> frozenset[str]:
    """The values, as written, that cannot be none when the condition holds (or, with ``holds`` false, fails)."""
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return set_when(tree.operand, not holds)
    if isinstance(tree, ast.BoolOp):
        sets = [set_when(operand, holds) for operand in tree.values]
        sure = isinstance(tree.op, ast.And) is holds  # every operand decided alike
        return frozenset().union(*sets) if sure else frozenset.intersection(*sets)
    if isinstance(tree, ast.Compare):
        return _set_by_comparison(tree, holds)
    return frozenset()


def _set_by_comparison(node: ast.Compare, holds: bool) -> frozenset[str]:
    op, right = node.ops[0], node.comparators[0]
    against_none = isinstance(right, ast.Constant) and right.value is None
    if isinstance(op, (ast.Is, ast.IsNot)):
        sure = isinstance(op, ast.IsNot) is holds
    elif isinstance(op, (ast.Eq, ast.NotEq)) and isinstance(right, ast.Constant) and not against_none:
        sure = isinstance(op, ast.Eq) is holds
    else:
        sure = False
    return frozenset((ast.unparse(node.left),)) if sure else frozenset()


def _typed(node: ast.expr, scope: Scope) -> Type:
    type_: Type = _RULES[type(node)](node, scope)  # type: ignore[operator]
    if type_.optional and scope.present and ast.unparse(node) in scope.present:
        return type_._replace(optional=False)
    return type_


def _name(node: ast.Name, scope: Scope) -> Type:
    return scope.names[node.id]


def _constant(node: ast.Constant, scope: Scope) -> Type:
    return type_of(node.value)


def _list(node: ast.List, scope: Scope) -> Type:
    item: Type | None = None
    for element in node.elts:
        element_type = _typed(element, scope)
        item = element_type if item is None else join(item, element_type)
        if item is None:
            raise ExpressionError("a list holds values of one type", *place(element))
    return Type("list", item=item or Type("any"))


def _require_flag(node: ast.expr, scope: Scope) -> None:
    given = _typed(node, scope)
    if given.kind not in ("flag", "any") or given.optional:
        raise ExpressionError(not_a_flag(given, node), *place(node))


def not_a_flag(given: Type, node: ast.expr) -> str:
    """What is wrong with a condition of this type."""
    if given.kind == "flag" and given.optional:
        return f"may be none: write '{ast.unparse(node)} == true'"
    return f"must be true or false, not {given}"


def _boolop(node: ast.BoolOp, scope: Scope) -> Type:
    for operand in node.values:
        _require_flag(operand, scope)
        scope = scope.given(set_when(operand, isinstance(node.op, ast.And)))
    return FLAG


def _unary(node: ast.UnaryOp, scope: Scope) -> Type:
    if isinstance(node.op, ast.Not):
        _require_flag(node.operand, scope)
        return FLAG
    return _require_number(node.operand, scope)


def _require_number(node: ast.expr, scope: Scope) -> Type:
    given = _typed(node, scope)
    if is_numeric(given) and given.optional:
        raise ExpressionError(f"may be none here: '{ast.unparse(node)} is not none and …' makes sure", *place(node))
    if not is_numeric(given):
        raise ExpressionError(f"must be a number, not {given}", *place(node))
    return given


def _require_same_unit(left: Type, right: Type, node: ast.expr) -> None:
    """Bytes are not compared with tokens, nor added to them; a plain number goes with either."""
    if left.unit and right.unit and left.unit != right.unit:
        raise ExpressionError(f"{left.unit} and {right.unit} do not go together", *place(node))


def _require_small_product(node: ast.BinOp) -> None:
    """A product of constants that can never be worked out is found at load; others are when they are."""
    factors = [side.value for side in (node.left, node.right) if isinstance(side, ast.Constant)]
    whole = [factor for factor in factors if isinstance(factor, int)]
    if isinstance(node.op, ast.Mult) and len(whole) == 2 and not -MOST <= whole[0] * whole[1] < MOST:
        raise ExpressionError("a number too large to mean anything", *place(node))


def _binop(node: ast.BinOp, scope: Scope) -> Type:
    left, right = _require_number(node.left, scope), _require_number(node.right, scope)
    _require_small_product(node)
    if isinstance(node.op, (ast.Add, ast.Sub)):
        _require_same_unit(left, right, node)
    unit = left.unit or right.unit if isinstance(node.op, (ast.Add, ast.Sub)) else ""
    if isinstance(node.op, (ast.Mult, ast.FloorDiv, ast.Div)) and not (left.unit and right.unit):
        unit = left.unit if not isinstance(node.op, ast.Mult) else left.unit or right.unit
    whole = left.kind == right.kind == "integer" and not isinstance(node.op, ast.Div)
    return (INTEGER if whole else NUMBER)._replace(unit=unit)


def _compare(node: ast.Compare, scope: Scope) -> Type:
    op, right_node = node.ops[0], node.comparators[0]
    left, right = _typed(node.left, scope), _typed(right_node, scope)
    if isinstance(op, (ast.Is, ast.IsNot)):
        if not left.optional and left.kind not in ("none", "any"):
            raise ExpressionError(f"is never none here: {left}", *place(node.left))
    elif isinstance(op, (ast.In, ast.NotIn)):
        _require_membership(node, left, right)
    elif isinstance(op, (ast.Eq, ast.NotEq)):
        _require_comparable(node, left, right)
    else:
        _require_number(node.left, scope)
        _require_number(right_node, scope)
    if not isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        _require_same_unit(left, right, node)
    return FLAG


def _require_membership(node: ast.Compare, left: Type, right: Type) -> None:
    if right.kind == "table":
        item = Type("text", choices=right.choices)
    elif right.kind == "list":
        item = right.item or Type("any")
    elif right.kind == "any":
        return
    else:
        raise ExpressionError(f"'in' needs a list or a table, not {right}", *place(node.comparators[0]))
    if not accepts(item._replace(optional=True), left):
        raise ExpressionError(f"{left} is never in a {right}", *place(node))
    elements = node.comparators[0].elts if isinstance(node.comparators[0], ast.List) else []
    for element in elements:
        _require_known_word(element, left)
    _require_known_word(node.left, item)


def _require_comparable(node: ast.Compare, left: Type, right: Type) -> None:
    if join(left, right) is None:
        raise ExpressionError(f"{left} is never equal to {right}", *place(node))
    _require_known_word(node.comparators[0], left)
    _require_known_word(node.left, right)


def _require_known_word(node: ast.expr, against: Type) -> None:
    """A constant word compared with an enumeration must be one of its members."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or against.choices is None:
        return
    if against.kind == "text" and node.value not in against.choices:
        known = ", ".join(sorted(against.choices))
        hint = did_you_mean(node.value, against.choices) or f" (known: {known})"
        raise ExpressionError(f"'{node.value}' is not one of its values{hint}", *place(node), node.value)


def _ifexp(node: ast.IfExp, scope: Scope) -> Type:
    _require_flag(node.test, scope)
    body = _typed(node.body, scope.given(set_when(node.test, True)))
    joined = join(body, _typed(node.orelse, scope.given(set_when(node.test, False))))
    if joined is None:
        raise ExpressionError("both outcomes must have one type", *place(node))
    _require_same_unit(body, _typed(node.orelse, scope.given(set_when(node.test, False))), node)
    return joined


def _call(node: ast.Call, scope: Scope) -> Type:
    name = node.func.id  # type: ignore[attr-defined]
    function = scope.functions.get(name)
    if function is None:
        raise ExpressionError(f"unknown function '{name}'{did_you_mean(name, scope.functions)}", *place(node.func))
    given, wanted, before = len(node.args), len(function.params), Type("any")
    if given != wanted and not (function.variadic and given >= wanted):
        raise ExpressionError(f"{name}() takes {wanted} argument{'s'[: wanted != 1]}, not {given}", *place(node))
    for index, arg in enumerate(node.args):
        param = function.params[min(index, wanted - 1)]
        actual = _typed(arg, scope)
        if not accepts(param, actual) or (actual.optional and not param.optional and param.kind != "any"):
            raise ExpressionError(f"{name}() needs {param}, not {actual}", *place(arg))
        _require_known_word(arg, param)
        _require_words(arg, actual, param, scope)
        _require_same_unit(actual, param if param.unit or not function.variadic else before, arg)
        before = actual if actual.unit else before
    return function.result


def _require_words(node: ast.expr, given: Type, wanted: Type, scope: Scope) -> None:
    """Every word that a value may be must be one of those wanted; of words a condition asked for, nothing is said."""
    if given.choices is None or wanted.choices is None or isinstance(node, ast.Constant):
        return
    for word in sorted(given.choices - wanted.choices - scope.asked):
        hint = did_you_mean(word, wanted.choices)
        said = f"'{word}', which {ast.unparse(node)} may be, is none of the words wanted here{hint}"
        raise ExpressionError(said, *place(node), given=word)


def _subscript(node: ast.Subscript, scope: Scope) -> Type:
    table, key = _typed(node.value, scope), _typed(node.slice, scope)
    if table.kind != "table":
        raise ExpressionError(f"only tables can be looked up, not {table}", *place(node.value))
    if key.kind not in ("text", "any") or key.optional:
        raise ExpressionError(f"a table is looked up by text, not {key}", *place(node.slice))
    _require_known_word(node.slice, Type("text", choices=table.choices))
    _require_words(node.slice, key, Type("text", choices=table.choices), scope)
    return table.item or Type("any")


def _attribute(node: ast.Attribute, scope: Scope) -> Type:
    record = _typed(node.value, scope)
    columns = record.fields
    start, width = place(node)
    column = (start + width - len(node.attr), len(node.attr))
    if record.kind != "record" or columns is None:
        raise ExpressionError(f"'{node.attr}': {record} has no columns", *column)
    if node.attr not in columns:
        raise ExpressionError(f"no column '{node.attr}'{did_you_mean(node.attr, columns)}", *column, node.attr)
    return columns[node.attr]


_RULES = {
    ast.Name: _name, ast.Constant: _constant, ast.List: _list, ast.BoolOp: _boolop, ast.UnaryOp: _unary,
    ast.BinOp: _binop, ast.Compare: _compare, ast.IfExp: _ifexp, ast.Call: _call, ast.Subscript: _subscript,
    ast.Attribute: _attribute,
}  # fmt: skip
