"""Declared tables: what a table means, what each of its columns holds, and every row held against that.

    spec_types:
      says: What a speculative type needs.
      columns:
        needs: {words: [nothing, mtp-head], says: what must be there}
        share: {kind: number, default: 1.0, maximum: 1}
      rows:
        draft-mtp: {needs: mtp-head}

A list, or rows of one value each, say under ``of`` what a value is. A table without ``rows`` of its own is plain: the
rows stand there directly, and nothing is known of its columns but what is in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.documents.shape import FLAG, LIST, MAP, NUMBER, TEXT, fields, kind_of
from gezel_rules.errors import Problem
from gezel_rules.policy.cells import KINDS, Column, check_cell
from gezel_rules.record import NamedTuple

MARKS = frozenset(("rows", "columns", "of"))
"""Keys that make a mapping a declared table: no row of a plain one has such a name."""
_TABLE = {"says": TEXT, "rows": f"{MAP}|{LIST}"}
_TABLE_MORE = {"columns": MAP, "of": MAP, "same_rows_as": TEXT}
_BOUNDS = {"unit": TEXT, "minimum": NUMBER, "maximum": NUMBER}
_VALUE = {"says": TEXT, "kind": TEXT, "words": LIST, "rows_of": TEXT, "of": MAP, **_BOUNDS}
_COLUMN = {**_VALUE, "optional": FLAG, "default": "any"}
_ONE_OF = ("kind", "words", "rows_of")


class Declared(NamedTuple):
    """What a table says of itself. ``columns`` of its rows, or ``of``: what each row (or item) is, where it has none;
    ``same_rows_as``: the name of a table with exactly these rows, and the node that says so."""

    says: str
    columns: Mapping[str, Column]
    of: Column | None
    same_rows_as: Node | None

    @property
    def defaults(self) -> dict[str, Any]:
        """What stands in a row that does not say otherwise, by column."""
        return {name: column.default for name, column in self.columns.items() if column.default is not None}


class TableDraft(NamedTuple):
    """A table as written: ``rows`` as plain data; ``node`` the whole of it; ``body`` the node of its rows."""

    rows: Any
    node: Node
    body: Node
    declared: Declared | None

    @property
    def filled(self) -> Any:
        """The rows with the defaults of their columns."""
        defaults = self.declared.defaults if self.declared else {}
        if not defaults:
            return self.rows
        if isinstance(self.rows, list):
            return [{**defaults, **row} for row in self.rows]
        return {name: {**defaults, **row} for name, row in self.rows.items()}


def read_table(name: str, node: Node, problems: list[Problem]) -> TableDraft | None:
    """A table's draft, its rows held against its columns; ``None`` when it is no table at all."""
    if isinstance(node.value, dict) and not MARKS.isdisjoint(node.value):
        return _declared_table(name, node, problems)
    if not isinstance(node.value, (dict, list)):
        problems.append(node.problem(f"table '{name}' must be a mapping of rows or a list"))
        return None
    if isinstance(node.value, dict):
        _require_alike(name, node.value, problems)
    return TableDraft(node.plain(), node, node, None)


def _require_alike(name: str, rows: Mapping[str, Node], problems: list[Problem]) -> None:
    """Rows with columns and rows without do not make one table: a lookup would not know what it gets."""
    first = next(iter(rows.values()), None)
    for key, row in rows.items():
        if first is not None and isinstance(row.value, dict) != isinstance(first.value, dict):
            said = f"table '{name}': row '{key}' and the first row must both have columns, or none"
            problems.append(row.problem(said))


def _declared_table(name: str, node: Node, problems: list[Problem]) -> TableDraft | None:
    got = fields(node, f"table '{name}'", problems, _TABLE, _TABLE_MORE)
    if "columns" in got and "of" in got:
        problems.append((got["of"].key or node).problem(f"table '{name}' has 'columns' or 'of', not both"))
    columns = got["columns"].value.items() if "columns" in got else ()
    of = read_column("of", got["of"], problems, _VALUE) if "of" in got else None
    found = {column: read_column(column, child, problems, _COLUMN) for column, child in columns}
    declared = Declared(
        str(got["says"].value) if "says" in got else "", {c: child for c, child in found.items() if child}, of,
        got.get("same_rows_as"),
    )  # fmt: skip
    if "rows" not in got:
        return None
    whole = len(declared.columns) == len(columns) and (of is not None) == ("of" in got)
    if whole:  # a column at fault says nothing of its cells
        _check_rows(name, got["rows"], declared, problems)
    return TableDraft(got["rows"].plain(), node, got["rows"], declared)


