"""What the program itself reads of a policy set, so that a set without it is refused at load and not in the middle.

Rules are free to come and go; the decisions a plan is made of and the tables that code looks things up in are not.
"""

from __future__ import annotations

from collections.abc import Mapping

from gezel_rules.documents.shape import INTEGER, LIST, MAP, NUMBER, fits, kind_of
from gezel_rules.documents.source import Node
from gezel_rules.errors import Problem
from gezel_rules.policy.cells import KINDS
from gezel_rules.policy.load import Drafts
from gezel_rules.policy.tables import Declared, TableDraft
from gezel_rules.record import NamedTuple


class TableNeed(NamedTuple):
    """``kind``: list or mapping; ``rows`` that must be there; ``columns`` that every row has, each of a kind."""

    kind: str = MAP
    rows: tuple[str, ...] = ()
    columns: Mapping[str, str] = {}


class Needs(NamedTuple):
    """All of it: tables by name, and decisions."""

    tables: Mapping[str, TableNeed]
    decisions: tuple[str, ...]


def absent(drafts: Drafts, needs: Needs, directory: str) -> list[Problem]:
    """The decisions and tables that are not there at all; they have no place, only a directory they should be in."""
    decisions = [name for name in needs.decisions if name not in drafts.decisions]
    tables = [name for name in needs.tables if name not in drafts.tables]
    return [
        *(Problem(f"{directory}: no decision '{name}', which every plan needs") for name in decisions),
        *(Problem(f"{directory}: no table '{name}', which this program reads") for name in tables),
    ]


def unlike(drafts: Drafts, needs: Needs) -> list[Problem]:
    """The tables that are there, but without a row or column the program reads, or of another kind."""
    problems: list[Problem] = []
    for name, need in needs.tables.items():
        if name in drafts.tables:
            _check_table(name, drafts.tables[name], need, problems)
    return problems


def _check_table(name: str, table: TableDraft, need: TableNeed, problems: list[Problem]) -> None:
    key, body = table.node.key or table.node, table.body
    if not fits(need.kind, body.value):
        problems.append(key.problem(f"table '{name}' must be a {need.kind}, not a {kind_of(body.value)}"))
        return
    for row in need.rows:
        if row not in body.value:
            problems.append(key.problem(f"table '{name}' has no row '{row}', which this program reads"))
    if table.declared is not None:
        _check_columns(name, key, table.declared, need.columns, problems)
        return
    rows = body.value if need.kind == LIST else body.value.values()
    for row_node in rows if need.columns else ():
        _check_row(name, row_node, need.columns, problems)


def _check_columns(
    name: str, key: Node, declared: Declared, columns: Mapping[str, str], problems: list[Problem]
) -> None:
    """A declared table's rows are held against its columns already: only the columns themselves are asked for."""
    for column, kind in columns.items():
        said = kind.replace("|", " or ")
        found = declared.columns.get(column)
        if found is None or found.optional:
            problems.append(key.problem(f"table '{name}' needs a column '{column}' ({said}) in every row"))
        elif not set(KINDS[found.kind].split("|")) <= {*kind.split("|"), *((INTEGER,) if NUMBER in kind else ())}:
            problems.append(key.problem(f"column '{column}' of '{name}' must be {said}, not {found.said}"))


def _check_row(name: str, row: Node, columns: Mapping[str, str], problems: list[Problem]) -> None:
    for column, kind in columns.items():
        said = kind.replace("|", " or ")
        cell = row.value.get(column) if isinstance(row.value, dict) else None
        if cell is None:
            problems.append((row.key or row).problem(f"a row of '{name}' needs '{column}' ({said})"))
        elif not fits(kind, cell.value):
            problems.append(cell.problem(f"'{column}' of '{name}' must be {said}, not {kind_of(cell.value)}"))
