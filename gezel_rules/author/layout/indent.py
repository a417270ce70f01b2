"""Two blanks for each level: keys below keys, dashes below keys, texts below keys; comments with what they speak of."""

from __future__ import annotations

import re

from gezel_rules.author.layout.lines import below, is_block, is_comment, parsed, starts, width
from gezel_rules.documents.node import Node
from gezel_rules.errors import BadInput

STEP = 2
_COUNTED = re.compile(r"[|>][+-]?[1-9]")


def indented(name: str, text: str) -> str:
    """The text with every level indented by two. Raises BadInput for a key that is written with ``?``."""
    layout = _Layout(name, text)
    layout.place(layout.root, 0)
    return layout.laid_out()


class _Head:
    """How a line begins: its content stood at ``old`` and comes to ``new``, behind ``dashes``."""

    __slots__ = ("dashes", "first", "new", "old")

    def __init__(self, first: int, old: int, new: int, dashes: int = 0) -> None:
        self.first, self.old, self.new, self.dashes = first, old, new, dashes


class _Layout:
    def __init__(self, name: str, text: str) -> None:
        self.lines, self.root = text.split("\n"), parsed(text, name)
        self.heads: dict[int, _Head] = {}
        self.moved: dict[int, tuple[int, int]] = {}

    def place(self, node: Node, column: int) -> None:
        """Where a node without brackets, and all in it, comes to stand."""
        if not is_block(node):
            return self._continue(node, column, 0)
        if isinstance(node.value, list):
            return self._items(node, column)
        for value in node.value.values():
            assert value.key is not None  # of a mapping
            self._key(value.key, column)
            if is_block(value):
                self.place(value, column + STEP)
            else:
                self._value(value, value.key, column)
        return None

    def _key(self, key: Node, column: int) -> None:
        line = self.lines[key.line - 1]
        if line[: key.column - 1].strip(" -") or starts(key) == "?":
            raise BadInput(key.problem("write the key first on its line, without '?'"))
        head = self.heads.get(key.line - 1)
        if head is None:
            self.heads[key.line - 1] = _Head(key.column - 1, key.column - 1, column)
        else:
            head.old = key.column - 1

    def _value(self, value: Node, key: Node, column: int) -> None:
        """A value that has no lines of its own, or some between brackets or quotes, or in a block."""
        if value.line > key.line:
            self.heads[value.line - 1] = _Head(value.column - 1, value.column - 1, column + STEP)
        beside = value.line == key.line
        self._continue(value, column + STEP, column - key.column + 1 if beside else column + STEP - value.column + 1)

    def _continue(self, value: Node, column: int, shift: int) -> None:
        """The lines that a value goes on for: the first of them comes to ``column``. What stands between brackets, or
        in a block that says itself how far it is indented, moves by ``shift`` as its first line does."""
        lines = below(value)
        full = [width(self.lines[number]) for number in lines if self.lines[number].strip()]
        if starts(value) in ("{", "[") or _COUNTED.match(value.text.text, value.start):
            self.moved |= dict.fromkeys(lines, (shift, 0))
        elif full:
            self.moved |= dict.fromkeys(lines, (column - full[0], full[0]))

    def _items(self, node: Node, column: int) -> None:
        for item in node.value:
            number = item.line - 1
            while self.lines[number][node.column - 1 : node.column] != "-":
                number -= 1
            head = self.heads.setdefault(number, _Head(node.column - 1, node.column + 1, column))
            head.dashes += 1
            if number == item.line - 1:
                head.old = item.column - 1
            if is_block(item):
                self.place(item, column + STEP)
            elif number == item.line - 1:
                self._continue(item, column + STEP, column - node.column + 1)
            else:
                self._value(item, node, column)

    def laid_out(self) -> str:
        """All lines at their new places."""
        return "\n".join(self._line(number, line) for number, line in enumerate(self.lines))

    def _line(self, number: int, line: str) -> str:
        if number in self.heads:
            head = self.heads[number]
            return (" " * head.new + "- " * head.dashes + line[head.old :].lstrip(" ")).rstrip(" ")
        if number in self.moved:
            shift, least = self.moved[number]
            if not line.strip(" ") and len(line) <= least:
                return ""
            return " " * max(0, width(line) + shift) + line.lstrip(" ")
        return " " * self._beside(number) + line.lstrip(" ") if is_comment(line) else line

    def _beside(self, number: int) -> int:
        """Where a comment comes: above what it speaks of, unless it is deeper than that: then below what it ends."""
        depth = width(self.lines[number])
        after = next((self.heads[each] for each in range(number + 1, len(self.lines)) if each in self.heads), None)
        if after and depth <= after.first:
            return after.new
        least = after.first if after else -1
        for each in range(number - 1, -1, -1):
            head = self.heads.get(each)
            if head and head.dashes and least < head.old <= depth:
                return head.new + STEP * head.dashes
            if head and least < head.first <= depth:
                return head.new
        return after.new if after else 0
