"""From text to a tree that contains only what the language has: everything else is a problem with its place."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator

from gezel_rules.lang.rebuild import LINE_ENDS, WORDS
from gezel_rules.source import did_you_mean

MAX_LENGTH = 2000  # characters; a rule longer than this is not read aloud by anybody
MAX_DEPTH = 40  # of nesting; what walks the tree afterwards may recurse without care

_ALLOWED = (
    ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE,
    ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.Name, ast.Attribute, ast.Constant, ast.List, ast.Load,
    ast.Subscript, ast.Call, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.IfExp,
)  # fmt: skip
_NAMES = {
    ast.Pow: "powers (**)", ast.Lambda: "lambda", ast.ListComp: "comprehensions", ast.GeneratorExp: "comprehensions",
    ast.Dict: "dictionaries", ast.JoinedStr: "f-strings", ast.Starred: "*", ast.NamedExpr: "assignment",
    ast.Mod: "%", ast.UAdd: "unary +", ast.Invert: "~", ast.BitAnd: "& (write 'and')", ast.BitOr: "| (write 'or')",
    ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
    ast.Slice: "slices", ast.Set: "sets", ast.Tuple: "tuples (use [a, b])", ast.Await: "await",
}  # fmt: skip


class ExpressionError(Exception):
    """Something wrong inside an expression: ``offset`` and ``width`` in characters of its text."""

    def __init__(self, message: str, offset: int, width: int = 1) -> None:
        super().__init__(message)
        self.message, self.offset, self.width = message, offset, width


def parse(text: str) -> ast.expr:
    """The expression's tree. Raises ExpressionError for what the language does not have."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"expression longer than {MAX_LENGTH} characters", MAX_LENGTH)
    flat = text.translate(LINE_ENDS)
    lead = len(flat) - len(flat.lstrip())
    tree = _python_tree(flat.strip(), lead)
    if lead or not flat.isascii():
        _to_characters(tree, flat.strip(), lead)
    if len(text) > MAX_DEPTH:
        _require_shallow(tree)
    plain: ast.expr = _Words().visit(tree)
    for node in ast.walk(plain):
        _require_allowed(node)
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


def _require_shallow(tree: ast.expr) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels", *place(level[0]))


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


class _Words(ast.NodeTransformer):
    """``true``, ``false`` and ``none`` are constants."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in WORDS:
            return node
        return ast.copy_location(ast.Constant(WORDS[node.id]), node)


def place(node: ast.AST) -> tuple[int, int]:
    """Offset and width of a node in its expression's text."""
    start = getattr(node, "col_offset", 0)
    return start, max(1, (getattr(node, "end_col_offset", None) or start + 1) - start)


def _require_allowed(node: ast.AST) -> None:
    operator = getattr(node, "op", None)  # operators have no place of their own: the whole operation is shown
    for part in (node, operator) if operator else (node,):
        if not isinstance(part, _ALLOWED):
            what = _NAMES.get(type(part), type(part).__name__.lower())
            raise ExpressionError(f"the policy language has no {what}", *place(node))
    if isinstance(node, ast.Compare):
        _require_single_comparison(node)
    if isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or node.keywords):
        raise ExpressionError("only plain calls of known functions: name(argument, …)", *place(node))
    if isinstance(node, ast.Constant):
        _require_plain(node)
    if isinstance(node, ast.List) and not all(_is_constant(item) for item in node.elts):
        raise ExpressionError("a list holds constants only", *place(node))


def _require_plain(node: ast.Constant) -> None:
    if not isinstance(node.value, (str, int, float, bool, type(None))):
        raise ExpressionError("only text, numbers, true, false and none", *place(node))
    if isinstance(node.value, float) and node.value in (float("inf"), float("-inf")):
        raise ExpressionError("a number too large to mean anything", *place(node))


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def _require_single_comparison(node: ast.Compare) -> None:
    if len(node.ops) > 1:
        raise ExpressionError("one comparison at a time: write 'a < b and b < c'", *place(node))
    against = node.comparators[0]
    if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and not (
        isinstance(against, ast.Constant) and against.value is None
    ):
        raise ExpressionError("'is' is for none only: write '=='", *place(node))


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
    """
    return _Binder(known).visit(tree)  # type: ignore[no-any-return]


class _Binder(ast.NodeTransformer):
    def __init__(self, known: Collection[str]) -> None:
        self.known = known

    def visit_Call(self, node: ast.Call) -> ast.Call:
        node.args = [self.visit(arg) for arg in node.args]
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.known:
            hint = did_you_mean(node.id, self.known) or f"; a word needs quotes inside: \"'{node.id}'\""
            raise ExpressionError(f"unknown fact '{node.id}'{hint}", *place(node))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        path = dotted(node)
        if path is None:
            node.value = self.visit(node.value)
            return node
        if path in self.known:
            return ast.copy_location(ast.Name(id=path, ctx=ast.Load()), node)
        inner = dotted(node.value)
        if inner and any(inner == name or inner.startswith(name + ".") for name in self.known):
            node.value = self.visit(node.value)
            return node
        raise ExpressionError(f"unknown fact '{path}'{did_you_mean(path, self.known)}", *place(node))


def reads(tree: ast.AST) -> Iterator[str]:
    """The names a bound tree reads, in order, each once."""
    seen: set[str] = set()
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in functions and node.id not in seen:
            seen.add(node.id)
            yield node.id
