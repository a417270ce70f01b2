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

from collections.abc import Collection, Mapping
from typing import Any

from gezel_rules.documents.declare import Shape
from gezel_rules.documents.kinds import kind_of
from gezel_rules.documents.node import Node, misspelt
from gezel_rules.documents.read import Value, read
from gezel_rules.errors import Problem
from gezel_rules.policy.cells import Column, check_cell
from gezel_rules.policy.file import COLUMN, DECLARED_TABLE, VALUE
from gezel_rules.record import NamedTuple

MARKS = frozenset(("rows", "columns", "of"))
"""Keys that make a mapping a declared table: no row of a plain one has such a name."""


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
    """A table as written: ``rows`` as plain data; ``node`` the whole of it; ``body`` the node of its rows; ``sound``:
    it has the rows and columns it seems to have, whatever is wrong with single cells."""

    rows: Any
    node: Node
    body: Node
    declared: Declared | None
    sound: bool = True


def read_table(name: str, node: Node, problems: list[Problem]) -> TableDraft | None:
    """A table's draft, its rows held against its columns; ``None`` when it is no table at all."""
    if isinstance(node.value, dict) and not MARKS.isdisjoint(node.value):
        return _declared_table(name, node, problems)
    if not isinstance(node.value, (dict, list)):
        problems.append(node.problem(f"table '{name}' must be a mapping of rows or a list"))
        return None
    before = len(problems)
    if isinstance(node.value, dict):
        _require_alike(name, node.value, problems)
    return TableDraft(node.plain(), node, node, None, len(problems) == before)


def _require_alike(name: str, rows: Mapping[str, Node], problems: list[Problem]) -> None:
    """Rows with columns and rows without do not make one table: a lookup would not know what it gets."""
    first = next(iter(rows.values()), None)
    for key, row in rows.items():
        if first is not None and isinstance(row.value, dict) != isinstance(first.value, dict):
            said = f"table '{name}': row '{key}' and the first row must both have columns, or none"
            problems.append(row.problem(said))


def _declared_table(name: str, node: Node, problems: list[Problem]) -> TableDraft | None:
    before = len(problems)
    said = read(node, DECLARED_TABLE._replace(what=f"table '{name}'"), problems)
    sound = len(problems) == before
    if "columns" in said and "of" in said:
        problems.append((said["of"].node.key or node).problem(f"table '{name}' has 'columns' or 'of', not both"))
    written = said.at("columns") or {}
    columns = {column: read_column(column, value.node, problems, COLUMN) for column, value in written.items()}
    of = read_column("of", said["of"].node, problems, VALUE) if "of" in said else None
    declared = Declared(
        str(said.at("says") or "").strip(), {column: read for column, read in columns.items() if read}, of,
        said["same_rows_as"].node if "same_rows_as" in said else None,
    )  # fmt: skip
    if "rows" not in said:
        return None
    rows = said["rows"].node
    whole = sound and len(declared.columns) == len(written) and (of is not None) == ("of" in said)
    if whole:  # a declaration at fault says nothing of its cells
        _check_rows(name, rows, declared, problems)
    records = rows.value.values() if isinstance(rows.value, dict) else rows.value
    sound = whole and (of is not None or all(isinstance(row.value, dict) for row in records))
    return TableDraft(rows.plain(), node, rows, declared, sound)


def read_column(name: str, node: Node, problems: list[Problem], shape: Shape) -> Column | None:
    """What a column (or a value) holds; ``None`` when its declaration is at fault."""
    before = len(problems)
    said = read(node, shape._replace(what=f"column '{name}'"), problems)
    if isinstance(node.value, dict):
        _check_kind(name, said, problems)
    of = read_column(name, said["of"].node, problems, VALUE) if "of" in said else None
    if len(problems) > before:
        return None
    column = Column(
        said.at("kind") or "text", str(said.at("says") or "").strip(), str(said.at("unit") or "").strip(),
        tuple(word.value for word in said.at("words") or ()), said["rows_of"].node if "rows_of" in said else None,
        "optional" in said and said.at("optional"), None, said.at("minimum"), said.at("maximum"), of,
    )  # fmt: skip
    if "default" not in said:
        return column
    default = said["default"].node
    check_cell(f"'default' of '{name}'", default, column, problems)
    return column._replace(default=default.plain()) if len(problems) == before else None


def _check_kind(name: str, said: Value, problems: list[Problem]) -> None:
    """Complain of what does not go with the kind of a column's cells."""
    if "kind" in said.node.value and "kind" not in said:
        return
    kind = said.at("kind") or "text"
    misplaced = [key for key in ("unit", "minimum", "maximum") if key in said and kind not in ("integer", "number")]
    misplaced += ["of"] if "of" in said and kind != "list" else []
    for key in misplaced:
        problems.append((said[key].node.key or said[key].node).problem(f"'{key}' does not go with a column of {kind}"))
    if kind == "list" and "of" not in said:
        problems.append(said["kind"].problem(f"column '{name}' is a list: 'of' says of what"))
    if "default" in said and "optional" in said:
        node = said["optional"].node
        problems.append((node.key or node).problem("a column with a default is never left out"))


def _check_rows(name: str, body: Node, declared: Declared, problems: list[Problem]) -> None:
    rows = body.value.values() if isinstance(body.value, dict) else body.value
    if isinstance(body.value, list) and declared.same_rows_as:
        said = f"table '{name}' is a list; 'same_rows_as' is for rows with names"
        problems.append((declared.same_rows_as.key or body).problem(said))
    written = [key for row in rows if isinstance(row.value, dict) for key in row.value]
    common = {key for key in written if written.count(key) > 1 and key not in declared.columns}
    for row in rows:
        if declared.of is not None:
            check_cell(f"a row of '{name}'", row, declared.of, problems)
        else:
            _check_row(name, row, declared.columns, common, problems)


def _check_row(
    name: str, row: Node, columns: Mapping[str, Column], common: Collection[str], problems: list[Problem]
) -> None:
    """``common``: columns that are not declared and that several rows have: one mistake, in the declaration."""
    if not isinstance(row.value, dict):
        problems.append(row.problem(f"a row of '{name}' must be a mapping of columns, not {kind_of(row.value)}"))
        return
    strange = [key for key in row.value if key not in columns]
    lacking = [
        key for key, column in columns.items()
        if key not in row.value and column.default is None and not column.optional
    ]  # fmt: skip
    meant = misspelt(strange, lacking, columns) if strange else {}
    for key, cell in row.value.items():
        if key in columns:
            check_cell(f"'{key}' of '{name}'", cell, columns[key], problems)
        else:
            said = (cell.key or cell).problem(f"table '{name}' has no column '{key}'{meant[key][1]}")
            problems.append(said._replace(misses=key if key in common else ""))
    for key in lacking:
        if key not in {word for word, _ in meant.values()}:
            problems.append((row.key or row).problem(f"a row of '{name}' needs '{key}' ({columns[key].said})"))
