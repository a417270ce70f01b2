"""YAML with places: every value knows its file, line and column, also in the middle of a block scalar.

A small builder on ruamel's event stream (the C parser where it is built). Plain data only: anchors, aliases,
tags, merge keys and duplicate keys are problems, so a file means what it shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from gezel_rules.errors import BadInput, Problem, Span

MAX_FILE_BYTES = 4 << 20  # a policy or catalog file; beyond this somebody has pointed us at the wrong file
MAX_DEPTH = 32

_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


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
        return Problem(message, Span(self.name, line, column, width), self.line(line))


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
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'kv.type'?"`` when something known is close, else nothing."""
    import difflib  # needed only for a message

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def read_text(path: Path, name: str | None = None) -> Text:
    """Read a UTF-8 file of at most ``MAX_FILE_BYTES``. Raises BadInput naming the file."""
    shown = name or str(path)
    try:
        if path.is_dir():
            raise BadInput(f"{shown}: is a directory, not a file")
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{shown}: {(error.strerror or str(error)).lower()}") from None
    if len(data) > MAX_FILE_BYTES:
        raise BadInput(f"{shown}: larger than {MAX_FILE_BYTES >> 20} MiB; not a policy or catalog file")
    try:
        return Text(shown, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(Problem(f"not UTF-8 text (byte {error.start})", Span(shown, line, 1))) from None


def load_yaml(path: Path, name: str | None = None) -> Node:
    """Read one YAML document with places. Raises BadInput listing every structural problem at once."""
    return parse_yaml(read_text(path, name))


def parse_yaml(text: Text) -> Node:
    """Parse one YAML document. Raises BadInput with every problem found before the parser gave up."""
    builder = _Builder(text)
    root = builder.build()
    if builder.problems:
        raise BadInput(builder.problems)
    return root


def _events(text: str) -> Iterator[Any]:
    try:
        from _ruamel_yaml import CParser
    except ImportError:
        from ruamel.yaml import YAML

        yield from YAML(typ="safe", pure=True).parse(text)
        return
    parser = CParser(text)
    while (event := parser.get_event()) is not None:
        yield event


class _Builder:
    """Turns events into nodes, collecting problems instead of stopping at the first."""

    __slots__ = ("depth", "events", "problems", "text")

    def __init__(self, text: Text) -> None:
        self.text, self.depth = text, 0
        self.problems: list[Problem] = []
        self.events = _events(text.text)

    def build(self) -> Node:
        from ruamel.yaml.error import YAMLError

        try:
            for event in self.events:
                name = type(event).__name__
                if name not in ("StreamStartEvent", "DocumentStartEvent"):
                    break
            else:
                name = "StreamEndEvent"
            root = self._empty() if name == "StreamEndEvent" else self._node(event, name)
            self._only_document()
            return root
        except YAMLError as error:
            raise BadInput([*self.problems, self._syntax_problem(error)]) from None

    def _only_document(self) -> None:
        for event in self.events:
            if type(event).__name__ not in ("DocumentEndEvent", "StreamEndEvent"):
                self._complain("only one YAML document per file", event)
                return

    def _syntax_problem(self, error: Any) -> Problem:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        said = str(getattr(error, "problem", None) or error).splitlines()[0]
        if getattr(error, "context", None) and getattr(error, "context_mark", None):
            said += f", {error.context} (line {error.context_mark.line + 1})"
        if mark is None:
            return Problem(f"not valid YAML: {said}", Span(self.text.name, 1, 1))
        return self.text.problem(f"not valid YAML: {said}", mark.line + 1, mark.column + 1)

    def _empty(self) -> Node:
        return Node(None, self.text, 1, 1, 0, 0)

    def _complain(self, message: str, event: Any) -> None:
        mark = event.start_mark
        self.problems.append(self.text.problem(message, mark.line + 1, mark.column + 1))

    def _node(self, event: Any, name: str) -> Node:
        mark = event.start_mark
        node = Node(None, self.text, mark.line + 1, mark.column + 1, mark.index, event.end_mark.index)
        if name == "AliasEvent":
            self._complain("aliases are not allowed: write the value where it is used", event)
            return node
        if event.anchor is not None:
            self._complain("anchors are not allowed: write the value where it is used", event)
        if event.tag is not None:
            self._complain(f"unknown tag '{event.tag}'", event)
        if name == "ScalarEvent":
            node.value = _scalar(event.value) if event.implicit[0] else event.value
            return node
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise BadInput(self.text.problem(f"nested deeper than {MAX_DEPTH} levels", node.line, node.column))
        node.value = self._mapping() if name == "MappingStartEvent" else self._sequence()
        self.depth -= 1
        return node

    def _sequence(self) -> list[Node]:
        items = []
        for event in self.events:
            name = type(event).__name__
            if name == "SequenceEndEvent":
                break
            items.append(self._node(event, name))
        return items

    def _mapping(self) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        for event in self.events:
            name = type(event).__name__
            if name == "MappingEndEvent":
                break
            key = self._node(event, name)
            event = next(self.events)
            value = self._node(event, type(event).__name__)
            value.key = key
            self._enter(entries, key, value, event)
        return entries

    def _enter(self, entries: dict[str, Node], key: Node, value: Node, event: Any) -> None:
        if isinstance(key.value, (dict, list)):
            self.problems.append(key.problem("a key must be a word"))
            return
        raw = self.text.text[key.start : key.end]
        word = key.value if isinstance(key.value, str) else raw
        if raw == "<<":
            self.problems.append(key.problem("merge keys are not allowed: write the entries where they are used"))
            return
        if word in entries:
            self.problems.append(key.problem(f"duplicate key '{word}' (first on line {entries[word].key.line})"))  # type: ignore[union-attr]
            return
        entries[word] = value


def _scalar(word: str) -> Any:
    """YAML 1.2 core schema for plain scalars; everything else is a string (dates and versions too)."""
    if word in _WORDS:
        return _WORDS[word]
    match = _NUMBER.fullmatch(word)
    if match is None:
        return word
    if len(word) > 40:
        return word  # no honest figure needs more digits
    if not match.group(1) and "e" not in word.lower():
        return int(word)
    value = float(word)
    return value if isfinite(value) else word
