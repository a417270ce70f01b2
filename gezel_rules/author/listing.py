"""Everything of one kind that policies are made of, as data: name, type, unit, meaning, source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gezel_rules.author.checks import CHECKS
from gezel_rules.facts.vocabulary import Word, fact_types
from gezel_rules.lang.types import Function, Type
from gezel_rules.logs.load import read_logs
from gezel_rules.logs.model import LogPolicy

if TYPE_CHECKING:
    from gezel_rules.author.show import Index

Entry = dict[str, Any]


def listing(kind: str, index: Index) -> Entry:
    """Everything of a kind, which is one of ``KINDS``. Raises BadInput for log policies that are at fault."""
    return {"kind": kind, kind: KINDS[kind](index)}


def facts(words: Iterable[Word]) -> dict[str, Entry]:
    """The words of a vocabulary, by name, area by area."""
    areas: dict[str, list[Word]] = {}
    for word in words:
        areas.setdefault(word.name.split(".")[0], []).append(word)
    return {word.name: _fact(word) for area in areas.values() for word in area}


def functions(signatures: Mapping[str, Function], shared: Mapping[str, Function], family: str) -> dict[str, Entry]:
    """What expressions may call, by name; what is not ``shared`` by all families is the family's own."""
    return {
        name: {
            "name": name, "takes": [_said(type_) for type_ in function.params], "variadic": function.variadic,
            "gives": _said(function.result), "columns": _columns(function.result), "says": function.says,
            "source": "every engine family" if name in shared else family,
        }
        for name, function in signatures.items()
    }  # fmt: skip


def _fact(word: Word) -> Entry:
    kind = fact_types([word])[word.name]
    return {
        "name": word.name, "type": _in_unit(kind), "unit": word.unit or None, "says": word.says,
        "source": word.source, "values": word.rows_of or None, "unknown": word.unknown, "settle": word.settle or None,
    }  # fmt: skip


def _in_unit(type_: Type) -> str:
    """``whole number in bytes``."""
    return f"{type_} in {type_.unit}" if type_.unit else str(type_)


def _said(type_: Type) -> str:
    """``text (a row of backends)``."""
    return _in_unit(type_) + (f" (a row of {type_.rows_of})" if type_.rows_of else "")


def _columns(type_: Type) -> dict[str, str]:
    return {name: _said(column) for name, column in (type_.fields or {}).items()}


def _facts(index: Index) -> list[Entry]:
    return list(index.facts.values())


def _functions(index: Index) -> list[Entry]:
    return list(index.functions.values())


def _areas(index: Index) -> list[Entry]:
    names = dict.fromkeys(name.split(".")[0] for name in index.facts)
    return [index.area(name) for name in names]


def _tables(index: Index) -> list[Entry]:
    """Tables with what they declare, and how many rows they have."""
    found = [index.find(name) for name in index.drafts.tables]
    return [{**entry, "rows": len(entry["rows"])} for entry in found]


def _logs(index: Index) -> list[Entry]:
    drafts = index.drafts
    return list(_evidence(read_logs(drafts.logs, drafts.gpu_backends))) if drafts.logs else []


def _evidence(policy: LogPolicy) -> Iterator[Entry]:
    """The verdicts and failure classes of log policies, then what they rest on."""
    for rule in policy.rules:
        yield _log("verdict", rule, f"the GPU is {rule.gpu}", rule.advice)
    for failure in policy.failures:
        kind = "failure class" if failure.fatal else "failure class that ends no start"
        yield _log(kind, failure, failure.says, failure.advice)
    for pattern in policy.patterns.values():
        supports = [f"gpu {pattern.gpu}"] if pattern.gpu else []
        supports += [f"failure {pattern.failure}"] if pattern.failure else []
        yield _log("pattern", pattern, f"lines that tell {' and '.join(supports) or 'what other rules ask for'}")
    for each in policy.exits:
        statuses = ", ".join(map(str, sorted(each.statuses)))
        yield _log("exit", each, f"{statuses}: {each.failure or 'it was asked to end'}")


def _log(type_: str, part: Any, says: str, advice: str | None = None) -> Entry:
    source = {"file": part.place.file, "line": part.place.line}
    return {"name": part.id, "type": type_, "unit": None, "says": says, "advice": advice, "source": source}


KINDS: Mapping[str, Callable[[Index], list[Entry]]] = {
    "facts": _facts,
    "functions": _functions,
    "tables": _tables,
    "areas": _areas,
    "logs": _logs,
    "checks": lambda _: [{"name": name, **check._asdict()} for name, check in CHECKS.items()],
}
"""Every kind that can be listed, by the word that asks for it. Settings are an area of facts already."""
