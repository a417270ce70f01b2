"""Tables with one cell changed, or two rows that are tried in their order: each is to be noticed by a test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from gezel_rules.author.testing.mutants import Mutant
from gezel_rules.documents.node import Node
from gezel_rules.documents.wording import as_yaml
from gezel_rules.policy.model import PolicySet


def cell_mutants(root: Node, policies: PolicySet) -> Iterator[Mutant]:
    """Every mutant of the tables of a policy file that decisions read. Lists, and texts for people, stay."""
    searched = {decision.over for decision in policies.decisions.values()}
    for name, table in root.value["tables"].value.items() if "tables" in root.value else ():
        rows = table.value.get("rows") if isinstance(table.value, dict) else None
        if rows is not None and name in policies.judged.lookups and isinstance(rows.value, dict):
            yield from _of_cells(name, table, rows, policies, _asked(name, policies))
            if name in searched:
                yield from _of_order(name, rows, policies)


def _asked(table: str, policies: PolicySet) -> str:
    """The rules of all decisions that read a table: what they say of no column, only code reads."""
    rules = (rule for each in policies.decisions.values() if table in each.reads for rule in each.rules)
    return " ".join(f"{rule.when} {rule.then} " for rule in rules)


def _of_cells(name: str, table: Node, rows: Node, policies: PolicySet, asked: str) -> Iterator[Mutant]:
    columns = table.value["columns"].value if "columns" in table.value else {}
    for row, node in rows.value.items():
        for column, cell in node.value.items() if isinstance(node.value, dict) else ():
            other = _another(cell.value, _words(columns.get(column), policies))
            if other is not None and re.search(rf"(?:\]|\bcandidate)\.{column}\b", asked):
                changed = {**policies.tables[name], row: {**policies.tables[name][row], column: other}}
                says = f"with '{column}: {as_yaml(other)}' for {as_yaml(cell.value)}"
                yield Mutant("cell", name, row, (node.key or node).line, says, tables={name: changed})


def _words(column: Node | None, policies: PolicySet) -> Sequence[str]:
    """The words a column may have."""
    if column is None:
        return ()
    if "words" in column.value:
        return [word.value for word in column.value["words"].value]
    return list(policies.tables[column.value["rows_of"].value]) if "rows_of" in column.value else ()


def _another(value: Any, words: Sequence[str]) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return words[(words.index(value) + 1) % len(words)] if value in words and len(words) > 1 else None


def _of_order(name: str, rows: Node, policies: PolicySet) -> Iterator[Mutant]:
    names = list(rows.value)
    for number, (one, other) in enumerate(pairwise(names)):
        order = [*names[:number], other, one, *names[number + 2 :]]
        changed = {row: policies.tables[name][row] for row in order}
        line = (rows.value[one].key or rows.value[one]).line
        yield Mutant("swap", name, one, line, f"behind the next, '{other}'", tables={name: changed})
