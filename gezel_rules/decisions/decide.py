"""Judge every decision of a policy set over given facts.

Pure: the same policies, facts and functions give the same trace. Recording is always on; turning the record into
words is left to ``trace`` and ``explain``, so that a launch pays only for judging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gezel_rules.errors import BadInput, Problem, Span
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.lang.evaluate import EvaluationError, Evaluator, Record
from gezel_rules.policy.model import CANDIDATE, Decision, PolicySet, Rule, behind
from gezel_rules.record import NamedTuple


class Judged(NamedTuple):
    """One rule as it was judged: ``fired`` is True, False or UNKNOWN; ``record`` the values of its nodes.

    ``candidate`` is the row a search looked at, with its name; ``None`` elsewhere.
    """

    rule: Rule
    fired: Any
    record: Record
    candidate: Any = None


class Judgement(NamedTuple):
    """A decision and how it came about: ``winner`` is ``None`` when no rule fired; ``judged`` in the order tried."""

    decision: Decision
    value: Any
    winner: Judged | None
    judged: tuple[Judged, ...]


class Trace(NamedTuple):
    """All judgements, in dependency order, with what they were made from."""

    policies: PolicySet
    facts: Mapping[str, Fact]
    functions: Mapping[str, Callable[..., Any]]
    judgements: Mapping[str, Judgement]
    names: Mapping[str, Any]

    def value(self, name: str) -> Any:
        """The decision's value (plain JSON, ``None`` when no rule fired, or UNKNOWN)."""
        return self.judgements[name].value

    def get(self, name: str) -> Any:
        """The same, and ``None`` for a decision that this set does not have."""
        return self.judgements[name].value if name in self.judgements else None


def decide(
    policies: PolicySet,
    facts: Mapping[str, Fact],
    functions: Mapping[str, Callable[..., Any]],
    goals: Iterable[str] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Trace:
    """Judge ``goals`` and all they depend on (``None``: every decision); ``given`` decisions stand as they are.

    Raises BadInput with the rule's place when a rule cannot be evaluated or two ``unique`` rules fire.
    """
    names: dict[str, Any] = dict.fromkeys(policies.judged.names, UNKNOWN)  # a fact that was left out is unknown
    for name, fact in facts.items():
        names[name] = fact.value
    names.update((name, policies.tables[name]) for name in policies.judged.lookups)
    names.update(given or {})
    evaluator = Evaluator(names, functions)
    judgements: dict[str, Judgement] = {}
    wanted = set(policies.decisions if goals is None else behind(goals, policies.decisions, given or {}))
    for name, decision in policies.decisions.items():
        if name in wanted:
            judgement = judgements[name] = _JUDGE[decision.hit](decision, policies, evaluator)
            names[name] = judgement.value
    return Trace(policies, facts, functions, judgements, names)


def _fires(rule: Rule, decision: Decision, policies: PolicySet, evaluator: Evaluator, candidate: Any = None) -> Judged:
    record: Record = []
    evaluator.record = record
    fired: Any = True
    if rule.when is not None:
        try:
            fired = evaluator.evaluate(policies.tree(rule.when))
        except EvaluationError as error:
            raise _fault(error.message, rule, decision) from None
        if fired is not True and fired is not False and fired is not UNKNOWN:
            raise _fault(f"'when' gives {fired!r}, not true or false", rule, decision)
    return tuple.__new__(Judged, (rule, fired, record, candidate))  # one for every rule: no questions asked


def _value(text: str, rule: Rule, decision: Decision, policies: PolicySet, evaluator: Evaluator) -> Any:
    try:
        return evaluator.evaluate(policies.tree(text))
    except EvaluationError as error:
        raise _fault(error.message, rule, decision) from None


def _fault(message: str, rule: Rule, decision: Decision) -> BadInput:
    said = f"rule '{rule.id}' of '{decision.name}': {message}"
    return BadInput(Problem(said, Span(rule.layer or decision.file, rule.line, 1)))


def _outcome(judged: Judged, decision: Decision, policies: PolicySet, evaluator: Evaluator) -> Any:
    evaluator.record = judged.record
    return _value(judged.rule.then, judged.rule, decision, policies, evaluator)


def _first(decision: Decision, policies: PolicySet, evaluator: Evaluator) -> Judgement:
    tried: list[Judged] = []
    for rule in decision.rules:
        judged = _fires(rule, decision, policies, evaluator)
        tried.append(judged)
        if judged.fired is True:
            value = _outcome(judged, decision, policies, evaluator)
            return Judgement(decision, value, judged, tuple(tried))
    return Judgement(decision, None, None, tuple(tried))


def _all(decision: Decision, policies: PolicySet, evaluator: Evaluator) -> tuple[tuple[Judged, ...], list[Judged]]:
    tried = tuple(_fires(rule, decision, policies, evaluator) for rule in decision.rules)
    return tried, [judged for judged in tried if judged.fired is True]


def _unique(decision: Decision, policies: PolicySet, evaluator: Evaluator) -> Judgement:
    tried, fired = _all(decision, policies, evaluator)
    if len(fired) > 1:
        both = " and ".join(f"'{judged.rule.id}'" for judged in fired)
        message = f"decision '{decision.name}' is unique, but rules {both} fire together"
        raise BadInput(Problem(message, Span(fired[1].rule.layer or decision.file, fired[1].rule.line, 1)))
    winner = fired[0] if fired else None
    value = _outcome(winner, decision, policies, evaluator) if winner else None
    return Judgement(decision, value, winner, tried)


def _collect(decision: Decision, policies: PolicySet, evaluator: Evaluator) -> Judgement:
    tried, fired = _all(decision, policies, evaluator)
    values: Any = [_outcome(judged, decision, policies, evaluator) for judged in fired]
    if any(value is UNKNOWN for value in values):
        values = UNKNOWN  # nobody could say what is not in the list
    return Judgement(decision, values, fired[0] if fired else None, tried)


def _search(decision: Decision, policies: PolicySet, evaluator: Evaluator) -> Judgement:
    assert decision.over is not None
    over = _value(decision.over, decision.rules[0], decision, policies, evaluator)
    tried: list[Judged] = []
    if over is UNKNOWN:
        return Judgement(decision, UNKNOWN, None, ())
    for name, row in _candidates(over):
        evaluator.names[CANDIDATE] = row  # type: ignore[index]
        for rule in decision.rules:
            judged = _fires(rule, decision, policies, evaluator, (name, row))
            tried.append(judged)
            if judged.fired is True:
                if rule.then == "accept":
                    return Judgement(decision, name, judged, tuple(tried))
                break
    return Judgement(decision, None, None, tuple(tried))


def _candidates(over: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(over, dict):
        return [(name, {**row, "name": name} if isinstance(row, dict) else row) for name, row in over.items()]
    return [(value, value) for value in over]


_JUDGE: dict[str, Callable[[Decision, PolicySet, Evaluator], Judgement]] = {
    "first": _first,
    "unique": _unique,
    "collect": _collect,
    "search": _search,
}
