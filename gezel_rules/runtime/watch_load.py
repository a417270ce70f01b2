"""Reads ``policies/logs/*.yaml`` into a ``LogPolicy``; every problem of every file at once, with its place.

A pattern proves itself: each of its ``matches`` samples must match and hold one of its literals, none of its
``ignores`` samples may.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gezel_rules.errors import BadInput, Problem
from gezel_rules.runtime.watch_check import check_references, check_samples
from gezel_rules.runtime.watch_policy import (
    GPU_VERDICTS,
    Condition,
    Exit,
    Failure,
    Lines,
    LogPolicy,
    Pattern,
    Place,
    Prefix,
    Quote,
    Range,
    Rule,
    range_of,
)
from gezel_rules.runtime.watch_regex import faults
from gezel_rules.shape import FLAG, INTEGER, LIST, MAP, TEXT, fields, items
from gezel_rules.source import Node, did_you_mean, load_yaml

_HEAD = {"policy": TEXT, "version": TEXT, "summary": TEXT}
_SECTIONS = {
    "words": MAP,
    "backends": LIST,
    "strip": LIST,
    "prefixes": LIST,
    "objects": MAP,
    "quotes": LIST,
    "ignored": LIST,
    "patterns": LIST,
    "exits": LIST,
    "groups": MAP,
    "rules": LIST,
    "failures": LIST,
    "settled_by": LIST,
}
_TEXTS = f"{TEXT}|{LIST}"
_PATTERN = {"id": TEXT, "needs": _TEXTS, "match": TEXT, "matches": LIST}
_PATTERN_MORE = {
    "says": TEXT,
    "gpu": TEXT,
    "failure": TEXT,
    "but_not": TEXT,
    "detail": TEXT,
    "backends": LIST,
    "engine": TEXT,
    "levels": LIST,
    "raw": FLAG,
    "fatal": FLAG,
    "until": LIST,
    "ignores": LIST,
    "because": TEXT,
    "evidence": f"{TEXT}|{MAP}",
}
_CONDITION = {"all": LIST, "any": LIST, "none": LIST}
_WORD = re.compile(r"\{\{([a-z0-9-]+)\}\}")
_LEVELS = {"debug": "D", "info": "I", "warning": "W", "error": "E"}
NEVER: re.Pattern[str] = re.compile(r"(?!)")


def load_log_policy(directory: Path) -> LogPolicy:
    """Read the log policy under a policies directory (``directory/logs/*.yaml``).

    Raises BadInput listing every problem of every file with file, line and column.
    """
    paths = sorted(p for p in (directory / "logs").glob("*.yaml") if not p.name.endswith("_test.yaml"))
    if not paths:
        raise BadInput(f"{directory / 'logs'}: no log policy files (expected logs/<name>.yaml)")
    reader = _Reader()
    for path in paths:
        reader.read(path, f"{directory.name}/logs/{path.name}")
    policy = reader.policy()
    if not reader.problems:
        check_references(policy, reader.nodes, reader.problems)
        check_samples(policy, reader.nodes, reader.problems)
    if reader.problems:
        raise BadInput(sorted(reader.problems, key=lambda p: (p.span or ("",))[:3]))
    return policy


class _Reader:
    """Collects the sections of all files, then builds them: words first, since every expression may use them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.sections: dict[str, list[Node]] = {key: [] for key in _SECTIONS}
        self.versions: dict[str, str] = {}
        self.words: dict[str, str] = {}
        self.nodes: dict[str, Node] = {}  # id → the entry it stands in, for messages

    def read(self, path: Path, name: str) -> None:
        """One file's sections; its expressions are built later."""
        try:
            root = load_yaml(path, name)
        except BadInput as error:
            self.problems.extend(error.problems)
            return
        got = fields(root, "a log policy file", self.problems, _HEAD, _SECTIONS)
        for key, node in got.items():
            if key in self.sections:
                self.sections[key].append(node)
        if "policy" in got and got["policy"].value != f"logs/{path.stem}":
            self.problems.append(got["policy"].problem(f"policy must be named after its file: 'logs/{path.stem}'"))
        if "policy" in got and "version" in got:
            self.versions[got["policy"].value] = str(got["version"].value)

    def policy(self) -> LogPolicy:
        """Build everything; what could not be built is left out and among the problems."""
        self._read_words()
        return LogPolicy(
            lines=self._lines(),
            patterns={p.id: p for p in self._each("patterns", self._pattern)},
            exits=tuple(self._each("exits", self._exit)),
            groups={k: self._ids(v) for m in self.sections["groups"] for k, v in m.value.items() if self._own(k, v)},
            rules=tuple(self._each("rules", self._rule)),
            failures=tuple(self._each("failures", self._failure)),
            backends=frozenset(b for node in self.sections["backends"] for b in self._ids(node)),
            settled_by=frozenset(i for node in self.sections["settled_by"] for i in self._ids(node)),
            versions=self.versions,
        )

    def _each(self, section: str, build: Callable[[Node], Any]) -> list[Any]:
        entries = [e for node in self.sections[section] for e in items(node, section, MAP, self.problems)]
        return [built for built in (build(entry) for entry in entries) if built is not None]

    def _own(self, name: str, node: Node) -> bool:
        """Claim an id; patterns, exits, groups, rules and failures share one space so that a report is unambiguous."""
        if (first := self.nodes.get(name)) is not None:
            where = f"{first.text.name}:{first.line}"
            self.problems.append((node.key or node).problem(f"id '{name}' is already used at {where}"))
            return False
        self.nodes[name] = node
        return True

    def _read_words(self) -> None:
        for section in self.sections["words"]:
            for name, node in section.value.items():
                if name in self.words:
                    self.problems.append(node.problem(f"word '{name}' is already defined"))
                self.words[name] = str(node.value)

    def _ids(self, node: Node) -> tuple[str, ...]:
        return tuple(str(child.value) for child in items(node, "a list of ids", TEXT, self.problems))

    def _texts(self, node: Node | None) -> tuple[str, ...]:
        if node is None:
            return ()
        return (node.value,) if isinstance(node.value, str) else self._ids(node)

    def regex(self, node: Node | None) -> re.Pattern[str]:
        """A compiled expression, its words filled in; a faulty one is among the problems and matches nothing."""
        if node is None:
            return NEVER
        raw = str(node.value)
        if missing := [w for w in _WORD.findall(raw) if w not in self.words]:
            hint = did_you_mean(missing[0], self.words)
            self.problems.append(node.problem_within(f"unknown word '{missing[0]}'{hint}", raw.index(missing[0])))
            return NEVER
        full = _WORD.sub(lambda m: f"(?:{self.words[m[1]]})", raw)
        found = faults(full)
        for message, offset in found:
            at = offset if full == raw else 0
            self.problems.append(node.problem_within(message, min(at, max(0, len(raw) - 1))))
        return NEVER if found else re.compile(full)

    def _lines(self) -> Lines:
        objects = [fields(n, "objects", self.problems, {"text": LIST}, {"level": LIST}) for n in self.sections["objects"]]
        return Lines(
            strip=tuple(self._each("strip", self._bare)),
            prefixes=tuple(self._each("prefixes", self._prefix)),
            texts=tuple(k for got in objects if "text" in got for k in self._ids(got["text"])),
            levels=tuple(k for got in objects if "level" in got for k in self._ids(got["level"])),
            quotes=tuple(self._each("quotes", self._quote)),
            ignored=tuple(self._each("ignored", self._bare)),
        )

    def _bare(self, node: Node) -> re.Pattern[str] | None:
        got = fields(node, "an entry", self.problems, {"match": TEXT, "example": TEXT}, {"id": TEXT, "says": TEXT})
        pattern = self.regex(got.get("match"))
        self._example(pattern.search, got)
        return pattern

    def _prefix(self, node: Node) -> Prefix | None:
        got = fields(node, "a prefix", self.problems, {"id": TEXT, "match": TEXT, "example": TEXT}, {"stamp": FLAG, "says": TEXT})
        pattern = self.regex(got.get("match"))
        self._example(pattern.match, got)
        return Prefix(got["id"].value, pattern, bool("stamp" in got and got["stamp"].value)) if "id" in got else None

    def _example(self, match: Callable[[str], Any], got: Mapping[str, Node]) -> None:
        if {"match", "example"} <= got.keys() and not match(got["example"].value):
            self.problems.append(got["example"].problem("the expression does not match this example"))

    def _quote(self, node: Node) -> Quote | None:
        kinds = {"id": TEXT, "needs": _TEXTS, "opens": TEXT, "closes": TEXT, "lines": INTEGER, "example": TEXT}
        got = fields(node, "a quote", self.problems, kinds, {"says": TEXT})
        opens, closes = self.regex(got.get("opens")), self.regex(got.get("closes"))
        self._example(opens.search, {k: got[k] for k in ("match", "example") if k in got})
        if len(got) < len(kinds):
            return None
        return Quote(got["id"].value, self._texts(got["needs"]), opens, closes, int(got["lines"].value))

    def _pattern(self, node: Node) -> Pattern | None:
        got = fields(node, "a pattern", self.problems, _PATTERN, _PATTERN_MORE)
        if "id" not in got or not self._own(got["id"].value, node) or _PATTERN.keys() - got.keys():
            return None
        self._known(got.get("gpu"), GPU_VERDICTS, "verdict")
        return Pattern(
            id=got["id"].value,
            needs=self._literals(got["needs"]),
            match=self.regex(got["match"]),
            but_not=self.regex(got["but_not"]) if "but_not" in got else None,
            gpu=got["gpu"].value if "gpu" in got else None,
            failure=got["failure"].value if "failure" in got else None,
            detail=got["detail"].value if "detail" in got else None,
            backends=frozenset(self._texts(got.get("backends"))),
            engine=self._range(got.get("engine")),
            levels="".join(self._level(n) for n in items(got["levels"], "levels", TEXT, self.problems)) if "levels" in got else "",
            raw=bool("raw" in got and got["raw"].value),
            fatal=bool(got["fatal"].value) if "fatal" in got else None,
            until=frozenset(self._texts(got.get("until"))),
            place=Place(node.text.name, node.line),
        )

    def _literals(self, node: Node) -> tuple[str, ...]:
        found = self._texts(node)
        if not found or any(len(text) < 4 for text in found):
            self.problems.append(node.problem("'needs' wants literals of at least four characters: they are looked for first"))
        if any(not text.isascii() or '"' in text or "\\" in text for text in found):
            self.problems.append(node.problem("a literal may hold no quotes or backslashes: JSON logs write them otherwise"))
        return found

    def _range(self, node: Node | None) -> Range | None:
        if node is None:
            return None
        found = range_of(str(node.value))
        if found is None:
            self.problems.append(node.problem("engine must be a range such as '>=0.4', '<b5400' or '>=b4000, <0.1.0'"))
        return found

    def _level(self, node: Node) -> str:
        self._known(node, tuple(_LEVELS), "level")
        return _LEVELS.get(node.value, "")

    def _known(self, node: Node | None, known: tuple[str, ...], what: str) -> None:
        if node is not None and node.value not in known:
            self.problems.append(node.problem(f"unknown {what} '{node.value}'{did_you_mean(str(node.value), known)}"))

    def _exit(self, node: Node) -> Exit | None:
        got = fields(node, "an exit", self.problems, {"id": TEXT, "status": LIST}, {"failure": TEXT, "because": TEXT})
        if len(got.keys() & {"id", "status"}) < 2 or not self._own(got["id"].value, node):
            return None
        statuses = frozenset(int(n.value) for n in items(got["status"], "status", INTEGER, self.problems))
        return Exit(got["id"].value, statuses, got["failure"].value if "failure" in got else None, Place(node.text.name, node.line))

    def _rule(self, node: Node) -> Rule | None:
        more = {**_CONDITION, "detail": TEXT, "because": TEXT}
        got = fields(node, "a rule", self.problems, {"id": TEXT, "gpu": TEXT}, more)
        if "id" not in got or "gpu" not in got or not self._own(got["id"].value, node):
            return None
        self._known(got["gpu"], GPU_VERDICTS, "verdict")
        detail = got["detail"].value if "detail" in got else None
        return Rule(got["id"].value, got["gpu"].value, self._condition(got), detail, Place(node.text.name, node.line))

    def _failure(self, node: Node) -> Failure | None:
        need = {"id": TEXT, "says": TEXT, "advice": TEXT}
        got = fields(node, "a failure class", self.problems, need, {**_CONDITION, "fatal": FLAG, "because": TEXT})
        if need.keys() - got.keys() or not self._own(got["id"].value, node):
            return None
        condition = self._condition(got) if got.keys() & _CONDITION.keys() else None
        fatal = bool(got["fatal"].value) if "fatal" in got else True
        says, advice = got["says"].value.strip(), " ".join(got["advice"].value.split())
        return Failure(got["id"].value, says, advice, fatal, condition, Place(node.text.name, node.line))

    def _condition(self, got: Mapping[str, Node]) -> Condition:
        return Condition(*(tuple(self._parts(got.get(key))) for key in ("all", "any", "none")))

    def _parts(self, node: Node | None) -> list[Any]:
        if node is None:
            return []
        kinds = items(node, "a condition", f"{TEXT}|{MAP}", self.problems)
        return [child.value if isinstance(child.value, str) else self._nested(child) for child in kinds]

    def _nested(self, node: Node) -> Any:
        got = fields(node, "a condition", self.problems, {}, {**_CONDITION, "backend": TEXT})
        return ("backend", got["backend"].value) if "backend" in got else self._condition(got)
