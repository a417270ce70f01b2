"""What a case gives: facts and decisions by name, answers of functions, and cells of tables."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gezel_rules.author.testing.form import NOT_SET, UNKNOWN_WORD
from gezel_rules.decisions.words import say
from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.documents.read import Value
from gezel_rules.documents.wording import as_yaml
from gezel_rules.errors import Problem
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.facts.setting_values import SettingSpec, WrongValueError, value_of
from gezel_rules.lang.evaluate import EvaluationError
from gezel_rules.lang.types import Function, Type
from gezel_rules.policy.model import PolicySet
from gezel_rules.record import NamedTuple

ANYTHING, REST = "*", "..."
"""Of a function's arguments: one that may be anything, and any that follow."""
AMOUNTS = ("bytes", "tokens")
"""Units whose amounts people write with a scale."""
_CALL = re.compile(r"([a-z][a-z0-9_]*)\((.*)\)")
_CELL = re.compile(r"([a-z][a-z0-9_.]*)\[([^\]]+)\](?:\.([a-z][a-z0-9_]*))?")
_WORDS = {"true": True, "false": False, NOT_SET: None, UNKNOWN_WORD: UNKNOWN}


class Answer(NamedTuple):
    """What a function gives for ``args``; of them ``ANYTHING`` stands for one, a last ``REST`` for any."""

    function: str
    args: tuple[Any, ...]
    value: Any

    def fits(self, args: tuple[Any, ...]) -> bool:
        """Whether it answers a call with these."""
        wanted = self.args[:-1] if self.args[-1:] == (REST,) else self.args
        whole = wanted is not self.args or len(args) == len(wanted)
        return whole and all(one in (ANYTHING, other) for one, other in zip(wanted, args, strict=False))


class Given(NamedTuple):
    """What is given: ``facts`` and ``decisions`` by name, ``answers`` (the first that fits counts), and ``cells``:
    (table, row, column) → value, the column empty where a row is a single value."""

    facts: Mapping[str, Any] = {}
    decisions: Mapping[str, Any] = {}
    answers: tuple[Answer, ...] = ()
    cells: Mapping[tuple[str, str, str], Any] = {}

    def over(self, base: Given) -> Given:
        """The same where nothing else is said than in ``base``."""
        return Given(
            {**base.facts, **self.facts}, {**base.decisions, **self.decisions}, (*self.answers, *base.answers),
            {**base.cells, **self.cells},
        )  # fmt: skip

    def without(self, decision: str) -> Given:
        """The same where a decision is asked for, not given."""
        return self._replace(decisions={name: value for name, value in self.decisions.items() if name != decision})


class Words(NamedTuple):
    """What a case may speak of: the ``facts`` of a family, those among them that may be unknown (``unknowable``), its
    policies, and the functions that need an answer."""

    facts: Mapping[str, Type]
    unknowable: frozenset[str]
    policies: PolicySet
    functions: Mapping[str, Function]

    def known(self) -> list[str]:
        """Every name that may be given."""
        return [*self.facts, *self.policies.decisions, *(f"{name}(...)" for name in self.functions)]


def read_given(said: Value | None, words: Words, problems: list[Problem]) -> Given:
    """What stands under ``given``; whatever cannot be given is added to ``problems``."""
    facts: dict[str, Any] = {}
    decisions: dict[str, Any] = {}
    answers: list[Answer] = []
    cells: dict[tuple[str, str, str], Any] = {}
    for name, child in (said.value if said else {}).items():
        if name in words.facts:
            facts[name] = _fact(name, child.node, words, problems)
        elif name in words.policies.decisions:
            decisions[name] = read_value(name, child.node, words, problems)
        elif (call := _CALL.fullmatch(name)) and call[1] in words.functions:
            answers.append(Answer(call[1], _arguments(call[2]), plain(child.node)))
        elif (cell := _CELL.fullmatch(name)) and _is_cell(cell, words.policies):
            cells[cell[1], cell[2], cell[3] or ""] = plain(child.node)
        else:
            said_of = f"no fact, decision, function or cell '{name}'{did_you_mean(name, words.known())}"
            problems.append((child.node.key or child.node).problem(said_of))
    return Given(facts, decisions, tuple(answers), cells)


