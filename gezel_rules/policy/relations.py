"""What tables say of each other: words that are rows of another table, tables that must have the same rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.errors import Problem
from gezel_rules.lang.types import Type, table_type, type_of
from gezel_rules.policy.cells import Column, type_of_cell
from gezel_rules.policy.sources import Source
from gezel_rules.policy.tables import Declared, TableDraft

Tables = Mapping[str, TableDraft]
LOG_FAILURES = "logs.failures"
"""What a column names to mean the failure classes of the log policies, which are no table."""


def failure_classes(logs: Iterable[Source]) -> dict[str, TableDraft]:
    """The failure classes of log policies, as if they were rows of a table; nothing where there are no log policies."""
    roots = [source.root.value for source in logs if isinstance(source.root.value, dict)]
    sections = [root["failures"] for root in roots if "failures" in root]
    entries = [entry.value for section in sections if isinstance(section.value, list) for entry in section.value]
    found = [entry["id"].value for entry in entries if isinstance(entry, dict) and "id" in entry]
    names: dict[str, Any] = {str(name): {} for name in found}
    return {LOG_FAILURES: TableDraft(names, sections[0], sections[0], None)} if sections else {}


def check_relations(tables: Tables, problems: list[Problem], broken: Collection[str] = ()) -> None:
    """Add every word that is no row, and every row that another table lacks, to ``problems``; ``broken`` tables are
    compared with nothing."""
    for name, table in tables.items():
        if table.declared is None or name in broken:
            continue
        for column, cells in _columns(table.declared, table.body):
            if column.rows_of is None or column.rows_of.value not in broken:
                _check_words(name, column, cells, tables, problems)
        told = table.declared.same_rows_as
        if told is not None and told.value not in broken and isinstance(table.rows, dict):
            _check_same_rows(name, table, told, tables, problems)


def types_of(tables: Tables) -> dict[str, Type]:
    """The types of tables as expressions see them: as declared, else as the rows of a plain one show."""

    def rows_of(name: str) -> frozenset[str] | None:
        return frozenset(map(str, tables[name].rows)) if name in tables else None

    return {name: _type(table, rows_of) for name, table in tables.items()}


def _type(table: TableDraft, rows_of: Callable[[str], frozenset[str] | None]) -> Type:
    declared, rows = table.declared, table.rows
    if declared is None:
        return table_type(rows) if isinstance(rows, dict) else type_of(rows)._replace(choices=None)
    if declared.of is not None:
        item = type_of_cell(declared.of, rows_of)
    else:
        item = Type("record", fields={name: type_of_cell(column, rows_of) for name, column in declared.columns.items()})
    if isinstance(rows, dict):
        return Type("table", item=item, choices=frozenset(rows))
    return Type("list", item=item)


def _columns(declared: Declared, body: Node) -> Iterator[tuple[Column, list[Node]]]:
    """Every column that holds words of other tables, with its cells (the items of a list each by itself)."""
    rows: Collection[Any] = body.value.values() if isinstance(body.value, dict) else body.value
    if declared.of is not None:
        yield from _flat(declared.of, list(rows))
    records = [row.value for row in rows if isinstance(row.value, dict)]
    for name, column in declared.columns.items():
        yield from _flat(column, [row[name] for row in records if name in row])


def _flat(column: Column, cells: list[Node]) -> Iterator[tuple[Column, list[Node]]]:
    if column.of is not None:
        yield from _flat(column.of, [item for cell in cells if isinstance(cell.value, list) for item in cell.value])
    elif column.rows_of is not None or column.kind == "table":
        yield column, cells


def _check_words(name: str, column: Column, cells: list[Node], tables: Tables, problems: list[Problem]) -> None:
    other = _named(column.rows_of, tables, problems) if column.rows_of is not None else None
    if column.kind == "table":
        for cell in cells:
            _named(cell, tables, problems)
    if column.rows_of is None or other is None:
        return
    words = {word for word in other.rows if isinstance(word, str)}
    for cell in cells:
        if isinstance(cell.value, str) and cell.value not in words:
            said = f"table '{column.rows_of.value}' has no row '{cell.value}'"
            problems.append(cell.problem(said + did_you_mean(cell.value, words))._replace(misses=cell.value))


def _named(node: Node, tables: Tables, problems: list[Problem]) -> TableDraft | None:
    """The table that a node names; that there is none is said there."""
    if node.value in tables or node.value == LOG_FAILURES:
        return tables.get(node.value)
    said = f"no table '{node.value}'{did_you_mean(str(node.value), tables)}"
    problems.append(node.problem(said)._replace(misses=str(node.value)))
    return None


def _check_same_rows(name: str, table: TableDraft, told: Node, tables: Tables, problems: list[Problem]) -> None:
    other = _named(told, tables, problems)
    if other is None:
        return
    lacking, meant = [row for row in other.rows if row not in table.rows], ""
    for row in table.rows:
        if row not in other.rows:
            hint = did_you_mean(row, lacking)
            said = f"table '{told.value}' has no row '{row}', and '{name}' has the same rows as it{hint}"
            problems.append((table.body.value[row].key or table.body).problem(said)._replace(misses=row))
            meant += hint
    for row in lacking:
        if f"'{row}'" not in meant:
            said = f"table '{name}' has no row '{row}', and '{told.value}' has: their rows are the same"
            problems.append((table.node.key or table.node).problem(said))
