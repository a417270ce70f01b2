"""From text to a tree that contains only what the language has: everything else is a problem with its place."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Collection, Iterator

from gezel_rules.documents.node import did_you_mean
from gezel_rules.lang.rebuild import LINE_ENDS, MOST, WORDS

MAX_LENGTH = 2000  # characters; a rule longer than this is not read aloud by anybody
MAX_DEPTH = 40  # of nesting; what walks the tree afterwards may recurse without care

_OPERATORS = (ast.And, ast.Or, ast.Not, ast.USub, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv)
_NAMES = {
    ast.Pow: "powers (**)", ast.Lambda: "lambda", ast.ListComp: "comprehensions", ast.GeneratorExp: "comprehensions",
    ast.Dict: "dictionaries", ast.JoinedStr: "f-strings", ast.Starred: "*", ast.NamedExpr: "assignment",
    ast.Mod: "%", ast.UAdd: "unary +", ast.Invert: "~", ast.BitAnd: "& (write 'and')", ast.BitOr: "| (write 'or')",
    ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
    ast.Slice: "slices", ast.Set: "sets", ast.Tuple: "tuples (use [a, b])", ast.Await: "await",
}  # fmt: skip


class ExpressionError(Exception):
    """Something wrong inside an expression: ``offset`` and ``width`` in characters of its text; ``misses``: the name
    that is not there, when that is what is wrong; ``given``: the word that something else gives and that does not fit
    here."""

    def __init__(self, message: str, offset: int, width: int = 1, misses: str = "", given: str = "") -> None:
        super().__init__(message)
        self.given = given
        self.message, self.offset, self.width, self.misses = message, offset, width, misses


def parse(text: str) -> ast.expr:
    """The expression's tree. Raises ExpressionError for what the language does not have."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"expression longer than {MAX_LENGTH} characters", MAX_LENGTH)
    flat = text.translate(LINE_ENDS)
    lead = len(flat) - len(flat.lstrip())
    tree = _python_tree(flat.strip(), lead)
    if lead or not flat.isascii():
        _to_characters(tree, flat.strip(), lead)
    plain = _plain(tree, 0)
    if "#" in flat:
        _require_no_comment(plain, flat)
    return plain


