"""The cases of a test file, read: every name they speak of is held against the policies and the facts there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gezel_rules.author.testing.form import NOT_SET, TESTS
from gezel_rules.author.testing.given import Given, Words, plain, read_given, read_value, shown
from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.documents.read import Value, read
from gezel_rules.errors import Problem
from gezel_rules.policy.model import STAND_DOWNS
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

    @property
    def place(self) -> str:
        """``file:line``."""
        key = self.node.key or self.node
        return f"{key.text.name}:{key.line}"


class Launch(NamedTuple):
    """What a whole launch must be: its ``refusal`` (``None``: none), ``flags``, ``env`` and ``decisions`` by name."""

    says: str
    node: Node
    model: str
    host: str
    settings: tuple[str, ...]
    refusal: str | None
    flags: tuple[tuple[str, Any], ...]
    env: tuple[tuple[str, Any], ...]
    decisions: tuple[tuple[str, Any], ...]


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


def read_cases(root: Node, policy: str, words: Words, problems: list[Problem]) -> Cases:
    """The cases of the test file beside ``policy``; whatever is wrong with them is added to ``problems``."""
    said = read(root, TESTS, problems)
    if "tests" in said and said.at("tests") != policy:
        problems.append(said["tests"].problem(f"tests must name the policy beside this file: '{policy}'"))
    base = read_given(said.value.get("given"), words, problems)
    cases = [
        case for name, decision in _section(said, "decisions")
        for case in _cases(name, decision, policy, base, words, problems)
    ]  # fmt: skip
    launches = [_launch(says, each, words, problems) for says, each in _section(said, "launches") if each.complete]
    logs = [_log(says, each) for says, each in _section(said, "logs") if each.complete]
    return Cases(policy, tuple(cases), tuple(launches), tuple(logs))


def _section(said: Value, key: str) -> Iterator[tuple[str, Value]]:
    yield from (said.at(key) or {}).items()


def _cases(name: str, said: Value, policy: str, base: Given, words: Words, problems: list[Problem]) -> Iterator[Case]:
    decisions = {each.name: each for each in words.policies.decisions.values() if each.policy == policy}
    if name not in decisions:
        unknown = f"'{policy}' has no decision '{name}'{did_you_mean(name, decisions)}"
        problems.append((said.node.key or said.node).problem(unknown))
        return
    rules = [rule.id for rule in decisions[name].rules if rule.id not in STAND_DOWNS] + list(STAND_DOWNS)
    base = read_given(said.value.get("given"), words, problems).over(base).without(name)
    for says, case in said.value.items():
        if says != "given" and case.complete:
            _require_rules(case, name, rules, problems)
            value, rule = read_value(name, case["expect"].node, words, problems), case.at("rule") or ""
            rejects = tuple((row, rule.value) for row, rule in (case.at("rejects") or {}).items())
            for note, given in _each(case, read_given(case.value.get("given"), words, problems), words, problems):
                _require_others(case, name, given, problems)
                yield Case(f"{says}{note}", case.node, name, given.over(base), value, rule, rejects)


def _each(case: Value, given: Given, words: Words, problems: list[Problem]) -> Iterator[tuple[str, Given]]:
    """What is given, once with every value under ``each``, and how that is said behind the case's sentence."""
    each = case.value.get("each")
    if each is None:
        yield "", given
        return
    for name, values in each.value.items():
        for value in values.value:
            found = read_given(Value({name: value}, value.node, each.kind), words, problems)
            yield f" ({name}: {shown(plain(value.node))})", found.over(given)


def _require_rules(case: Value, decision: str, rules: list[str], problems: list[Problem]) -> None:
    """A rule that a case names is one of the decision's."""
    named = [case["rule"]] if "rule" in case else []
    for said in [*named, *(case.at("rejects") or {}).values()]:
        if said.value not in rules:
            problems.append(said.problem(f"'{decision}' has no rule '{said.value}'{did_you_mean(said.value, rules)}"))


def _require_others(case: Value, decision: str, given: Given, problems: list[Problem]) -> None:
    if decision in given.decisions:
        problems.append(case["given"].problem(f"'{decision}' is what is asked here: it cannot be given"))


def _launch(says: str, said: Value, words: Words, problems: list[Problem]) -> Launch:
    expect = said["expect"]
    settings = [(name, value.node.plain()) for name, value in (said.at("settings") or {}).items()]
    for name, value in (expect.at("decisions") or {}).items():
        if name not in words.policies.decisions:
            hint = did_you_mean(name, words.policies.decisions)
            problems.append((value.node.key or value.node).problem(f"no decision '{name}'{hint}"))
    return Launch(
        says, said.node, said.at("model"), said.at("host"), tuple(f"{name}={_typed(v)}" for name, v in settings),
        expect.at("refused"), *(_plain(expect, key) for key in ("flags", "env", "decisions")),
    )  # fmt: skip


def _plain(said: Value, key: str) -> tuple[tuple[str, Any], ...]:
    return tuple((name, plain(value.node)) for name, value in (said.at(key) or {}).items())


def _typed(value: Any) -> str:
    """A setting as somebody types it."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _log(says: str, said: Value) -> Log:
    lines = said.at("lines")
    written = lines.splitlines() if isinstance(lines, str) else [line.value for line in lines]
    expected = tuple(
        (key, None if value.value == NOT_SET else value.value) for key, value in said["expect"].value.items()
    )
    return Log(
        says, said.node, tuple(written), said.at("backend"), said.at("engine"), said.at("exit"), expected
    )  # fmt: skip
