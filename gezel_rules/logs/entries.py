"""Building the parts of a log policy from its files: expressions with their words filled in, ids, prefixes, quotations.

Problems are collected, never raised; what is faulty becomes something that matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.documents.read import Value
from gezel_rules.errors import Problem
from gezel_rules.logs.model import Lines, Prefix, Quote
from gezel_rules.regex import Choice, Match, Regex, faults

_WORD = re.compile(r"\{\{([a-z0-9-]+)\}\}")
_NEVER = Regex(r"[^\x00-\x{10ffff}]")


class Entries:
    """The sections of all files, the words their expressions use, and what is wrong with them so far."""

    def __init__(self, sections: Iterable[str]) -> None:
        self.problems: list[Problem] = []
        self.sections: dict[str, list[Value]] = {key: [] for key in sections}
        self.words: dict[str, str] = {}
        self.word_nodes: dict[str, Node] = {}
        self.faulty: set[str] = set()  # words that are no expressions by themselves
        self.nodes: dict[str, Node] = {}  # id → the entry it stands in, for messages

    def each(self, section: str, build: Callable[[Value], Any]) -> list[Any]:
        """Everything of a section, over all files, that could be built."""
        entries = [entry for found in self.sections[section] for entry in found.value]
        return [built for built in (build(entry) for entry in entries) if built is not None]

    def read_words(self) -> None:
        """Learn the named pieces of expressions."""
        for section in self.sections["words"]:
            for name, word in section.value.items():
                if name in self.words:
                    self.problems.append((word.node.key or word.node).problem(f"word '{name}' is already defined"))
                self.words[name], self.word_nodes[name] = word.value, word.node.key or word.node
                for message, offset in faults(word.value):
                    self.problems.append(word.node.problem_within(message, offset))
                    self.faulty.add(name)

    def own(self, name: str, node: Node) -> bool:
        """Claim an id; all kinds of entries share one space, so that a report names one thing."""
        if (first := self.nodes.get(name)) is not None:
            where = f"{first.text.name}:{first.line}"
            self.problems.append((node.key or node).problem(f"id '{name}' is already used at {where}"))
            return False
        self.nodes[name] = node
        return True

    def regex(self, entry: Value, key: str) -> Regex:
        """The expression under a key, its words filled in."""
        if key not in entry:
            return _NEVER
        node, raw = entry[key].node, entry.at(key)
        unknown = next((word for word in _WORD.finditer(raw) if word[1] not in self.words), None)
        if unknown is not None:
            hint = did_you_mean(unknown[1], self.words)
            said = node.problem_within(f"unknown word '{unknown[1]}'{hint}", unknown.start(1), len(unknown[1]))
            self.problems.append(said._replace(misses=unknown[1]))
            return _NEVER
        full = _WORD.sub(self._filled, raw)
        if any(word[1] in self.faulty for word in _WORD.finditer(raw)):
            return _NEVER  # which is said where the word is written
        found = faults(full)
        for message, offset in found:
            self.problems.append(node.problem_within(message, self._as_written(raw, offset)))
        return _NEVER if found else Regex(full)

    def optional_regex(self, entry: Value, key: str) -> Regex | None:
        """The same; ``None`` where there is no such key."""
        return self.regex(entry, key) if key in entry else None

    def _filled(self, word: re.Match[str]) -> str:
        return f"(?:{self.words[word[1]]})"

    def _as_written(self, raw: str, offset: int) -> int:
        """The offset in an expression as written of one in it with its words filled in."""
        for word in _WORD.finditer(raw):
            if offset < word.start():
                break
            offset = max(word.start(), offset - len(self._filled(word)) + len(word[0]))
        return offset

    def lines(self) -> Lines:
        """How lines are unwrapped."""
        objects, prefixes = self.sections["objects"], tuple(self.each("prefixes", self._prefix))
        return Lines(
            strip=Choice(self.each("strip", self._bare), anywhere=True),
            prefixes=prefixes,
            texts=tuple(key for keys in objects for key in texts(keys, "text")),
            levels=tuple(key for keys in objects for key in texts(keys, "level")),
            quotes=tuple(self.each("quotes", self._quote)),
            ignored=Choice(self.each("ignored", self._bare)),
            leads=Choice(prefix.match for prefix in prefixes),
        )

    def _bare(self, entry: Value) -> Regex:
        pattern = self.regex(entry, "match")
        self._example(pattern.search, entry, pattern)
        return pattern

    def _prefix(self, entry: Value) -> Prefix | None:
        pattern = self.regex(entry, "match")
        self._example(pattern.match, entry, pattern)
        but_not = self.optional_regex(entry, "but_not")
        return Prefix(entry.at("id"), pattern, but_not, bool(entry.at("stamp"))) if "id" in entry else None

    def _quote(self, entry: Value) -> Quote | None:
        opens, then = self.regex(entry, "opens"), self.regex(entry, "then")
        closes, but_not = self.optional_regex(entry, "closes"), self.optional_regex(entry, "but_not")
        if not entry.complete:
            return None
        self._example(opens.search, entry, opens)
        return Quote(entry.at("id"), texts(entry, "needs"), opens, but_not, closes, then, entry.at("lines"))

    def _example(self, match: Callable[[str], Match | None], entry: Value, pattern: Regex) -> None:
        if entry.complete and pattern is not _NEVER and not match(entry.at("example")):
            self.problems.append(entry["example"].problem("the expression does not match this example"))


def texts(entry: Value, key: str) -> tuple[str, ...]:
    """The one text under a key, or the list of them; none where there is nothing."""
    found = entry.at(key)
    if isinstance(found, list):
        return tuple(item.value for item in found)
    return () if found is None else (found,)
