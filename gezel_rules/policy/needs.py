"""A set held against what the program reads of it, so that one without it is refused at load and not in the middle."""

from __future__ import annotations

from collections.abc import Collection, Sized

from gezel_rules.documents.kinds import LIST, MAP, fits, kind_of
from gezel_rules.documents.node import Node
from gezel_rules.errors import Problem
from gezel_rules.policy.cells import Column
from gezel_rules.policy.language import Needs, TableNeed
from gezel_rules.policy.load import Drafts
from gezel_rules.policy.tables import TableDraft


def absent(drafts: Drafts, needs: Needs, directory: str) -> list[Problem]:
    """The decisions and tables that are not there at all; they have no place, only a directory they should be in."""
    decisions = [name for name in needs.decisions if name not in drafts.decisions]
    tables = [name for name in needs.tables if name not in drafts.tables]
    return [
        *(Problem(f"{directory}: no decision '{name}', which every plan needs", misses=name) for name in decisions),
        *(Problem(f"{directory}: no table '{name}', which this program reads", misses=name) for name in tables),
    ]


def is_part(lacking: Sized, needs: Needs) -> bool:
    """Whether so much is lacking that this was never meant to be a whole set."""
    return 2 * len(lacking) > len(needs.decisions) + len(needs.tables)


def unlike(drafts: Drafts, needs: Needs, at_fault: Collection[str] = ()) -> list[Problem]:
    """The tables that are there, but without a row or column the program reads, or of another kind; of those
    ``at_fault`` enough is said."""
    problems: list[Problem] = []
    for name, need in needs.tables.items():
        if name in drafts.tables and name not in at_fault:
            _check_table(name, drafts.tables[name], need, problems)
    return problems


def _check_table(name: str, table: TableDraft, need: TableNeed, problems: list[Problem]) -> None:
    key, body = table.node.key or table.node, table.body
    kind = LIST if need.listed else MAP
    if not fits(kind, body.value):
        problems.append(key.problem(f"table '{name}' must be a {kind}, not a {kind_of(body.value)}"))
        return
    for row in need.rows:
        if row not in body.value:
            problems.append(key.problem(f"table '{name}' has no row '{row}', which this program reads"))
    declared = table.declared
    if need.record is not None:
        columns = declared.columns if declared else {}
        for field, annotation in _annotations(need.record).items():
            _check_column(name, key, f"column '{field}'", columns.get(field), annotation, problems)
    elif need.of:
        of = declared.of if declared else None
        _check_column(name, key, "'of'", of, need.of, problems)
        if need.groups and of is not None:
            _check_patterns(name, key, body, of, need.groups, problems)


def _check_patterns(
    name: str, key: Node, body: Node, of: Column, groups: Collection[str], problems: list[Problem]
) -> None:
    from gezel_rules.regex import faults

    if of.kind != "pattern":
        problems.append(key.problem(f"'of' of '{name}' must be of the kind pattern, not {of.kind}"))
        return
    for cell in body.value.values() if isinstance(body.value, dict) else body.value:
        problems.extend(cell.problem_within(message, offset) for message, offset in faults(cell.value, groups))


def _annotations(record: type) -> dict[str, str]:
    """The fields of a record with their annotations, as written."""
    return dict(record.__annotations__)


def _check_column(
    table: str, key: Node, what: str, column: Column | None, annotation: str, problems: list[Problem]
) -> None:
    if column is None:
        said = f"table '{table}' must declare {what} ({_said(annotation)}): this program reads it"
        problems.append(key.problem(said))
    elif annotation != "Any" and annotation_of(column) not in _ACCEPTED.get(annotation, (annotation,)):
        said = f"{column.said}{' or none' if column.optional else ''}"
        problems.append(key.problem(f"{what} of '{table}' must be {_said(annotation)}, not {said}"))


_ACCEPTED = {"float": ("float", "int"), "float | None": ("float | None", "int | None", "float", "int"),
             "int | None": ("int | None", "int"), "str | None": ("str | None", "str")}  # fmt: skip
"""Annotations that a field takes beside its own: a whole number is a number, and what is always there may be."""
_SAID = {"bool": "true or false", "int": "whole number", "float": "number", "str": "text", "Any": "any"}
_ANNOTATIONS = {"flag": "bool", "integer": "int", "number": "float", "any": "Any"}


def annotation_of(column: Column) -> str:
    """How Python annotates what a column holds, in a record."""
    if column.kind == "list":
        found = f"tuple[{annotation_of(column.of)}, ...]" if column.of else "tuple[Any, ...]"
    else:
        found = _ANNOTATIONS.get(column.kind, "str")
    return f"{found} | None" if column.optional and found != "Any" else found


def _said(annotation: str) -> str:
    """An annotation in the words of messages."""
    kind = annotation.removesuffix(" | None")
    if kind.startswith("tuple["):
        said = f"list of {_said(kind.removeprefix('tuple[').removesuffix(', ...]'))}"
    else:
        said = _SAID[kind]
    return f"{said} or none" if kind != annotation else said
