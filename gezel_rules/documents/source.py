"""YAML with places: every value knows its file, line and column, also in the middle of a block scalar.

A small builder on ruamel's event stream (the C parser where it is built). Plain data only: anchors, aliases,
tags, merge keys and duplicate keys are problems, so a file means what it shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from gezel_rules.documents.node import MAX_FILE_BYTES, Node, Text, did_you_mean
from gezel_rules.errors import BadInput, Problem, Span, why
from gezel_rules.plain_file import read_plain

__all__ = ["Node", "Text", "did_you_mean", "load_yaml", "parse_yaml", "read_text"]

MAX_DEPTH = 32
MAX_VALUES = 100_000  # of one file, keys counted; the largest policy has 3,000
MAX_PROBLEMS = 100  # more of them help nobody

_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_FIRST_OF_NUMBER = frozenset("+-0123456789")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


def read_text(path: Path, name: str | None = None) -> Text:
    """Read a UTF-8 file of at most ``MAX_FILE_BYTES``. Raises BadInput naming the file."""
    shown = name or str(path)
    try:
        data = read_plain(path, MAX_FILE_BYTES)
    except OSError as error:
        raise BadInput(f"{shown}: {why(error)}") from None
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

        return iter(YAML(typ="safe", pure=True).parse(text))
    return iter(CParser(text).get_event, None)


class _Builder:
    """Turns events into nodes, collecting problems instead of stopping at the first."""

    __slots__ = ("depth", "events", "problems", "text", "values")

    def __init__(self, text: Text) -> None:
        self.text, self.depth, self.values = text, 0, 0
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
            root = self._empty() if name == "StreamEndEvent" else self._node(event)
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
        self._add(self.text.problem(message, mark.line + 1, mark.column + 1))

    def _add(self, problem: Problem) -> None:
        self.problems.append(problem)
        if len(self.problems) == MAX_PROBLEMS:
            raise BadInput([*self.problems, Problem(f"{self.text.name}: and perhaps more: reading stopped here")])

    def _node(self, event: Any) -> Node:
        mark = event.start_mark
        node = Node(None, self.text, mark.line + 1, mark.column + 1, mark.index, event.end_mark.index)
        self.values += 1
        if self.values > MAX_VALUES:
            raise BadInput(self.text.problem(f"more than {MAX_VALUES:,} values", node.line, node.column))
        name = event.__class__.__name__
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
            if event.__class__.__name__ == "SequenceEndEvent":
                break
            items.append(self._node(event))
        return items

    def _mapping(self) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        for event in self.events:
            if event.__class__.__name__ == "MappingEndEvent":
                break
            key = self._node(event)
            value = self._node(next(self.events))
            value.key = key
            self._enter(entries, key, value)
        return entries

    def _enter(self, entries: dict[str, Node], key: Node, value: Node) -> None:
        word = key.value
        if word.__class__ is not str:
            if isinstance(word, (dict, list)):
                self._add(key.problem("a key must be a word"))
                return
            word = self.text.text[key.start : key.end]
        if word == "<<" and self.text.text[key.start : key.end] == "<<":
            self._add(key.problem("merge keys are not allowed: write the entries where they are used"))
        elif word in entries:
            self._add(key.problem(f"duplicate key '{word}' (first on line {entries[word].key.line})"))  # type: ignore[union-attr]
        else:
            entries[word] = value


def _scalar(word: str) -> Any:
    """YAML 1.2 core schema for plain scalars; everything else is a string (dates and versions too)."""
    if word in _WORDS:
        return _WORDS[word]
    if word[0] not in _FIRST_OF_NUMBER:
        return word
    match = _NUMBER.fullmatch(word)
    if match is None:
        return word
    if len(word) > 40:
        return word  # no honest figure needs more digits
    if not match.group(1) and "e" not in word.lower():
        return int(word)
    value = float(word)
    return value if isfinite(value) else word
