"""Keys in the order in which they are declared. A key takes with it what stands below it and the comments above it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from gezel_rules.author.layout.lines import is_block, is_comment, parsed, width
from gezel_rules.documents import declare
from gezel_rules.documents.declare import Kind, Shape
from gezel_rules.documents.node import Node
from gezel_rules.policy.file import BLOCKS
from gezel_rules.record import NamedTuple

_MODELINE = "# yaml-language-server:"
"""Says to an editor which schema holds: it stays on top of the file."""


class _Mapping(NamedTuple):
    """A mapping without brackets, the ``keys`` of its shape, and the lines from 0 that are its own."""

    node: Node
    keys: tuple[str, ...]
    begin: int
    end: int


def ordered(text: str, shape: Shape) -> str:
    """The text with the keys of every mapping in the order of its shape."""
    lines = text.split("\n")
    begin = next((number + 1 for number, line in enumerate(lines) if line.startswith(_MODELINE)), 0)
    root = parsed(text)
    for mapping in reversed(list(_mappings(root, shape, lines, begin, len(lines) - 1))):  # inner ones first
        _sort(lines, mapping)
    return "\n".join(lines)


def _mappings(node: Node, kind: Kind, lines: list[str], begin: int, end: int) -> Iterator[_Mapping]:
    if not is_block(node):
        return
    for shape in _fitting(node, kind):
        if isinstance(shape, Shape):
            yield _Mapping(node, tuple(shape.fields), begin, end)
        for each, below, span in _below(node, shape, lines, begin, end):
            yield from _mappings(each, below, lines, *span)


def _fitting(node: Node, kind: Kind) -> Iterator[Kind]:
    """The declaration that a node is read by, of several."""
    if isinstance(kind, declare.Block):
        kind = BLOCKS[kind.name] if kind.name == "table" else declare.ANYTHING  # a column's keys stay as they are
    if isinstance(kind, declare.Either):
        for each in kind.kinds:
            yield from _fitting(node, each)
    elif isinstance(kind, declare.Variants) and isinstance(node.value, dict):
        found = next((shape for key, shape in kind.by.items() if key in node.value), kind.otherwise)
        yield from _fitting(node, found) if found is not None else ()
    elif isinstance(kind, (declare.Map, Shape) if isinstance(node.value, dict) else declare.List):
        yield kind


def _below(
    node: Node, kind: Kind, lines: list[str], begin: int, end: int
) -> Iterator[tuple[Node, Kind, tuple[int, int]]]:
    """What stands in a mapping or list, each with its declaration and lines."""
    parts = list(node.value.values() if isinstance(node.value, dict) else node.value)
    firsts = [(part.key or part).line - 1 for part in parts]
    ends = [_top(lines, first, node.column - 1, begin) for first in firsts[1:]]
    for part, first, last in zip(parts, firsts, [*ends, end], strict=True):
        if isinstance(kind, Shape):
            field = kind.fields.get(part.key.value) if part.key else None
            below = field.kind if field else kind.others
        else:
            below = kind.of if isinstance(kind, (declare.Map, declare.List)) else None
        if below is not None:
            yield part, below, (first + (part.key is not None), last)


def _top(lines: list[str], first: int, column: int, begin: int) -> int:
    """Where a key with what stands above it begins: comments that are no deeper than it, and empty lines."""
    while first > begin and (
        not lines[first - 1].strip() or (is_comment(lines[first - 1]) and width(lines[first - 1]) <= column)
    ):
        first -= 1
    return first


def _sort(lines: list[str], mapping: _Mapping) -> None:
    """Put the keys of one mapping in order, in place; the number of lines stays."""
    rank = {key: place for place, key in enumerate(mapping.keys)}
    names = list(mapping.node.value)
    wanted = sorted(names, key=lambda name: rank.get(name, len(rank)))
    if wanted == names:
        return
    keys = [value.key for value in mapping.node.value.values() if value.key]
    column = mapping.node.column - 1
    lead = lines[keys[0].line - 1][:column]
    lines[keys[0].line - 1] = " " * column + lines[keys[0].line - 1][column:]
    tops = [_top(lines, key.line - 1, column, mapping.begin) for key in keys]
    parts = {
        name: _Part(lines[top : key.line - 1], lines[key.line - 1 : after])
        for name, key, (top, after) in zip(names, keys, pairwise([*tops, mapping.end]), strict=True)
    }
    lines[tops[0] : mapping.end] = _joined([parts[name] for name in wanted], parts[names[0]], lead)


class _Part(NamedTuple):
    """A key's lines: those ``above`` it, and its own with what stands ``below``."""

    above: list[str]
    own: list[str]


def _joined(parts: Iterable[_Part], was_first: _Part, lead: str) -> list[str]:
    """Lines in their new order. Empty lines above the new first key go above the old one; the dash of a list's item
    goes before the new first key, and below the comments on it."""
    first, *rest = parts
    empty = [line for line in first.above if not line.strip()]
    above = [line for line in first.above if line.strip()]
    if lead.strip():
        above = [" " * width(lead) + line.lstrip() for line in above]
    found = [*above, lead + first.own[0][len(lead) :], *first.own[1:]]
    for part in rest:
        found += [*(empty if part is was_first else ()), *part.above, *part.own]
    return found
