"""The bound tree of an expression that was checked before: the same tree as ``bind(parse(text))``, without the checks.

A compiled set carries text; trees are built on first use. Checked text needs no second look, and that is most of the
time of a warm start.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

MOST = 1 << 63
"""Whole numbers lie below it, and not below minus it: everything that is counted does, and products stay quick."""
WORDS = {"true": True, "false": False, "none": None}  # beside Python's own spellings, as people write them
LINE_ENDS = str.maketrans("\n\r", "  ")  # a folded rule is one expression; offsets stay


def rebuild(text: str, known: Collection[str]) -> ast.expr:
    """The tree of checked ``text``, every known dotted name one Name node. Positions are not kept."""
    bound: ast.expr = _bound(ast.parse(text.translate(LINE_ENDS).strip(), mode="eval").body, known)
    return bound


def _bound(node: Any, known: Collection[str]) -> Any:
    if node.__class__ is ast.Name:
        return ast.Constant(WORDS[node.id]) if node.id in WORDS else node
    if node.__class__ is ast.Attribute and (name := _known_name(node, known)) is not None:
        return name
    for part in _PARTS.get(node.__class__, ()):
        inner = getattr(node, part)
        setattr(
            node, part, [_bound(item, known) for item in inner] if inner.__class__ is list else _bound(inner, known)
        )
    return node


def _known_name(node: ast.Attribute, known: Collection[str]) -> ast.Name | None:
    """The dotted name an attribute spells, where it is a known one."""
    parts, inner = [node.attr], node.value
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    path = ".".join((inner.id, *reversed(parts))) if isinstance(inner, ast.Name) else ""
    return ast.Name(path) if path in known else None


_PARTS: dict[type[ast.expr], tuple[str, ...]] = {
    ast.Attribute: ("value",), ast.BoolOp: ("values",), ast.Compare: ("left", "comparators"),
    ast.UnaryOp: ("operand",), ast.BinOp: ("left", "right"), ast.Call: ("args",), ast.Subscript: ("value", "slice"),
    ast.IfExp: ("test", "body", "orelse"), ast.List: ("elts",),
}  # fmt: skip
"""Where expressions stand inside an expression; the name of a called function is none."""
