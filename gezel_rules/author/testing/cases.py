"""The cases of a test file, read: every name they speak of is held against the policies and the facts there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gezel_rules.author.testing.form import NOT_SET, TESTS
from gezel_rules.author.testing.given import Given, Words, plain, read_given, read_value, shown
from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.documents.read import Value, read
from gezel_rules.documents.wording import as_yaml
from gezel_rules.errors import Problem
from gezel_rules.policy.model import Decision, PolicySet, behind
from gezel_rules.record import NamedTuple


class Case(NamedTuple):
    """What one ``decision`` must make of what is ``given``: the value it must have, the ``rule`` that must decide ("":
    any), and candidates it must turn down (``rejects``: name → rule)."""

    says: str
    node: Node
    decision: str
    given: Given
    value: Any
    rule: str
    rejects: tuple[tuple[str, str], ...]


class Launch(NamedTuple):
    """What a whole launch must be: its ``refusal`` (``None``: none); ``flags``, ``env``, ``decisions`` and ``facts`` by
    name."""

    says: str
    node: Node
    model: str
    host: str
    settings: tuple[str, ...]
    refusal: str | None
    flags: tuple[tuple[str, Any], ...]
    env: tuple[tuple[str, Any], ...]
    decisions: tuple[tuple[str, Any], ...]
    facts: tuple[tuple[str, Any], ...]


class Log(NamedTuple):
    """What an engine's log must mean: ``expected`` parts of its verdict."""

    says: str
    node: Node
    lines: tuple[str, ...]
    backend: str | None
    engine: str | None
    exit: int | None
    expected: tuple[tuple[str, Any], ...]


class Cases(NamedTuple):
    """All cases of one test file; ``tests``: the policy beside it, by its name."""

    tests: str
    cases: tuple[Case, ...] = ()
    launches: tuple[Launch, ...] = ()
    logs: tuple[Log, ...] = ()

    @property
    def decisions(self) -> list[str]:
        """The decisions that have cases of their own."""
        return list(dict.fromkeys(case.decision for case in self.cases))


class _Sheet(NamedTuple):
    """What is read with: the policy beside the file, what cases may speak of, and what is wrong so far."""

    policy: str
    words: Words
    problems: list[Problem]

    def given(self, said: Value) -> Given:
        """What stands under ``given``, if anything does."""
        return read_given(said.value.get("given"), self.words, self.problems)


def read_cases(root: Node, policy: str, words: Words, problems: list[Problem]) -> Cases:
    """The cases of the test file beside ``policy``; whatever is wrong with them is added to ``problems``."""
    said, sheet = read(root, TESTS, problems), _Sheet(policy, words, problems)
    if "tests" in said and said.at("tests") != policy:
        problems.append(said["tests"].problem(f"tests must name the policy beside this file: '{policy}'"))
    base = sheet.given(said)
    cases = [case for name, each in _section(said, "decisions") for case in _cases(name, each, base, sheet)]
    launches = [_launch(says, each, sheet) for says, each in _section(said, "launches") if each.complete]
    logs = [_log(says, each) for says, each in _section(said, "logs") if each.complete]
    return Cases(policy, tuple(cases), tuple(launches), tuple(logs))


def _section(said: Value, key: str) -> Iterator[tuple[str, Value]]:
    yield from (said.at(key) or {}).items()


def _cases(name: str, said: Value, base: Given, sheet: _Sheet) -> Iterator[Case]:
    """The cases of a decision, where the policy has it."""
    decisions = {each.name: each for each in sheet.words.policies.decisions.values() if each.policy == sheet.policy}
    if name not in decisions:
        unknown = f"'{sheet.policy}' has no decision '{name}'{did_you_mean(name, decisions)}"
        sheet.problems.append((said.node.key or said.node).problem(unknown))
        return
    base = sheet.given(said).over(base).without(name)
    for says, case in said.value.items():
        if says != "given" and case.complete:
            yield from _case(says, case, decisions[name], base, sheet)


