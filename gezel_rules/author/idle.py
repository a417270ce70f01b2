"""What a set says and nothing ever asks for: tables, decisions, failure classes, words of columns; and options that no
engine has. Such a set loads, since nothing of it misleads a launch; a maintainer meant something by it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.errors import Problem
from gezel_rules.policy.cells import Column
from gezel_rules.policy.language import Language, TableNeed
from gezel_rules.policy.load import Drafts
from gezel_rules.policy.model import STAND_DOWNS, WHATEVER, Decision

OPTIONS = "engine_options"
"""The table that lists every option of a family's programs, where a family has one."""
SHOWN = ("show.", "warn.", "note.")
"""How decisions begin that a plan shows to people; see ``planner.summary``."""
_OPTION = re.compile(r"(?<![\w-])'(--?[A-Za-z][\w-]*)'")
_WORD = re.compile(r"'([^']*)'")


def idle(
    drafts: Drafts, decisions: Mapping[str, Decision], language: Language, elsewhere: Collection[str]
) -> list[Problem]:
    """Everything of the kind, in a set that is otherwise in order; ``elsewhere``: what other engine families read."""
    read_elsewhere = set(elsewhere)
    found = {
        "unused-decision": _unread(_decisions(drafts, decisions, language), read_elsewhere),
        "unused-table": _unread(_tables(drafts, decisions, language), read_elsewhere),
        "unused-failure-class": _classes(drafts),
        "unasked-word": _words(drafts, language),
        "unknown-option": _options(drafts),
    }
    return [problem._replace(check=check) for check, problems in found.items() for problem in problems]


def _unread(found: Iterable[tuple[str, Problem]], elsewhere: Collection[str]) -> Iterator[Problem]:
    return (problem for name, problem in found if name not in elsewhere)


def _decisions(drafts: Drafts, decisions: Mapping[str, Decision], language: Language) -> Iterator[tuple[str, Problem]]:
    read = {name for decision in decisions.values() for name in decision.reads} | set(language.needs().decisions)
    for name, draft in drafts.decisions.items():
        if name not in read and not draft.decision.flag and not name.startswith(SHOWN):
            said = f"nothing reads '{name}': no decision, no flag, and not this program"
            yield name, (draft.node.key or draft.node).problem(said)


def _tables(drafts: Drafts, decisions: Mapping[str, Decision], language: Language) -> Iterator[tuple[str, Problem]]:
    read = {name for decision in decisions.values() for name in decision.reads} | set(language.needs().tables)
    types = [*language.facts.values(), *(param for call in language.functions.values() for param in call.params)]
    read |= {type_.rows_of or (type_.item.rows_of if type_.item else "") for type_ in types} | {OPTIONS}
    read |= {name for table in drafts.tables.values() if table.declared for name in _spoken_of(table.body, table.node)}
    for name, table in drafts.tables.items():
        if name not in read:
            said = f"nothing reads '{name}': no decision, no other table, and not this program"
            yield name, (table.node.key or table.node).problem(said)


def _spoken_of(body: Node, table: Node) -> Iterator[str]:
    """Names of tables that a declared table speaks of: its words' and rows' tables, and names in its cells."""
    waiting = [table]
    while waiting:
        value = waiting.pop().value
        if isinstance(value, dict):
            yield from (str(value[key].value) for key in ("rows_of", "same_rows_as") if key in value)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            yield value


def _classes(drafts: Drafts) -> Iterator[Problem]:
    """Failure classes that no line and no exit status speaks for, and that have no condition of their own."""
    entries = [entry for source in drafts.logs for entry in _failures(source.root)]
    used = {word for source in drafts.logs for word in _supported(source.root)}
    for entry in entries:
        known = entry.value["id"].value
        if (
            "says" in entry.value
            and known not in used
            and not any(key in entry.value for key in ("all", "any", "none"))
        ):
            yield entry.value["id"].problem(f"no pattern and no exit status speaks for the failure class '{known}'")


def _failures(root: Node) -> list[Node]:
    section = root.value.get("failures") if isinstance(root.value, dict) else None
    return section.value if section is not None and isinstance(section.value, list) else []


def _supported(root: Node) -> Iterator[str]:
    for section in ("patterns", "exits"):
        entries = root.value[section].value if section in root.value else ()
        yield from (str(entry.value["failure"].value) for entry in entries if "failure" in entry.value)


def _words(drafts: Drafts, language: Language) -> Iterator[Problem]:
    """Words of a column that rules compare with others of its words, and never with this one: a row that has it is
    treated as if it had none. Columns that the program reads are its own matter."""
    texts = [rule.when or "" for draft in drafts.decisions.values() for rule in draft.decision.rules]
    texts += [rule.then for draft in drafts.decisions.values() for rule in draft.decision.rules]
    needs = language.needs().tables
    for name, table in drafts.tables.items():
        for key, column in (table.declared.columns if table.declared else {}).items():
            if column.words and not _is_read(needs.get(name), key):
                asked = {word for text in texts if f".{key}" in text for word in _WORD.findall(text)}
                yield from _unasked(name, key, column, table.node, asked)


def _is_read(need: TableNeed | None, column: str) -> bool:
    return need is not None and need.record is not None and column in need.record.__annotations__


def _unasked(table: str, key: str, column: Column, node: Node, asked: set[str]) -> Iterator[Problem]:
    if asked.isdisjoint(column.words):
        return
    for word in node.value["columns"].value[key].value["words"].value:
        if word.value not in asked:
            said = f"no rule asks whether '{key}' of '{table}' is '{word.value}', and rules ask for its other words"
            yield word.problem(said)


def _options(drafts: Drafts) -> Iterator[Problem]:
    if OPTIONS not in drafts.tables:
        return
    known = {str(row) for row in drafts.tables[OPTIONS].rows}
    for word, node in _spelt(drafts):
        if word not in known:
            said = f"no engine has an option '{word}': it is not in the table '{OPTIONS}'"
            yield node.problem(said + did_you_mean(word, known))


def _spelt(drafts: Drafts) -> Iterator[tuple[str, Node]]:
    """Every option that decisions and the rows of tables speak of, with its place."""
    for draft in drafts.decisions.values():
        if draft.decision.flag and draft.decision.flag != WHATEVER:
            yield draft.decision.flag, draft.node.value["flag"]
        for rule, place in zip(draft.decision.rules, draft.places, strict=True):
            if rule.id not in STAND_DOWNS and place.when is not None:
                yield from ((word, place.when) for word in _OPTION.findall(rule.when or ""))
    for table in drafts.tables.values():
        rows = table.body.value if isinstance(table.body.value, dict) else {}
        yield from ((name, row.key or row) for name, row in rows.items() if _OPTION.fullmatch(f"'{name}'"))
