"""A YAML value that knows its place: file, line and column, also in the middle of a block scalar. Reads no file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gezel_rules.errors import Problem, Span

MAX_FILE_BYTES = 4 << 20  # a policy or catalog file; beyond this somebody has pointed us at the wrong file
MAX_SHOWN = 240  # characters of a line that a problem quotes
MAX_MESSAGE = 1000  # characters of a message: it may quote what is in the file


class Text:
    """One file's text and the name people know it by."""

    __slots__ = ("_lines", "name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self._lines: list[str] | None = None

    def line(self, number: int) -> str:
        """The 1-based line, without its end."""
        if self._lines is None:
            self._lines = self.text.split("\n")
        return self._lines[number - 1].rstrip("\r") if 0 < number <= len(self._lines) else ""

    def problem(self, message: str, line: int, column: int, width: int = 1) -> Problem:
        """A problem at a 1-based place of this text."""
        quoted = self.line(line)
        left_out = max(0, column - 1 - MAX_SHOWN // 2) if len(quoted) > MAX_SHOWN else 0
        quoted = _window(quoted, left_out)
        width = max(1, min(width, len(quoted) - (column - 1 - left_out)))
        return Problem(_short(message), Span(self.name, line, column, width), quoted, left_out)


def _window(line: str, start: int) -> str:
    """``MAX_SHOWN`` characters of a line from ``start`` on; what is cut off at an end is marked."""
    shown = line[start : start + MAX_SHOWN]
    shown = f"…{shown[1:]}" if start else shown
    return f"{shown[:-1]}…" if start + MAX_SHOWN < len(line) else shown


def _short(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"


class Node:
    """A YAML value at a place. ``value`` is a scalar, a ``dict[str, Node]`` or a ``list[Node]``.

    ``line`` and ``column`` are 1-based; ``start`` and ``end`` are character offsets of the raw text;
    ``key`` is the node of the mapping key that leads here.
    """

    __slots__ = ("column", "end", "key", "line", "start", "text", "value")

    def __init__(self, value: Any, text: Text, line: int, column: int, start: int, end: int) -> None:
        self.value, self.text, self.line, self.column = value, text, line, column
        self.start, self.end = start, end
        self.key: Node | None = None

    def problem(self, message: str, width: int | None = None) -> Problem:
        """A problem with this value, the caret under its first line."""
        if width is None:
            room = len(self.text.line(self.line)) - self.column + 1
            width = max(1, min(self.end - self.start, room)) if not isinstance(self.value, (dict, list)) else 1
        return self.text.problem(message, self.line, self.column, width)

    def problem_within(self, message: str, offset: int, width: int = 1) -> Problem:
        """A problem at a character offset of the string value: block scalars, folding and quotes are undone."""
        from gezel_rules.documents.scalar import raw_index

        raw = self.text.text
        index = raw_index(raw, self.start, self.end, str(self.value), offset)
        line = raw.count("\n", 0, index) + 1
        column = index - (raw.rfind("\n", 0, index) + 1) + 1
        return self.text.problem(message, line, column, width)

    def plain(self) -> Any:
        """The value as plain data, places forgotten."""
        kind = self.value.__class__
        if kind is dict:
            return {key: node.plain() for key, node in self.value.items()}
        return [node.plain() for node in self.value] if kind is list else self.value


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'kv.type'?"`` when something known is close, else nothing."""
    close = nearest(word, known)
    return f"; did you mean '{close}'?" if close else ""


def misspelt(unknown: Iterable[str], missing: Iterable[str], known: Iterable[str]) -> dict[str, tuple[str, str]]:
    """What each unknown word most likely stands for, and how that is said: one that is missing where some are, else
    the nearest known (nothing, where none is near)."""
    found: dict[str, tuple[str, str]] = {}
    left = list(missing)
    for word in unknown:
        near = nearest(word, left) or nearest(word, known)
        if near:
            found[word] = near, f"; did you mean '{near}'?"
        else:
            found[word] = (left[0], f"; '{left[0]}' is missing") if left else ("", "")
        left = [name for name in left if name != found[word][0]]
    return found


def nearest(word: str, known: Iterable[str]) -> str:
    """What is known and most like the word; nothing when nothing is."""
    import difflib  # needed only for a message

    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)), "")
