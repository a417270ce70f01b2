"""What one cell of a table may hold, as its column declares it: kind, words, bounds; and its type in expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gezel_rules.documents.kinds import FLAG, INTEGER, LIST, NUMBER, TEXT, fits, not_what
from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.errors import Problem
from gezel_rules.lang.types import Type
from gezel_rules.record import NamedTuple

KINDS = {
    "text": TEXT, "flag": FLAG, "integer": INTEGER, "number": NUMBER, "pattern": TEXT, "list": LIST, "table": TEXT,
    "any": f"{TEXT}|{INTEGER}|{NUMBER}|{FLAG}",
}  # fmt: skip
"""Kinds of columns, as shapes of YAML. ``pattern`` is a regular expression; ``table`` the name of a table; ``any`` a
single value of whatever kind."""


class Column(NamedTuple):
    """What a column holds: ``kind`` and ``unit``; the ``words`` a text may be, or the node that names the table whose
    rows they are (``rows_of``); whether a row may go without it (``optional``), or what then stands there
    (``default``); the least and the most a number may be; ``of``: what a list holds."""

    kind: str
    says: str = ""
    unit: str = ""
    words: tuple[str, ...] = ()
    rows_of: Node | None = None
    optional: bool = False
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    of: Column | None = None

    @property
    def said(self) -> str:
        """The kind in the words of messages."""
        if self.rows_of is not None:
            return f"a row of {self.rows_of.value}"
        if self.words:
            return f"one of {', '.join(self.words)}"
        if self.kind == "list":
            return f"list of {self.of.said}" if self.of else "list"
        return _SAID.get(self.kind) or KINDS[self.kind].replace("|", " or ")


_SAID = {"pattern": "regular expression", "table": "name of a table"}


def check_cell(what: str, cell: Node, column: Column, problems: list[Problem]) -> None:
    """Add what is wrong with a cell to ``problems``; ``what`` names its column and table.

    Whether a row of another table exists is asked later.
    """
    if not fits(KINDS[column.kind], cell.value):
        said = KINDS[column.kind].replace("|", " or ")
        problems.append(cell.problem(f"{what} must be {said}, not {not_what(KINDS[column.kind], cell.value)}"))
    elif column.kind == "list" and column.of is not None:
        for item in cell.value:
            check_cell(what, item, column.of, problems)
    elif column.words and cell.value not in column.words:
        hint = did_you_mean(cell.value, column.words) or f" (known: {', '.join(column.words)})"
        problems.append(cell.problem(f"{what} cannot be '{cell.value}'{hint}"))
    elif column.kind == "pattern":
        _check_pattern(cell, problems)
    elif column.minimum is not None and cell.value < column.minimum:
        problems.append(cell.problem(f"{what} must be at least {column.minimum}, not {cell.value}"))
    elif column.maximum is not None and cell.value > column.maximum:
        problems.append(cell.problem(f"{what} must be at most {column.maximum}, not {cell.value}"))


def _check_pattern(cell: Node, problems: list[Problem]) -> None:
    from gezel_rules.regex import faults

    problems.extend(cell.problem_within(message, offset) for message, offset in faults(cell.value))


def type_of_cell(column: Column, rows_of: Callable[[str], frozenset[str] | None]) -> Type:
    """The type expressions see; ``rows_of`` gives the rows of a table (``None``: there is no such table)."""
    if column.kind == "list":
        return Type("list", optional=column.optional, item=type_of_cell(column.of, rows_of) if column.of else None)
    kind = "text" if KINDS[column.kind] == TEXT else column.kind
    words = frozenset(column.words) if column.words else None
    if column.rows_of is not None:
        words = rows_of(str(column.rows_of.value))
    return Type(kind, column.unit, column.optional, words)
