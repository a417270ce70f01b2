"""Running the cases of decisions: the decision, and what it rests on that is not given, judged on the facts given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gezel_rules.author.testing.cases import Case
from gezel_rules.author.testing.given import Given, Words, answering, changed_tables
from gezel_rules.decisions.decide import Judgement, Trace, decide
from gezel_rules.engines import plain_functions
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.policy.model import PolicySet
from gezel_rules.record import NamedTuple

SOURCE = "the case"


class Difference(NamedTuple):
    """Where a case and the policies part: ``what`` was asked, what was ``expected``, and what they gave (``got``)."""

    what: str
    expected: Any
    got: Any


class Ran(NamedTuple):
    """A case that was run: its ``trace`` (``None``: it could not be judged, for what ``fault`` says), and every
    difference."""

    case: Case
    trace: Trace | None
    differences: tuple[Difference, ...]
    fault: BadInput | None = None

    @property
    def passed(self) -> bool:
        """Whether all is as expected."""
        return not self.differences and self.fault is None


class Bench:
    """Runs cases of one family's policies; ``words`` are what they may speak of."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self._unset = {name: Fact(None, "not set") for name, type_ in words.facts.items() if type_.optional}
        self._given: dict[int, tuple[Mapping[str, Fact], Mapping[str, Any], Mapping[str, Callable[..., Any]]]] = {}

    def run(self, case: Case, policies: PolicySet | None = None, tables: Mapping[str, Any] = {}) -> Ran:
        """One case, on other ``policies`` or with other ``tables`` where some are named."""
        facts, decisions, functions = self._of(case)
        try:
            trace = decide(policies or self.words.policies, facts, functions, (case.decision,), {**tables, **decisions})
        except BadInput as error:
            return Ran(case, None, (), error)
        return Ran(case, trace, tuple(differences(case, trace.judgements[case.decision])))

    def _of(self, case: Case) -> tuple[Mapping[str, Fact], Mapping[str, Any], Mapping[str, Callable[..., Any]]]:
        """What is given to the judge, made once for a case."""
        found = self._given.get(id(case))
        if found is None:
            found = self._given[id(case)] = self._made(case.given)
        return found

    def _made(self, given: Given) -> tuple[Mapping[str, Fact], Mapping[str, Any], Mapping[str, Callable[..., Any]]]:
        facts = {**self._unset, **{name: Fact(value, SOURCE) for name, value in given.facts.items()}}
        decisions = {**given.decisions, **changed_tables(given, self.words.policies)}
        return facts, decisions, {**plain_functions.CALLABLES, **answering(given.answers, self.words.functions)}


def differences(case: Case, judgement: Judgement) -> Iterator[Difference]:
    """Where a judgement is not what a case expects."""
    if not same(case.value, judgement.value):
        yield Difference("value", case.value, judgement.value)
    rule = judgement.winner.rule.id if judgement.winner else None
    if case.rule and case.rule != rule:
        yield Difference("rule", case.rule, rule)
    turned_down = {str(each.candidate[0]): each.rule.id for each in judgement.judged if _rejects(each, judgement)}
    for row, expected in case.rejects:
        if turned_down.get(row) != expected:
            yield Difference(f"candidate {row}, turned down by", expected, turned_down.get(row))
    named = [row for row, _ in case.rejects if row in turned_down]
    tried = [row for row in turned_down if row in named]
    if named != tried:
        yield Difference("order of candidates", named, tried)


def _rejects(judged: Any, judgement: Judgement) -> bool:
    return judged.candidate is not None and judged.fired is True and judged is not judgement.winner


def same(expected: Any, got: Any) -> bool:
    """Whether a value is what was expected; of a record, as far as it was said."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return all(key in got and same(value, got[key]) for key, value in expected.items())
    if isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple)):
        return len(expected) == len(got) and all(map(same, expected, got))
    if expected is UNKNOWN or got is UNKNOWN or isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    return bool(expected == got)