def _case(says: str, said: Value, decision: Decision, base: Given, sheet: _Sheet) -> Iterator[Case]:
    """A case, once for every value under ``each``."""
    _require_rules(said, decision, sheet.problems)
    _require_read(said, decision, sheet)
    value = read_value(decision.name, said["expect"].node, sheet.words, sheet.problems)
    rejects = tuple((row, rule.value) for row, rule in _section(said, "rejects"))
    for note, given in _each(said, sheet):
        yield Case(
            f"{says}{note}", said.node, decision.name, given.over(base), value, said.at("rule") or "", rejects
        )  # fmt: skip


def _each(said: Value, sheet: _Sheet) -> Iterator[tuple[str, Given]]:
    """What is given, once with every value under ``each``, and how that is said behind the case's sentence."""
    given = sheet.given(said)
    if "each" not in said:
        yield "", given
    for name, values in _section(said, "each"):
        for value in values.value:
            found = read_given(Value({name: value}, value.node, said["each"].kind), sheet.words, sheet.problems)
            yield f" ({name}: {shown(plain(value.node))})", found.over(given)


def _require_rules(said: Value, decision: Decision, problems: list[Problem]) -> None:
    """A rule that a case names is one of the decision's."""
    rules = [rule.id for rule in decision.rules]
    for named in [*([said["rule"]] if "rule" in said else []), *(rule for _, rule in _section(said, "rejects"))]:
        if named.value not in rules:
            unknown = f"'{decision.name}' has no rule '{named.value}'{did_you_mean(named.value, rules)}"
            problems.append(named.problem(unknown))


def _require_read(said: Value, decision: Decision, sheet: _Sheet) -> None:
    """What a case gives can make a difference: the decision reads it, or what it rests on does."""
    policies = sheet.words.policies
    known, read = {*sheet.words.facts, *policies.decisions}, reach(decision, policies)
    for name, value in (*_section(said, "given"), *_section(said, "each")):
        if name in known and name not in read:
            unread = f"'{name}' makes no difference: neither '{decision.name}' reads it nor what it rests on"
            if name == decision.name:
                unread = f"'{name}' is what is asked here: it cannot be given"
            sheet.problems.append((value.node.key or value.node).problem(unread))


def reach(decision: Decision, policies: PolicySet) -> set[str]:
    """Every fact and decision that a decision rests on."""
    decisions = policies.decisions
    return {read for name in behind([decision.name], decisions) for read in decisions[name].reads}


def _launch(says: str, said: Value, sheet: _Sheet) -> Launch:
    expect = said["expect"]
    decisions = read_given(expect.value.get("decisions"), sheet.words, sheet.problems).decisions
    facts = read_given(expect.value.get("facts"), sheet.words, sheet.problems).facts
    settings = tuple(f"{name}={_typed(value.node.plain())}" for name, value in _section(said, "settings"))
    return Launch(
        says, said.node, said.at("model"), said.at("host"), settings, expect.at("refused"),
        _plain(expect, "flags"), _plain(expect, "env"), tuple(decisions.items()), tuple(facts.items()),
    )  # fmt: skip


def _plain(said: Value, key: str) -> tuple[tuple[str, Any], ...]:
    return tuple((name, plain(value.node)) for name, value in _section(said, key))


def _typed(value: Any) -> str:
    """A setting as somebody types it."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return as_yaml(value)


def _log(says: str, said: Value) -> Log:
    lines = said.at("lines")
    written = lines.splitlines() if isinstance(lines, str) else [line.value for line in lines]
    expected = tuple(
        (key, None if value.value == NOT_SET else value.value) for key, value in said["expect"].value.items()
    )
    return Log(
        says, said.node, tuple(written), said.at("backend"), said.at("engine"), said.at("exit"), expected
    )  # fmt: skip
