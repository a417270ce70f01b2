"""Tables and their rows as code reads them: each made when somebody first asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

R = TypeVar("R", bound=tuple[Any, ...])
"""A named tuple whose fields are columns: cells of a list become a tuple, a column that was left out is None."""


class Tables(Mapping[str, Any]):
    """Tables by name, rows with the ``defaults`` of their columns; ``lines`` are the rows as written, in JSON."""

    __slots__ = ("_filled", "_written", "defaults", "lines")

    def __init__(self, lines: Mapping[str, bytes], defaults: Mapping[str, Mapping[str, Any]]) -> None:
        self.lines, self.defaults = lines, defaults
        self._written: dict[str, Any] = {}
        self._filled: dict[str, Any] = {}

    def written(self, name: str) -> Any:
        """The rows as written, without the defaults."""
        found = self._written.get(name)
        if found is None:
            found = self._written[name] = json.loads(self.lines[name])
        return found

    def __getitem__(self, name: str) -> Any:
        found = self._filled.get(name)
        if found is None:
            found = self._filled[name] = _filled(self.written(name), self.defaults.get(name))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, name: object) -> bool:
        return name in self.lines


def _filled(rows: Any, defaults: Mapping[str, Any] | None) -> Any:
    if not defaults:
        return rows
    if isinstance(rows, list):
        return [{**defaults, **row} for row in rows]
    return {name: {**defaults, **row} for name, row in rows.items()}


class Rows(Mapping[str, R]):
    """The rows of a table by name, each made a record when it is first asked for."""

    __slots__ = ("_defaults", "_made", "_record", "_rows")

    def __init__(self, tables: Tables, name: str, record: type[R]) -> None:
        self._rows: Mapping[str, Any] = tables.written(name)
        self._defaults, self._record = tables.defaults.get(name, {}), record
        self._made: dict[str, R] = {}

    def __getitem__(self, name: str) -> R:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = as_record({**self._defaults, **self._rows[name]}, self._record)
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