def plain(node: Node) -> Any:
    """A value as it stands there; 'not set' is none, and 'unknown' unknown."""
    return _meant(node.plain())


def read_value(decision: str, node: Node, words: Words, problems: list[Problem]) -> Any:
    """A decision's value; where it has a unit, an amount may be written as people do: 64k, 24 GiB."""
    value, unit = plain(node), words.policies.decisions[decision].unit
    if not isinstance(value, str) or unit not in AMOUNTS:
        return value
    return _converted(SettingSpec(decision, "integer", unit=unit), value, node, problems)


def _converted(spec: SettingSpec, value: Any, node: Node, problems: list[Problem]) -> Any:
    try:
        return value_of(spec, value)
    except WrongValueError as error:
        problems.append(node.problem(f"'{spec.name}' {error}"))
        return UNKNOWN


def _meant(value: Any) -> Any:
    if isinstance(value, list):
        return [_meant(item) for item in value]
    if isinstance(value, dict):
        return {key: _meant(item) for key, item in value.items()}
    return _WORDS.get(value, value) if isinstance(value, str) else value


def _fact(name: str, node: Node, words: Words, problems: list[Problem]) -> Any:
    """A fact's value, read as a setting's is: 64k, 24 GiB."""
    value, type_ = plain(node), words.facts[name]
    if value is None or value is UNKNOWN:
        if value is None and not type_.optional:
            problems.append(node.problem(f"'{name}' is always set: it may be '{UNKNOWN_WORD}', not '{NOT_SET}'"))
        return value
    rows = type_.rows_of or (type_.item.rows_of if type_.item else "")
    choices = tuple(map(str, words.policies.tables.get(rows, ())))
    of_list = type_.kind == "list"
    spec = SettingSpec(name, type_.kind, None if of_list else choices or None, type_.unit)
    found = _converted(spec, value, node, problems)
    for item in [item for item in found if item not in choices] if isinstance(found, list) and choices else ():
        problems.append(node.problem(f"'{item}' is no row of '{rows}'{did_you_mean(item, choices)}"))
    return found


def _arguments(text: str) -> tuple[Any, ...]:
    return tuple(_argument(part.strip()) for part in text.split(",")) if text.strip() else ()


def _argument(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    return int(word) if word.removeprefix("-").isdecimal() else word


def _is_cell(cell: re.Match[str], policies: PolicySet) -> bool:
    table = policies.tables.get(cell[1])
    return isinstance(table, dict) and cell[2] in table and isinstance(table[cell[2]], dict) is bool(cell[3])


def changed_tables(given: Given, policies: PolicySet) -> dict[str, Any]:
    """The tables whose cells are given, as they are then."""
    tables: dict[str, Any] = {}
    for (table, row, column), value in given.cells.items():
        rows = tables.setdefault(table, dict(policies.tables[table]))
        rows[row] = {**rows[row], column: value} if column else value
    return tables


def answering(answers: Iterable[Answer], names: Iterable[str]) -> dict[str, Callable[..., Any]]:
    """Functions that give these answers. Each raises EvaluationError for a call that none of them fits."""
    by_name: dict[str, list[Answer]] = {name: [] for name in names}
    for answer in answers:
        by_name[answer.function].append(answer)
    return {name: _answerer(name, tuple(found)) for name, found in by_name.items()}


def _answerer(name: str, answers: tuple[Answer, ...]) -> Callable[..., Any]:
    def answer(*args: Any) -> Any:
        for one in answers:
            if one.fits(args):
                return one.value
        asked = f"{name}({', '.join(map(_written, args))})"
        raise EvaluationError(f"the case does not say what {asked} gives", ast.Constant(None))

    return answer


def _written(value: Any) -> str:
    """An argument as a test file has it."""
    return NOT_SET if value is None else as_yaml(value)


def shown(value: Any) -> str:
    """A value as a test file has it, for messages: no unit, no separators."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {shown(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(shown, value))}]"
    return _written(value) if value is None or isinstance(value, (bool, int, float)) else say(value)
