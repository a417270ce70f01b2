"""Log policies read into one ``LogPolicy``; every problem of every file at once, with its place.

A pattern proves itself: each of its ``matches`` samples must match and hold one of its literals, none of its
``ignores`` samples may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.documents.read import Value, read
from gezel_rules.errors import BadInput
from gezel_rules.logs.check import check_references, check_samples
from gezel_rules.logs.entries import Entries, texts
from gezel_rules.logs.file import CONDITION, LEVELS, LOG_POLICY, SECTIONS
from gezel_rules.logs.model import Condition, Exit, Failure, LogPolicy, Pattern, Place, Rule

if TYPE_CHECKING:
    from gezel_rules.policy.sources import Source


def read_logs(sources: Sequence[Source], gpu_backends: Mapping[str, bool], whole: bool = True) -> LogPolicy:
    """The log policy of files as read; ``gpu_backends``: the rows of ``backends``, each with whether it has a GPU;
    ``whole``: whether these are all files, so that samples can be tried on them.

    A family's own files come before those for every family. Raises BadInput listing every problem with its place.
    """
    reader = _Reader(gpu_backends)
    for source in sorted(sources, key=lambda source: not source.engine):
        reader.read(source)
    policy = reader.policy()
    if not reader.problems:
        check_references(policy, reader.nodes, reader.problems)
        if whole and not reader.problems:
            check_samples(policy, reader.nodes, reader.word_nodes, reader.problems)
    if reader.problems:
        raise BadInput(sorted(reader.problems, key=attrgetter("place")))
    return policy


class _Reader(Entries):
    """Collects the sections of all files, then builds them: words first, since every expression may use them."""

    def __init__(self, gpu_backends: Mapping[str, bool]) -> None:
        super().__init__(SECTIONS)
        self.gpu_backends = gpu_backends
        self.versions: dict[str, str] = {}

    def read(self, source: Source) -> None:
        """One file's sections; its expressions are built later."""
        file = read(source.root, LOG_POLICY, self.problems)
        for key in file.value.keys() & self.sections.keys():
            self.sections[key].append(file[key])
        if "policy" in file and file.at("policy") != source.policy:
            self.problems.append(file["policy"].problem(f"policy must be named after its file: '{source.policy}'"))
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
            failures=self._failures(),
            backends=self._other_backends() | frozenset(self.gpu_backends),
            without_gpu=self._names("without_gpu") | {name for name, gpu in self.gpu_backends.items() if not gpu},
            settled_by=self._names("settled_by"),
            versions=self.versions,
        )

    def _names(self, section: str) -> frozenset[str]:
        for found in self.sections[section]:
            self.nodes[section] = found.node
        return frozenset(name.value for found in self.sections[section] for name in found.value)

    def _other_backends(self) -> frozenset[str]:
        """Backends that logs speak of and no build here computes on; those that one does are rows of a table."""
        for name in (name for found in self.sections["backends"] for name in found.value):
            if name.value in self.gpu_backends:
                self.problems.append(name.problem(f"'{name.value}' is a row of the table 'backends' already"))
        return self._names("backends")

    def _failures(self) -> tuple[Failure, ...]:
        """The classes in the order they are tried: an entry that is an id alone gives its place to that class."""
        entries = self.each("failures", self._failure)
        classes = {entry.id: entry for entry in entries if isinstance(entry, Failure)}
        mentioned = {entry.value for entry in entries if isinstance(entry, Value)}
        for entry in entries:
            if isinstance(entry, Value) and entry.value not in classes:
                said = f"no failure class '{entry.value}' to stand here{did_you_mean(entry.value, classes)}"
                self.problems.append(entry.problem(said)._replace(misses=entry.value))
        order = [entry.value if isinstance(entry, Value) else entry.id for entry in entries
                 if isinstance(entry, Value) or entry.id not in mentioned]  # fmt: skip
        return tuple(classes[name] for name in dict.fromkeys(order) if name in classes)

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
            but_not=self.optional_regex(entry, "but_not"),
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

    def _failure(self, entry: Value) -> Failure | Value | None:
        """A class, or the id of one that is written elsewhere."""
        if entry.value.keys() == {"id"} and entry.complete:
            return entry["id"]
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