def read_column(name: str, node: Node, problems: list[Problem], known: Mapping[str, str]) -> Column | None:
    """What a column holds; ``None`` when its declaration is at fault."""
    before = len(problems)
    if not isinstance(node.value, dict):
        problems.append(node.problem(f"column '{name}' must be a mapping, not {kind_of(node.value)}"))
        return None
    got = fields(node, f"column '{name}'", problems, {}, known)
    chosen = [key for key in _ONE_OF if key in got]
    if len(chosen) != 1 and len(problems) == before:
        problems.append((node.key or node).problem(f"column '{name}' needs one of 'kind', 'words' and 'rows_of'"))
    kind = _kind(name, got, problems)
    of = read_column(name, got["of"], problems, _VALUE) if "of" in got else None
    if len(problems) > before:
        return None
    words = tuple(str(word.value) for word in got["words"].value) if "words" in got else ()
    column = Column(
        kind, _text(got, "says"), _text(got, "unit"), words, got.get("rows_of"), _plain(got, "optional") is True, None,
        _plain(got, "minimum"), _plain(got, "maximum"), of,
    )  # fmt: skip
    if "default" not in got:
        return column
    check_cell(f"'default' of '{name}'", got["default"], column, problems)
    return column._replace(default=got["default"].plain()) if len(problems) == before else None


def _kind(name: str, got: Mapping[str, Node], problems: list[Problem]) -> str:
    """The kind of a column's cells; complains of what does not go with it."""
    kind = str(got["kind"].value) if "kind" in got else "text"
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS) or f" (known: {', '.join(KINDS)})"
        problems.append(got["kind"].problem(f"unknown kind '{kind}'{hint}"))
        return kind
    misplaced = [key for key in _BOUNDS if key in got and kind not in ("integer", "number")]
    misplaced += ["of"] if "of" in got and kind != "list" else []
    for key in misplaced:
        problems.append((got[key].key or got[key]).problem(f"'{key}' does not go with a column of {kind}"))
    if kind == "list" and "of" not in got:
        problems.append(got["kind"].problem(f"column '{name}' is a list: 'of' says of what"))
    if "default" in got and "optional" in got:
        problems.append((got["optional"].key or got["optional"]).problem("a column with a default is never left out"))
    if "words" in got and not got["words"].value:
        problems.append(got["words"].problem(f"column '{name}' has no words"))
    for word in got["words"].value if "words" in got else ():
        if not isinstance(word.value, str):
            problems.append(word.problem(f"words: expected text, not {kind_of(word.value)}"))
    return kind


def _text(got: Mapping[str, Node], key: str) -> str:
    return str(got[key].value).strip() if key in got else ""


def _plain(got: Mapping[str, Node], key: str) -> Any:
    return got[key].value if key in got else None


def _check_rows(name: str, body: Node, declared: Declared, problems: list[Problem]) -> None:
    rows = body.value.values() if isinstance(body.value, dict) else body.value
    if isinstance(body.value, list) and declared.same_rows_as:
        said = f"table '{name}' is a list; 'same_rows_as' is for rows with names"
        problems.append((declared.same_rows_as.key or body).problem(said))
    for row in rows:
        if declared.of is not None:
            check_cell(f"a row of '{name}'", row, declared.of, problems)
        else:
            _check_row(name, row, declared.columns, problems)


def _check_row(name: str, row: Node, columns: Mapping[str, Column], problems: list[Problem]) -> None:
    if not isinstance(row.value, dict):
        problems.append(row.problem(f"a row of '{name}' must be a mapping of columns, not {kind_of(row.value)}"))
        return
    meant = ""
    for key, cell in row.value.items():
        if key in columns:
            check_cell(f"'{key}' of '{name}'", cell, columns[key], problems)
        else:
            hint = did_you_mean(key, columns)
            problems.append((cell.key or cell).problem(f"table '{name}' has no column '{key}'{hint}"))
            meant += hint
    for key, column in columns.items():
        if key not in row.value and column.default is None and not column.optional and f"'{key}'" not in meant:
            problems.append((row.key or row).problem(f"a row of '{name}' needs '{key}' ({column.said})"))
