"""What two policy sets differ in that can matter to a launch: rules, whole decisions, tables, the order of flags.

Words for people, versions, comments, layout and the ids of rules decide nothing and are no edit; nor is an expression
that is only written otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gezel_rules.documents.node import Node
from gezel_rules.documents.source import parse_yaml, read_text
from gezel_rules.policy.files import policy_paths, shown_name
from gezel_rules.policy.model import Decision, PolicySet, Rule
from gezel_rules.policy.seal import pairs
from gezel_rules.record import NamedTuple

RULE, DECISION, TABLE, FLAGS = "rule", "decision", "table", "order of flags"


class Place(NamedTuple):
    """Where something stands: the file as people know it, and its line."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Edit(NamedTuple):
    """One difference. ``name`` of the decision or table; ``part`` of it: a rule's id or a row's name (empty: all of
    it); where it stands before and after (``None``: it is not there)."""

    kind: str
    name: str
    part: str
    before: Place | None
    after: Place | None

    @property
    def what(self) -> str:
        """``added``, ``removed`` or ``changed``."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"


class Sided(NamedTuple):
    """A set and the directory it was read from."""

    policies: PolicySet
    directory: Path


def edits(before: Sided, after: Sided) -> list[Edit]:
    """All differences, decisions before tables, each in the order of the set that has it."""
    found = [*_decisions(before.policies, after.policies), *_tables(before, after)]
    flags = [side.policies.flags for side in (before, after)]
    common = [[name for name in order if name in flags[0] and name in flags[1]] for order in flags]
    return [*found, Edit(FLAGS, "argv", "", None, None)] if common[0] != common[1] else found


def _decisions(before: PolicySet, after: PolicySet) -> Iterator[Edit]:
    old, new = before.decisions, after.decisions
    for name in {**old, **new}:
        if name not in old or name not in new:
            yield Edit(DECISION, name, "", _place(old.get(name)), _place(new.get(name)))
        elif _frame(old[name], before) != _frame(new[name], after):
            yield Edit(DECISION, name, "", _place(old[name]), _place(new[name]))
        else:
            yield from _rules(old[name], new[name], before, after)


def _place(decision: Decision | None) -> Place | None:
    return Place(decision.file, decision.line) if decision else None


def _frame(decision: Decision, policies: PolicySet) -> tuple[Any, ...]:
    """What holds for all rules of a decision."""
    return decision.hit, decision.flag, _meaning(decision.over, policies)


def _meaning(text: str | None, policies: PolicySet) -> str | None:
    """An expression without its spaces and brackets."""
    return None if text is None else ast.dump(policies.tree(text))


def _acts(rule: Rule, decision: Decision, policies: PolicySet) -> tuple[Any, ...]:
    then = rule.then if decision.hit == "search" else _meaning(rule.then, policies)
    return _meaning(rule.when, policies), then, rule.level


def _rules(old: Decision, new: Decision, before: PolicySet, after: PolicySet) -> Iterator[Edit]:
    """Rules by their ids; where only their order or an id is another, those that stand elsewhere."""
    if _texts(old) == _texts(new):
        return
    were = {rule.id: _acts(rule, old, before) for rule in old.rules}
    are = {rule.id: _acts(rule, new, after) for rule in new.rules}
    if list(were.values()) == list(are.values()):
        return
    unlike = [name for name in {**were, **are} if were.get(name) != are.get(name)]
    if not unlike:
        unlike = [name for name, other in zip(were, are, strict=True) if name != other]
    places = [{rule.id: Place(side.file, rule.line) for rule in side.rules} for side in (old, new)]
    for name in unlike:
        yield Edit(RULE, old.name, name, places[0].get(name), places[1].get(name))


def _texts(decision: Decision) -> list[tuple[Any, ...]]:
    return [(rule.id, rule.when, rule.then, rule.level) for rule in decision.rules]


def _tables(before: Sided, after: Sided) -> Iterator[Edit]:
    old, new = before.policies.tables, after.policies.tables
    unlike = [
        name for name in {**old, **new} if name not in old or name not in new or pairs(old[name]) != pairs(new[name])
    ]
    if not unlike:
        return
    places = [_table_places(side.directory, unlike) for side in (before, after)]
    for name in unlike:
        rows = _rows_unlike(old.get(name), new.get(name)) if name in old and name in new else [""]
        for row in rows:
            yield Edit(TABLE, name, row, *(_place_of(name, row, found, there) for found, there in
                                           zip(places, (old.get(name), new.get(name)), strict=True)))  # fmt: skip


def _rows_unlike(old: Any, new: Any) -> list[str]:
    """The rows that differ, by name; of lists, and where only the order does, the table as a whole."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return [""]
    return [name for name in {**old, **new} if name not in old or name not in new or old[name] != new[name]] or [""]


def _place_of(name: str, row: str, places: Mapping[tuple[str, str], Place], rows: Any) -> Place | None:
    """Of a row that is there; of its table where a row has no place of its own."""
    if rows is None or (row and row not in rows):
        return None
    return places.get((name, row)) or places.get((name, ""))


def _table_places(directory: Path, names: list[str]) -> dict[tuple[str, str], Place]:
    """Where tables and their rows stand; only files that speak of one are read as YAML."""
    found: dict[tuple[str, str], Place] = {}
    for path in policy_paths(directory):
        text = read_text(path, shown_name(path, directory))
        if not any(f"\n  {name}:" in text.text for name in names):
            continue
        tables = parse_yaml(text).value.get("tables")
        for name in names:
            if tables is not None and name in tables.value:
                found |= _row_places(name, tables.value[name])
    return found


def _row_places(name: str, table: Node) -> Iterator[tuple[tuple[str, str], Place]]:
    def place(node: Node) -> Place:
        return Place(node.text.name, (node.key or node).line)

    yield (name, ""), place(table)
    declared = isinstance(table.value, dict) and "rows" in table.value
    rows = table.value["rows"].value if declared else table.value
    if isinstance(rows, dict):
        yield from (((name, row), place(node)) for row, node in rows.items())
