"""Reads ``policies/logs/*.yaml`` into a ``LogPolicy``; every problem of every file at once, with its place.

A pattern proves itself: each of its ``matches`` samples must match and hold one of its literals, none of its
``ignores`` samples may.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gezel_rules.documents.read import Value, read
from gezel_rules.documents.source import Node, load_yaml
from gezel_rules.errors import BadInput, Problem
from gezel_rules.logs.check import check_references, check_samples
from gezel_rules.logs.entries import Entries, texts
from gezel_rules.logs.file import CONDITION, LEVELS, LOG_POLICY, SECTIONS
from gezel_rules.logs.model import Condition, Exit, Failure, LogPolicy, Pattern, Place, Rule


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
        raise BadInput(sorted(reader.problems, key=_order))
    return policy


def _order(problem: Problem) -> tuple[str, int, int]:
    return problem.span[:3] if problem.span else ("", 0, 0)


class _Reader(Entries):
    """Collects the sections of all files, then builds them: words first, since every expression may use them."""

    def __init__(self) -> None:
        super().__init__(SECTIONS)
        self.versions: dict[str, str] = {}

    def read(self, path: Path, name: str) -> None:
        """One file's sections; its expressions are built later."""
        try:
            root = load_yaml(path, name)
        except BadInput as error:
            self.problems.extend(error.problems)
            return
        file = read(root, LOG_POLICY, self.problems)
        for key in file.value.keys() & self.sections.keys():
            self.sections[key].append(file[key])
        if "policy" in file and file.at("policy") != f"logs/{path.stem}":
            self.problems.append(file["policy"].problem(f"policy must be named after its file: 'logs/{path.stem}'"))
        if "policy" in file and "version" in file:
            self.versions[file.at("policy")] = file.at("version")

    def policy(self) -> LogPolicy:
        """Build everything; what could not be built is left out and among the problems."""
        self.read_words()
        return LogPolicy(
            lines=self.lines(),
            patterns={pattern.id: pattern for pattern in self.each("patterns", self._pattern)},
            exits=tuple(self.each("exits", self._exit)),
            groups=self._groups(),
            rules=tuple(self.each("rules", self._rule)),
            failures=tuple(self.each("failures", self._failure)),
            backends=self._names("backends"),
            without_gpu=self._names("without_gpu"),
            settled_by=self._names("settled_by"),
            versions=self.versions,
        )

    def _names(self, section: str) -> frozenset[str]:
        for found in self.sections[section]:
            self.nodes[section] = found.node
        return frozenset(name.value for found in self.sections[section] for name in found.value)

    def _groups(self) -> dict[str, tuple[str, ...]]:
        found = [(name, group) for section in self.sections["groups"] for name, group in section.value.items()]
        return {name: tuple(part.value for part in group.value) for name, group in found if self.own(name, group.node)}

    def _owned(self, entry: Value) -> bool:
        """Whether an entry is complete and its id its own."""
        return "id" in entry and self.own(entry.at("id"), entry.node) and entry.complete

    def _pattern(self, entry: Value) -> Pattern | None:
        if not self._owned(entry):
            return None
        return Pattern(
            id=entry.at("id"),
            needs=texts(entry, "needs"),
            match=self.regex(entry, "match"),
            but_not=self.regex(entry, "but_not") if "but_not" in entry else None,
            gpu=entry.at("gpu"),
            failure=entry.at("failure"),
            detail=entry.at("detail"),
            backends=frozenset(texts(entry, "backends")),
            engine=entry.at("engine"),
            levels="".join(LEVELS[level] for level in texts(entry, "levels")),
            raw=bool(entry.at("raw")),
            fatal=entry.at("fatal"),
            until=frozenset(texts(entry, "until")),
            place=_place(entry.node),
        )

    def _exit(self, entry: Value) -> Exit | None:
        if not self._owned(entry):
            return None
        statuses = frozenset(status.value for status in entry.at("status"))
        return Exit(entry.at("id"), statuses, entry.at("failure"), _place(entry.node))

    def _rule(self, entry: Value) -> Rule | None:
        if not self._owned(entry):
            return None
        return Rule(
            id=entry.at("id"),
            gpu=entry.at("gpu"),
            condition=_condition(entry),
            detail=entry.at("detail"),
            advice=entry.at("advice"),
            place=_place(entry.node),
        )

    def _failure(self, entry: Value) -> Failure | None:
        if not self._owned(entry):
            return None
        return Failure(
            id=entry.at("id"),
            says=" ".join(entry.at("says").split()),
            advice=" ".join(entry.at("advice").split()),
            fatal=entry.at("fatal"),
            condition=_condition(entry) if any(key in entry for key in CONDITION) else None,
            place=_place(entry.node),
        )


def _condition(entry: Value) -> Condition:
    return Condition(*(tuple(map(_part, entry.at(key) or ())) for key in CONDITION))


def _part(part: Value) -> Any:
    if isinstance(part.value, str):
        return part.value
    return ("backend", part.at("backend")) if "backend" in part else _condition(part)


def _place(node: Node) -> Place:
    return Place(node.text.name, node.line)
