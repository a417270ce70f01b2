"""Rows of tables as records: what code reads has names that a type checker knows, and one place that says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

R = TypeVar("R", bound=tuple[Any, ...])
"""A named tuple whose fields are columns: cells of a list become a tuple, a column that was left out is None."""


class Rows(Mapping[str, R]):
    """The rows of a table by name, each made a record when it is first asked for."""

    __slots__ = ("_made", "_record", "_rows")

    def __init__(self, rows: Mapping[str, Mapping[str, Any]], record: type[R]) -> None:
        self._rows, self._record = rows, record
        self._made: dict[str, R] = {}

    def __getitem__(self, name: str) -> R:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = as_record(self._rows[name], self._record)
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows


def as_record(row: Mapping[str, Any], record: type[R]) -> R:
    """A row as a record; columns that the record does not know are left out."""
    fields: tuple[str, ...] = record._fields  # type: ignore[attr-defined]
    return record(*[_frozen(row.get(field)) for field in fields])


def _frozen(cell: Any) -> Any:
    return tuple(map(_frozen, cell)) if isinstance(cell, list) else cell