def _python_tree(text: str, lead: int) -> ast.expr:
    """What Python makes of it; ``lead`` characters stood before the text."""
    if "\\" in text:
        raise ExpressionError("no backslashes inside an expression", lead + text.index("\\"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # '3or x' is a fault here, not a remark on stderr
            return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"not an expression: {error.msg}", lead + max(0, (error.offset or 1) - 1)) from None
    except (ValueError, MemoryError, RecursionError):
        raise ExpressionError("not an expression", 0, lead + len(text)) from None


def _require_no_comment(tree: ast.expr, text: str) -> None:
    """In a rule of several lines a ``#`` would silently end all of it."""
    strings = [place(node) for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    for offset, char in enumerate(text):
        if char == "#" and not any(start <= offset < start + width for start, width in strings):
            raise ExpressionError("no comments inside an expression", offset)


def _to_characters(tree: ast.expr, text: str, lead: int) -> None:
    """Python counts columns in UTF-8 bytes from the stripped start; people count characters from the beginning."""
    encoded = text.encode()
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            node.col_offset = lead + len(encoded[: node.col_offset].decode(errors="ignore"))
            node.end_col_offset = lead + len(encoded[: node.end_col_offset].decode(errors="ignore"))


def place(node: ast.AST) -> tuple[int, int]:
    """Offset and width of a node in its expression's text."""
    start = getattr(node, "col_offset", 0)
    return start, max(1, (getattr(node, "end_col_offset", None) or start + 1) - start)


def _plain(node: ast.expr, depth: int) -> ast.expr:
    """The tree with ``true``, ``false`` and ``none`` as constants. Raises ExpressionError for what does not belong."""
    if depth == MAX_DEPTH:
        raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels", 0)
    make = _PLAIN.get(node.__class__)
    if make is None:
        raise _no_such_thing(node, node)
    return make(node, depth + 1)


def _no_such_thing(part: ast.AST, node: ast.expr) -> ExpressionError:
    what = _NAMES.get(type(part), type(part).__name__.lower())
    return ExpressionError(f"the policy language has no {what}", *place(node))


def _require_operator(node: ast.BoolOp | ast.UnaryOp | ast.BinOp) -> None:
    """Operators have no place of their own: the whole operation is shown."""
    if not isinstance(node.op, _OPERATORS):
        raise _no_such_thing(node.op, node)


def _plain_name(node: ast.Name, depth: int) -> ast.expr:
    return ast.copy_location(ast.Constant(WORDS[node.id]), node) if node.id in WORDS else node


def _plain_constant(node: ast.Constant, depth: int) -> ast.expr:
    _require_plain(node)
    return node


def _plain_attribute(node: ast.Attribute, depth: int) -> ast.expr:
    node.value = _plain(node.value, depth)
    return node


def _plain_boolop(node: ast.BoolOp, depth: int) -> ast.expr:
    node.values = [_plain(value, depth) for value in node.values]
    return node


def _plain_unary(node: ast.UnaryOp, depth: int) -> ast.expr:
    _require_operator(node)
    node.operand = _plain(node.operand, depth)
    return node


def _plain_binop(node: ast.BinOp, depth: int) -> ast.expr:
    _require_operator(node)
    node.left, node.right = _plain(node.left, depth), _plain(node.right, depth)
    return node


def _plain_compare(node: ast.Compare, depth: int) -> ast.expr:
    if len(node.ops) > 1:
        raise ExpressionError("one comparison at a time: write 'a < b and b < c'", *place(node))
    node.left = _plain(node.left, depth)
    against = node.comparators[0] = _plain(node.comparators[0], depth)
    if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and not (
        isinstance(against, ast.Constant) and against.value is None
    ):
        raise ExpressionError("'is' is for none only: write '=='", *place(node))
    return node


def _plain_call(node: ast.Call, depth: int) -> ast.expr:
    if not isinstance(node.func, ast.Name) or node.func.id in WORDS or node.keywords:
        raise ExpressionError("only plain calls of known functions: name(argument, …)", *place(node))
    node.args = [_plain(arg, depth) for arg in node.args]
    return node


def _plain_list(node: ast.List, depth: int) -> ast.expr:
    node.elts = [_plain(item, depth) for item in node.elts]
    if not all(_is_constant(item) for item in node.elts):
        raise ExpressionError("a list holds constants only", *place(node))
    return node


def _plain_subscript(node: ast.Subscript, depth: int) -> ast.expr:
    node.value, node.slice = _plain(node.value, depth), _plain(node.slice, depth)
    return node


def _plain_ifexp(node: ast.IfExp, depth: int) -> ast.expr:
    node.test, node.body, node.orelse = (_plain(part, depth) for part in (node.test, node.body, node.orelse))
    return node


_PLAIN: dict[type[ast.expr], Callable[..., ast.expr]] = {
    ast.Name: _plain_name, ast.Constant: _plain_constant, ast.Attribute: _plain_attribute, ast.List: _plain_list,
    ast.BoolOp: _plain_boolop, ast.UnaryOp: _plain_unary, ast.BinOp: _plain_binop, ast.Compare: _plain_compare,
    ast.IfExp: _plain_ifexp, ast.Call: _plain_call, ast.Subscript: _plain_subscript,
}  # fmt: skip


def _require_plain(node: ast.Constant) -> None:
    value = node.value
    if not isinstance(value, (str, int, float, bool, type(None))):
        raise ExpressionError("only text, numbers, true, false and none", *place(node))
    endless = isinstance(value, float) and value in (float("inf"), float("-inf"))
    if endless or (isinstance(value, int) and not -MOST <= value < MOST):
        raise ExpressionError("a number too large to mean anything", *place(node))


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def dotted(node: ast.AST) -> str | None:
    """``a.b.c`` of a chain of attributes on a name, else ``None``."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else None


def bind(tree: ast.expr, known: Collection[str]) -> ast.expr:
    """Turn every dotted chain that starts with a known name into one Name node (``id`` holds the dots).

    Raises ExpressionError for a name nobody knows. What follows a known name stays an attribute: a column of its value.
    The tree is changed in place.
    """
    kind = tree.__class__
    if kind is ast.Attribute:
        return _bound_attribute(tree, known)  # type: ignore[arg-type]
    if kind is ast.Name:
        return _known_name(tree, known)  # type: ignore[arg-type]
    for name in _PARTS[kind]:
        part = getattr(tree, name)
        setattr(tree, name, [bind(item, known) for item in part] if isinstance(part, list) else bind(part, known))
    return tree


_PARTS: dict[type[ast.expr], tuple[str, ...]] = {
    ast.Name: (), ast.Constant: (), ast.Attribute: ("value",), ast.List: ("elts",), ast.BoolOp: ("values",),
    ast.UnaryOp: ("operand",), ast.BinOp: ("left", "right"), ast.Compare: ("left", "comparators"),
    ast.IfExp: ("test", "body", "orelse"), ast.Call: ("args",), ast.Subscript: ("value", "slice"),
}  # fmt: skip
"""The expressions below each kind of node, in reading order of the tree; a called function's name is none."""


def _known_name(node: ast.Name, known: Collection[str]) -> ast.expr:
    if node.id not in known:
        hint = did_you_mean(node.id, known) or f"; a word needs quotes inside: \"'{node.id}'\""
        raise ExpressionError(f"unknown fact '{node.id}'{hint}", *place(node), node.id)
    return node


def _bound_attribute(node: ast.Attribute, known: Collection[str]) -> ast.expr:
    path = dotted(node)
    if path is not None and path in known:
        return ast.copy_location(ast.Name(id=path, ctx=ast.Load()), node)
    if path is not None and not any(prefix in known for prefix in prefixes(path)):
        raise ExpressionError(f"unknown fact '{path}'{did_you_mean(path, known)}", *place(node), path)
    node.value = bind(node.value, known)
    return node


def prefixes(path: str) -> Iterator[str]:
    """``a.b.c``, ``a.b``, ``a``."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def reads(tree: ast.expr) -> dict[str, None]:
    """The names a bound tree reads, from left to right, each once."""
    found: dict[str, None] = {}
    for node in below(tree):
        if isinstance(node, ast.Name):
            found[node.id] = None
    return found


def below(node: ast.expr) -> Iterator[ast.expr]:
    """The node and every expression below it, from left to right; names of called functions are left out."""
    yield node
    for name in _PARTS[node.__class__]:
        part = getattr(node, name)
        for child in part if isinstance(part, list) else (part,):
            yield from below(child)
