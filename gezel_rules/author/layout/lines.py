"""Lines of a YAML text and what they belong to; and ends of lines, blanks and empty lines put right."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gezel_rules.documents.node import Node, Text
from gezel_rules.documents.source import parse_yaml
from gezel_rules.errors import BadInput

_CLOSES = re.compile(r"(?:[\s,:]|(?<=\s)#[^\n]*)*[\]}]")
_KEPT = re.compile(r"[|>][0-9-]*\+")


def parsed(text: str, name: str = "") -> Node:
    """The text as nodes. Raises BadInput."""
    return parse_yaml(Text(name, text))


def nodes(root: Node) -> Iterator[Node]:
    """A node and all below it, keys not counted."""
    yield root
    if isinstance(root.value, (dict, list)):
        for node in root.value.values() if isinstance(root.value, dict) else root.value:
            yield from nodes(node)


def starts(node: Node) -> str:
    """The first character of a node: ``{`` or ``[`` of what is written between brackets, ``|`` or ``>`` of a block."""
    return node.text.text[node.start : node.start + 1]


def is_block(node: Node) -> bool:
    """Whether it is a mapping or list that is written without brackets."""
    return isinstance(node.value, (dict, list)) and starts(node) not in ("{", "[")


def is_comment(line: str) -> bool:
    """Whether nothing but a comment stands there."""
    return line.lstrip().startswith("#")


def width(line: str) -> int:
    """How far a line is indented."""
    return len(line) - len(line.lstrip(" "))


def end(node: Node) -> int:
    """The offset behind a scalar, or behind the bracket that closes a mapping or list. Raises BadInput for what is
    written between brackets in a way nobody would."""
    if not isinstance(node.value, (dict, list)):
        return node.end
    parts = node.value.values() if isinstance(node.value, dict) else node.value
    last = max((max(end(part), part.key.end if part.key else 0) for part in parts), default=node.end)
    closed = _CLOSES.match(node.text.text, last)
    if closed is None:
        raise BadInput(node.problem("left as it is: cannot tell where these brackets end", 1))
    return closed.end()


def below(node: Node) -> range:
    """The lines, counted from 0, that a scalar or something between brackets goes on for after its first."""
    raw = node.text.text
    last = end(node)
    if starts(node) in ("|", ">"):
        last = last - 1 if _KEPT.match(raw, node.start) else node.start + len(raw[node.start : last].rstrip())
    return range(node.line, raw.count("\n", 0, last) + 1)


def tidy(text: str) -> str:
    """No blanks at the ends of lines, at most one empty line in a row, one newline at the end; texts keep their own."""
    scalars = (node for node in nodes(parsed(text)) if not isinstance(node.value, (dict, list)))
    kept = {number for node in scalars for number in below(node)}
    found: list[str] = []
    for number, line in enumerate(text.split("\n")):
        bare = line if number in kept else line.rstrip(" \t")
        if bare or number in kept or (found and found[-1]):
            found.append(bare)
    last = text.rstrip("\n").count("\n") + 1
    return "\n".join(found) if last in kept else "\n".join(found).rstrip("\n") + "\n"
