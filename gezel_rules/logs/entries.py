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
from gezel_rules.logs.bounded_regex import faults
from gezel_rules.logs.model import Lines, Prefix, Quote, Regex

_WORD = re.compile(r"\{\{([a-z0-9-]+)\}\}")
_NEVER = Regex(r"(?!)")


class Entries:
    """The sections of all files, the words their expressions use, and what is wrong with them so far."""

    def __init__(self, sections: Iterable[str]) -> None:
        self.problems: list[Problem] = []
        self.sections: dict[str, list[Value]] = {key: [] for key in sections}
        self.words: dict[str, str] = {}
        self.word_nodes: dict[str, Node] = {}
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
        missing = next((word for word in _WORD.findall(raw) if word not in self.words), None)
        if missing is not None:
            hint = did_you_mean(missing, self.words)
            said = node.problem_within(f"unknown word '{missing}'{hint}", raw.index(missing), len(missing))
            self.problems.append(said._replace(misses=missing))
            return _NEVER
        full = _WORD.sub(lambda match: f"(?:{self.words[match[1]]})", raw)
        found = faults(full)
        for message, offset in found:
            at = min(offset, max(0, len(raw) - 1)) if full == raw else 0
            self.problems.append(node.problem_within(message, at))
        return _NEVER if found else Regex(full)

    def lines(self) -> Lines:
        """How lines are unwrapped."""
        objects = self.sections["objects"]
        return Lines(
            strip=tuple(self.each("strip", self._bare)),
            prefixes=tuple(self.each("prefixes", self._prefix)),
            texts=tuple(key for keys in objects for key in texts(keys, "text")),
            levels=tuple(key for keys in objects for key in texts(keys, "level")),
            quotes=tuple(self.each("quotes", self._quote)),
            ignored=tuple(self.each("ignored", self._bare)),
        )

    def _bare(self, entry: Value) -> Regex:
        pattern = self.regex(entry, "match")
        self._example(pattern.search, entry, pattern)
        return pattern

    def _prefix(self, entry: Value) -> Prefix | None:
        pattern = self.regex(entry, "match")
        self._example(pattern.match, entry, pattern)
        return Prefix(entry.at("id"), pattern, bool(entry.at("stamp"))) if "id" in entry else None

    def _quote(self, entry: Value) -> Quote | None:
        opens, then = self.regex(entry, "opens"), self.regex(entry, "then")
        closes = self.regex(entry, "closes") if "closes" in entry else None
        if not entry.complete:
            return None
        self._example(opens.search, entry, opens)
        return Quote(entry.at("id"), texts(entry, "needs"), opens, closes, then, entry.at("lines"))

    def _example(self, match: Callable[[str], Any], entry: Value, pattern: Regex) -> None:
        if entry.complete and pattern is not _NEVER and not match(entry.at("example")):
            self.problems.append(entry["example"].problem("the expression does not match this example"))


def texts(entry: Value, key: str) -> tuple[str, ...]:
    """The one text under a key, or the list of them; none where there is nothing."""
    found = entry.at(key)
    if isinstance(found, list):
        return tuple(item.value for item in found)
    return () if found is None else (found,)
