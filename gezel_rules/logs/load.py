"""Log policies read into one ``LogPolicy``; every problem of every file at once, with its place.

A pattern proves itself: each of its ``matches`` samples must match and hold one of its literals, none of its
``ignores`` samples may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.documents.shape import FLAG, INTEGER, LIST, MAP, TEXT, fields, items
from gezel_rules.errors import BadInput, Problem
from gezel_rules.logs.check import check_references, check_samples
from gezel_rules.logs.entries import TEXTS, Entries
from gezel_rules.logs.model import GPU_VERDICTS, Condition, Exit, Failure, LogPolicy, Pattern, Place, Rule

if TYPE_CHECKING:
    from gezel_rules.policy.sources import Source

_HEAD = {"policy": TEXT, "version": TEXT, "summary": TEXT}
_SECTIONS = {
    "words": MAP,
    "backends": LIST,
    "without_gpu": LIST,
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
_PATTERN = {"id": TEXT, "needs": TEXTS, "match": TEXT, "matches": LIST}
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
_FAILURE = {"id": TEXT, "says": TEXT, "advice": TEXT}


def read_logs(sources: Sequence[Source], gpu_backends: Mapping[str, bool]) -> LogPolicy:
    """The log policy of files as read; ``gpu_backends``: the rows of ``backends``, each with whether it has a GPU.

    A family's own files come before those for every family. Raises BadInput listing every problem with its place.
    """
    reader = _Reader(_SECTIONS, gpu_backends)
    for source in sorted(sources, key=lambda source: not source.engine):
        reader.read(source)
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

    def __init__(self, sections: Mapping[str, str], gpu_backends: Mapping[str, bool]) -> None:
        super().__init__(sections)
        self.gpu_backends = gpu_backends
        self.versions: dict[str, str] = {}

    def read(self, source: Source) -> None:
        """One file's sections; its expressions are built later."""
        got = fields(source.root, "a log policy file", self.problems, _HEAD, {"engine": TEXT, **_SECTIONS})
        for key in got.keys() & self.sections.keys():
            self.sections[key].append(got[key])
        if "policy" in got and got["policy"].value != source.policy:
            self.problems.append(got["policy"].problem(f"policy must be named after its file: '{source.policy}'"))
        if "policy" in got and "version" in got:
            self.versions[got["policy"].value] = got["version"].value

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
        for node in self.sections[section]:
            self.nodes[section] = node
        return frozenset(name for node in self.sections[section] for name in self.ids(node))

    def _other_backends(self) -> frozenset[str]:
        """Backends that logs speak of and no build here computes on; those that one does are rows of a table."""
        for node in self.sections["backends"]:
            for child in items(node, "a list of ids", TEXT, []):
                if child.value in self.gpu_backends:
                    self.problems.append(child.problem(f"'{child.value}' is a row of the table 'backends' already"))
        return self._names("backends")

    def _failures(self) -> tuple[Failure, ...]:
        """The classes in the order they are tried: an entry that is an id alone gives its place to that class."""
        entries = self.each("failures", self._failure)
        classes = {entry.id: entry for entry in entries if isinstance(entry, Failure)}
        mentioned = {str(entry.value) for entry in entries if isinstance(entry, Node)}
        for entry in entries:
            if isinstance(entry, Node) and entry.value not in classes:
                said = f"no failure class '{entry.value}' to stand here{did_you_mean(str(entry.value), classes)}"
                self.problems.append(entry.problem(said))
        order = [str(entry.value) if isinstance(entry, Node) else entry.id for entry in entries
                 if isinstance(entry, Node) or entry.id not in mentioned]  # fmt: skip
        return tuple(classes[name] for name in dict.fromkeys(order) if name in classes)

    def _groups(self) -> dict[str, tuple[str, ...]]:
        found = [(name, node) for section in self.sections["groups"] for name, node in section.value.items()]
        return {name: self.ids(node) for name, node in found if self.own(name, node)}

    def _pattern(self, node: Node) -> Pattern | None:
        got = fields(node, "a pattern", self.problems, _PATTERN, _PATTERN_MORE)
        if "id" not in got or not self.own(got["id"].value, node) or _PATTERN.keys() - got.keys():
            return None
        self.known(got.get("gpu"), GPU_VERDICTS, "verdict")
        return Pattern(
            id=got["id"].value,
            needs=self.literals(got["needs"]),
            match=self.regex(got["match"]),
            but_not=self.regex(got["but_not"]) if "but_not" in got else None,
            gpu=_value(got, "gpu"),
            failure=_value(got, "failure"),
            detail=_value(got, "detail"),
            backends=frozenset(self.texts(got.get("backends"))),
            engine=self.range(got.get("engine")),
            levels=self.levels(got.get("levels")),
            raw=bool(_value(got, "raw")),
            fatal=_value(got, "fatal"),
            until=frozenset(self.texts(got.get("until"))),
            place=_place(node),
        )

    def _exit(self, node: Node) -> Exit | None:
        got = fields(node, "an exit", self.problems, {"id": TEXT, "status": LIST}, {"failure": TEXT, "because": TEXT})
        if len(got.keys() & {"id", "status"}) < 2 or not self.own(got["id"].value, node):
            return None
        statuses = frozenset(int(n.value) for n in items(got["status"], "status", INTEGER, self.problems))
        return Exit(got["id"].value, statuses, _value(got, "failure"), _place(node))

    def _rule(self, node: Node) -> Rule | None:
        more = {**_CONDITION, "detail": TEXT, "because": TEXT, "advice": TEXT}
        got = fields(node, "a rule", self.problems, {"id": TEXT, "gpu": TEXT}, more)
        if len(got.keys() & {"id", "gpu"}) < 2 or not self.own(got["id"].value, node):
            return None
        self.known(got["gpu"], GPU_VERDICTS, "verdict")
        return Rule(
            id=got["id"].value,
            gpu=got["gpu"].value,
            condition=self._condition(got),
            detail=_value(got, "detail"),
            advice=_value(got, "advice"),
            place=_place(node),
        )

    def _failure(self, node: Node) -> Failure | Node | None:
        """A class, or the id of one that is written elsewhere."""
        if isinstance(node.value, dict) and node.value.keys() == {"id"}:
            mention: Node = node.value["id"]
            return mention
        more = {**_CONDITION, "fatal": FLAG, "because": TEXT}
        got = fields(node, "a failure class", self.problems, _FAILURE, more)
        if _FAILURE.keys() - got.keys() or not self.own(got["id"].value, node):
            return None
        return Failure(
            id=got["id"].value,
            says=" ".join(got["says"].value.split()),
            advice=" ".join(got["advice"].value.split()),
            fatal=_value(got, "fatal") is not False,
            condition=self._condition(got) if got.keys() & _CONDITION.keys() else None,
            place=_place(node),
        )

    def _condition(self, got: Mapping[str, Node]) -> Condition:
        return Condition(*(tuple(self._parts(got.get(key))) for key in _CONDITION))

    def _parts(self, node: Node | None) -> list[Any]:
        found = items(node, "a condition", f"{TEXT}|{MAP}", self.problems) if node is not None else []
        return [child.value if isinstance(child.value, str) else self._nested(child) for child in found]

    def _nested(self, node: Node) -> Any:
        got = fields(node, "a condition", self.problems, {}, {**_CONDITION, "backend": TEXT})
        return ("backend", got["backend"].value) if "backend" in got else self._condition(got)


def _value(got: Mapping[str, Node], key: str) -> Any:
    return got[key].value if key in got else None


def _place(node: Node) -> Place:
    return Place(node.text.name, node.line)
