"""Rows of a table that stand one a line between brackets, with their cells below each other where that fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile

from gezel_rules.author.layout.lines import end, is_block, parsed, starts
from gezel_rules.documents.node import Node
from gezel_rules.record import NamedTuple

WIDTH = 120
"""Columns of a line; where a row would take more, all stay as they are written."""


class _Row(NamedTuple):
    """A row's line, counted from 0, up to its brackets (``name``), the cells between them, and what follows."""

    line: int
    name: str
    columns: tuple[str, ...]
    cells: tuple[str, ...]
    after: str


def aligned(text: str) -> str:
    """The text with the rows of its tables aligned."""
    lines = text.split("\n")
    for rows in _tables(parsed(text)):
        found = [_row(row, lines) for row in rows if _on_one_line(row)]
        for group in [found] if _fitting(found) else _runs(rows, lines):
            for row, line in zip(group, _fitting(group), strict=False):
                lines[row.line] = line
    return "\n".join(lines)


def _runs(rows: Sequence[Node], lines: Sequence[str]) -> Iterator[list[_Row]]:
    """Rows of one line that follow each other."""
    for short, run in groupby(rows, _on_one_line):
        if short:
            yield [_row(row, lines) for row in run]


def _tables(root: Node) -> Iterator[list[Node]]:
    """The rows of each table that has some by name."""
    tables = root.value.get("tables") if isinstance(root.value, dict) else None
    for table in tables.value.values() if tables and isinstance(tables.value, dict) else ():
        rows = table.value["rows"] if isinstance(table.value, dict) and "rows" in table.value else table
        if isinstance(rows.value, dict) and is_block(rows):
            yield list(rows.value.values())


def _on_one_line(row: Node) -> bool:
    if not (row.key and row.key.line == row.line and isinstance(row.value, dict) and starts(row) == "{"):
        return False
    return "\n" not in row.text.text[row.start : end(row)]


def _row(row: Node, lines: Sequence[str]) -> _Row:
    raw = row.text.text
    assert row.key is not None  # of a mapping
    cells = [raw[cell.key.start : max(cell.key.end, end(cell))] for cell in row.value.values() if cell.key]
    line = lines[row.line - 1]
    after = line[row.column - 1 + end(row) - row.start :].strip()
    return _Row(row.line - 1, line[: row.column - 1].rstrip(), tuple(row.value), tuple(cells), after)


def _common(rows: Sequence[_Row]) -> int:
    """How many columns, from the first on, all rows have alike."""
    return len(list(takewhile(lambda names: len(set(names)) == 1, zip(*(row.columns for row in rows), strict=False))))


def _fitting(rows: Sequence[_Row]) -> list[str]:
    """Their lines below each other; nothing where that does not fit."""
    common, wide = _common(rows), max((len(row.name) for row in rows), default=0)
    cells = [max(len(row.cells[place]) for row in rows) for place in range(common)]
    found = [_line(row, wide, cells) for row in rows]
    column = max((len(line) for row, line in zip(rows, found, strict=True) if row.after), default=0)
    lines = [f"{line.ljust(column)}  {row.after}" if row.after else line for row, line in zip(rows, found, strict=True)]
    return lines if max(map(len, lines), default=0) <= WIDTH else []


def _line(row: _Row, wide: int, cells: Sequence[int]) -> str:
    parts = [*(f"{cell}," for cell in row.cells[:-1]), *row.cells[-1:]]
    wides = [*(each + 1 for each in cells), *([0] * len(parts))]
    inside = " ".join(part.ljust(wides[place]) for place, part in enumerate(parts)).rstrip()
    return f"{row.name.ljust(wide)} {{{inside}}}"
