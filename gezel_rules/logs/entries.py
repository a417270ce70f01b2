"""Reading the parts of a log policy file: expressions with their words filled in, ids, lists, prefixes, quotations.

Problems are collected, never raised; what is faulty becomes something that matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.documents.shape import FLAG, INTEGER, LIST, MAP, TEXT, fields, items
from gezel_rules.errors import Problem
from gezel_rules.logs.bounded_regex import faults
from gezel_rules.logs.model import Lines, Prefix, Quote, Range, Regex, range_of

TEXTS = f"{TEXT}|{LIST}"
LEVELS = {"debug": "D", "info": "I", "warning": "W", "error": "E"}
SHORTEST = 4  # characters of a literal: shorter ones stand in every other line
_EXAMPLE = {"match": TEXT, "example": TEXT}
_WORD = re.compile(r"\{\{([a-z0-9-]+)\}\}")
_NEVER = Regex(r"(?!)")


class Entries:
    """The sections of all files, the words their expressions use, and what is wrong with them so far."""

    def __init__(self, sections: Mapping[str, str]) -> None:
        self.problems: list[Problem] = []
        self.sections: dict[str, list[Node]] = {key: [] for key in sections}
        self.words: dict[str, str] = {}
        self.nodes: dict[str, Node] = {}  # id → the entry it stands in, for messages

    def each(self, section: str, build: Callable[[Node], Any]) -> list[Any]:
        """Everything of a section, over all files, that could be built."""
        entries = [e for node in self.sections[section] for e in items(node, section, MAP, self.problems)]
        return [built for built in (build(entry) for entry in entries) if built is not None]

    def read_words(self) -> None:
        """Learn the named pieces of expressions."""
        for section in self.sections["words"]:
            for name, node in section.value.items():
                if name in self.words:
                    self.problems.append((node.key or node).problem(f"word '{name}' is already defined"))
                self.words[name] = str(node.value)

    def own(self, name: str, node: Node) -> bool:
        """Claim an id; all kinds of entries share one space, so that a report names one thing."""
        if (first := self.nodes.get(name)) is not None:
            where = f"{first.text.name}:{first.line}"
            self.problems.append((node.key or node).problem(f"id '{name}' is already used at {where}"))
            return False
        self.nodes[name] = node
        return True

    def ids(self, node: Node) -> tuple[str, ...]:
        """The texts of a list."""
        return tuple(str(child.value) for child in items(node, "a list of ids", TEXT, self.problems))

    def texts(self, node: Node | None) -> tuple[str, ...]:
        """One text or a list of them."""
        if node is None:
            return ()
        return (node.value,) if isinstance(node.value, str) else self.ids(node)

    def known(self, node: Node | None, known: tuple[str, ...], what: str) -> None:
        """Complain about a word that is not among the known ones."""
        if node is not None and node.value not in known:
            hint = did_you_mean(str(node.value), known)
            self.problems.append(node.problem(f"unknown {what} '{node.value}'{hint}"))

    def regex(self, node: Node | None) -> Regex:
        """An expression, its words filled in."""
        if node is None:
            return _NEVER
        raw = str(node.value)
        missing = next((word for word in _WORD.findall(raw) if word not in self.words), None)
        if missing is not None:
            hint = did_you_mean(missing, self.words)
            self.problems.append(node.problem_within(f"unknown word '{missing}'{hint}", raw.index(missing)))
            return _NEVER
        full = _WORD.sub(lambda match: f"(?:{self.words[match[1]]})", raw)
        found = faults(full)
        for message, offset in found:
            at = min(offset, max(0, len(raw) - 1)) if full == raw else 0
            self.problems.append(node.problem_within(message, at))
        return _NEVER if found else Regex(full)

    def literals(self, node: Node) -> tuple[str, ...]:
        """The texts one of which stands in every line a pattern matches."""
        found = self.texts(node)
        if not found or any(len(text) < SHORTEST for text in found):
            said = f"'needs' wants literals of at least {SHORTEST} characters: they are looked for first"
            self.problems.append(node.problem(said))
        if any(not text.isascii() or '"' in text or "\\" in text for text in found):
            said = "a literal may hold no double quotes, backslashes or non-ASCII: JSON logs write them otherwise"
            self.problems.append(node.problem(said))
        return found

    def range(self, node: Node | None) -> Range | None:
        """Engine versions, such as ``>=0.4``."""
        found = range_of(str(node.value)) if node is not None else None
        if node is not None and found is None:
            said = "engine must be a range such as '>=0.4', '<b5400' or '>=b4000, <0.1.0'"
            self.problems.append(node.problem(said))
        return found

    def levels(self, node: Node | None) -> str:
        """Letters of the levels named in a list."""
        found = items(node, "levels", TEXT, self.problems) if node is not None else []
        for child in found:
            self.known(child, tuple(LEVELS), "level")
        return "".join(LEVELS.get(child.value, "") for child in found)

    def lines(self) -> Lines:
        """How lines are unwrapped."""
        kinds, more = {"text": LIST}, {"level": LIST}
        objects = [fields(node, "objects", self.problems, kinds, more) for node in self.sections["objects"]]
        return Lines(
            strip=tuple(self.each("strip", self._bare)),
            prefixes=tuple(self.each("prefixes", self._prefix)),
            texts=tuple(key for got in objects if "text" in got for key in self.ids(got["text"])),
            levels=tuple(key for got in objects if "level" in got for key in self.ids(got["level"])),
            quotes=tuple(self.each("quotes", self._quote)),
            ignored=tuple(self.each("ignored", self._bare)),
        )

    def _bare(self, node: Node) -> Regex:
        got = fields(node, "an entry", self.problems, {"id": TEXT, **_EXAMPLE}, {"says": TEXT})
        pattern = self.regex(got.get("match"))
        self._example(pattern.search, got)
        return pattern

    def _prefix(self, node: Node) -> Prefix | None:
        got = fields(node, "a prefix", self.problems, {"id": TEXT, **_EXAMPLE}, {"stamp": FLAG, "says": TEXT})
        pattern = self.regex(got.get("match"))
        self._example(pattern.match, got)
        stamp = "stamp" in got and bool(got["stamp"].value)
        return Prefix(got["id"].value, pattern, stamp) if "id" in got else None

    def _quote(self, node: Node) -> Quote | None:
        kinds = {"id": TEXT, "needs": TEXTS, "opens": TEXT, "then": TEXT, "lines": INTEGER, "example": TEXT}
        got = fields(node, "a quotation", self.problems, kinds, {"says": TEXT, "closes": TEXT})
        opens, then = self.regex(got.get("opens")), self.regex(got.get("then"))
        closes = self.regex(got["closes"]) if "closes" in got else None
        if kinds.keys() - got.keys():
            return None
        self._example(opens.search, {"match": got["opens"], "example": got["example"]})
        return Quote(got["id"].value, self.literals(got["needs"]), opens, closes, then, int(got["lines"].value))

    def _example(self, match: Callable[[str], Any], got: Mapping[str, Node]) -> None:
        if got.keys() >= _EXAMPLE.keys() and not match(got["example"].value):
            self.problems.append(got["example"].problem("the expression does not match this example"))
