"""The bound tree of an expression that was checked before: the same tree as ``bind(parse(text))``, without the checks.

A compiled set carries text; trees are built on first use. Checked text needs no second look, and that is most of the
time of a warm start.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

WORDS = {"true": True, "false": False, "none": None}  # beside Python's own spellings, as people write them
LINE_ENDS = str.maketrans("\n\r", "  ")  # a folded rule is one expression; offsets stay


def rebuild(text: str, known: Collection[str]) -> ast.expr:
    """The tree of checked ``text``, every known dotted name one Name node. Positions are not kept."""
    return _bound(ast.parse(text.translate(LINE_ENDS).strip(), mode="eval").body, known)


def _bound(node: ast.expr, known: Collection[str]) -> ast.expr:
    make = _REBUILD.get(node.__class__)
    return make(node, known) if make else node


def _name(node: ast.Name, known: Collection[str]) -> ast.expr:
    return ast.Constant(WORDS[node.id]) if node.id in WORDS else node


def _attribute(node: ast.Attribute, known: Collection[str]) -> ast.expr:
    parts, inner = [node.attr], node.value
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        path = ".".join((inner.id, *reversed(parts)))
        if path in known:
            return ast.Name(path)
    node.value = _bound(node.value, known)
    return node


def _boolop(node: ast.BoolOp, known: Collection[str]) -> ast.expr:
    node.values = [_bound(value, known) for value in node.values]
    return node


def _compare(node: ast.Compare, known: Collection[str]) -> ast.expr:
    node.left, node.comparators = _bound(node.left, known), [_bound(node.comparators[0], known)]
    return node


def _unary(node: ast.UnaryOp, known: Collection[str]) -> ast.expr:
    node.operand = _bound(node.operand, known)
    return node


def _binop(node: ast.BinOp, known: Collection[str]) -> ast.expr:
    node.left, node.right = _bound(node.left, known), _bound(node.right, known)
    return node


def _call(node: ast.Call, known: Collection[str]) -> ast.expr:
    node.args = [_bound(arg, known) for arg in node.args]
    return node


def _list(node: ast.List, known: Collection[str]) -> ast.expr:
    node.elts = [_bound(item, known) for item in node.elts]
    return node


def _subscript(node: ast.Subscript, known: Collection[str]) -> ast.expr:
    node.value, node.slice = _bound(node.value, known), _bound(node.slice, known)
    return node


def _ifexp(node: ast.IfExp, known: Collection[str]) -> ast.expr:
    node.test, node.body, node.orelse = (_bound(part, known) for part in (node.test, node.body, node.orelse))
    return node


_REBUILD: dict[type[ast.expr], Callable[..., ast.expr]] = {
    ast.Name: _name, ast.Attribute: _attribute, ast.BoolOp: _boolop, ast.Compare: _compare, ast.UnaryOp: _unary,
    ast.BinOp: _binop, ast.Call: _call, ast.Subscript: _subscript, ast.IfExp: _ifexp,
    ast.List: _list,
}  # fmt: skip
