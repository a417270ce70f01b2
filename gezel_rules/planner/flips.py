"""What would make a decision fall otherwise: one fact changed at a time, and each change proved by deciding again."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gezel_rules.decisions.decide import Judgement, Trace, decide
from gezel_rules.decisions.words import LONGEST_LISTED, say
from gezel_rules.engines import plain_functions
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.planner import changes
from gezel_rules.planner.changes import Change, Scale
from gezel_rules.policy.model import behind
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.planner.plan import Plan
    from gezel_rules.policy.model import Decision

REFUSAL = "refusal"
MOST_DECIDED = 160
"""Times one decision is judged again for its flips and unknown facts. One takes 3 to 10 ms over the catalog and its
hosts, so that an explanation takes two seconds at most."""


class Flip(NamedTuple):
    """``fact`` at the value ``to`` makes ``rule`` win, with ``value``; ``says`` is the change in words."""

    fact: str
    to: Any
    value: Any
    rule: str | None
    says: str

    def to_json(self) -> dict[str, Any]:
        """All but the words."""
        return {"fact": self.fact, "to": self.to, "value": self.value, "rule": self.rule}


class Unsettled(NamedTuple):
    """An unknown ``fact`` on which the answer hangs: with the value ``to`` it would be ``value``; ``settle``: what
    would tell the fact; ``unit``: that of the fact."""

    fact: str
    settle: str
    to: Any
    value: Any
    unit: str = ""

    @property
    def says(self) -> str:
        """The line for people."""
        long = isinstance(self.to, list) and len(self.to) > LONGEST_LISTED
        to = "all there are" if long else say(self.to, self.unit)
        answer = "not be known" if self.value is UNKNOWN else f"be {say(self.value)}"
        return f"{self.fact} is unknown; {self.settle or 'nothing here'} would tell: with {to} this would {answer}"

    def to_json(self) -> dict[str, Any]:
        """Fact, what would tell it, and a value that makes a difference."""
        value = None if self.value is UNKNOWN else self.value
        return {"fact": self.fact, "settle": self.settle, "to": self.to, "value": value}


class WhatIf(NamedTuple):
    """One decision under changed facts: what flips it, memory first, and the unknown facts on which it hangs;
    ``judged``: how often it was judged again."""

    flips: tuple[Flip, ...]
    unsettled: tuple[Unsettled, ...]
    judged: int = 0

    @property
    def whole(self) -> bool:
        """Whether the search came to its end."""
        return self.judged < MOST_DECIDED

    def to_json(self) -> dict[str, Any]:
        """The two lists."""
        return {"flips": [flip.to_json() for flip in self.flips], "unsettled": [u.to_json() for u in self.unsettled]}


NOT_TRIED = WhatIf((), ())


def what_if(plan: Plan, judgement: Judgement, wanted: Callable[[Any], bool] | None = None) -> WhatIf:
    """What would change a decision; with ``wanted``, only to a value that it holds of, whichever rule gives it. Memory
    comes first, then what stands nearest to the decision; after ``MOST_DECIDED`` judgements the search ends with what
    it has found."""
    again = _Again(plan, judgement, wanted)
    facts = _facts_behind(plan.trace, judgement)
    unsettled = tuple(_unsettled(again, facts))
    scales = [*(changes.memory(plan) if _asks_the_family(plan.trace, judgement) else ()), *changes.numbers(plan, facts)]
    found = [flip for scale in scales for flip in _nearest(again, scale)]
    found += filter(None, map(again.flip, changes.words(plan, facts)))
    return WhatIf(tuple(found), unsettled, MOST_DECIDED - again.left)


class _Again:
    """One decision of a plan, judged again and again."""

    def __init__(self, plan: Plan, judgement: Judgement, wanted: Callable[[Any], bool] | None) -> None:
        self.plan, self.now, self.wanted, self.left = plan, judgement, wanted, MOST_DECIDED

    def under(self, facts: Mapping[str, Fact], *also: str) -> Trace | None:
        """The decision, and others, under changed facts; ``None`` for facts that do not go together, and when it was
        judged often enough."""
        if self.left == 0:
            return None
        self.left -= 1
        plan, changed = self.plan, {**self.plan.trace.facts, **facts}
        try:
            fit = plan.subject.family.fit(
                plan.subject, plan.trace.policies, changed, plan.request.held, plan.request.cache
            )
            fit = fit.lessened(plan.fit.share) if plan.fit.share < 1 else fit
            goals = [self.now.decision.name, *also]
            return decide(plan.trace.policies, {**changed, **fit.facts(), **facts}, fit.functions(), goals)
        except BadInput:
            return None

    def flip(self, change: Change) -> Flip | None:
        """What the change flips: another rule wins, with another value that is no more than the fact handed on, and
        the launch is not refused for it."""
        trace = self.under(change.facts)
        after = trace.judgements[self.now.decision.name] if trace else None
        if trace is None or after is None or not self._falls_otherwise(after) or _hands_on(trace, after, change.fact):
            return None
        return self._unrefused(change, after)

    def _falls_otherwise(self, after: Judgement) -> bool:
        if self.wanted is not None:
            return self.wanted(after.value)
        other_rule = self.now.decision.hit == "search" or _rule(after) != _rule(self.now)
        return other_rule and after.value is not UNKNOWN and after.value != self.now.value

    def _unrefused(self, change: Change, after: Judgement) -> Flip | None:
        if self.now.decision.name != REFUSAL and not self.plan.refused:
            trace = self.under(change.facts, REFUSAL)
            if trace is None or trace.value(REFUSAL) is not None:
                return None
        return Flip(change.fact, change.facts[change.fact].value, after.value, _rule(after), change.says)


def _rule(judgement: Judgement) -> str | None:
    return judgement.winner.rule.id if judgement.winner else None


def _hands_on(trace: Trace, judgement: Judgement, fact: str) -> bool:
    """Whether a decision's value is nothing but a fact's, through however many decisions."""
    following: Judgement | None = judgement
    while following is not None and following.winner is not None:
        then = following.winner.rule.then
        if then == fact:
            return True
        following = trace.judgements.get(then)
    return False


def _nearest(again: _Again, scale: Scale) -> Iterator[Flip]:
    """The smallest step up that flips, and the smallest down: doubled until one does, then halved between."""
    for sign, most in ((1, scale.up), (-1, scale.down)):
        below, step = 0, min(1, most)
        found = None
        while step > below and (found := again.flip(scale.at(sign * step))) is None:
            below, step = step, min(2 * step, most)
        while found is not None and step - below > 1:
            middle = (below + step) // 2
            closer = again.flip(scale.at(sign * middle))
            below, step, found = (below, middle, closer) if closer else (middle, step, found)
        if found is not None:
            yield found


def _unsettled(again: _Again, facts: Sequence[str]) -> Iterator[Unsettled]:
    """The unknown facts that make a difference, each with a first value that does."""
    trace = again.plan.trace
    known = {word.name: word for word in again.plan.subject.family.vocabulary()}
    for name in facts:
        fact, word = trace.facts.get(name), known.get(name)
        if fact is None or word is None or fact.value is not UNKNOWN:
            continue
        for value in changes.possible(again.plan, word):
            after = again.under({name: fact._replace(value=value)})
            answer = after.value(again.now.decision.name) if after else UNKNOWN
            if after is not None and answer != again.now.value:
                yield Unsettled(name, fact.settle or word.settle, value, answer, word.unit)
                break


def _behind(trace: Trace, judgement: Judgement) -> list[Decision]:
    """The decision and all it may rest on, the nearest first."""
    decisions = trace.policies.decisions
    return [decisions[name] for name in behind([judgement.decision.name], decisions)]


def _facts_behind(trace: Trace, judgement: Judgement) -> list[str]:
    reads = (read for each in _behind(trace, judgement) for read in each.reads)
    return list(dict.fromkeys(read for read in reads if read in trace.facts))


def _asks_the_family(trace: Trace, judgement: Judgement) -> bool:
    """Whether memory may count: some rule asks a function that is bound to model and machine."""
    rules = [rule for each in _behind(trace, judgement) for rule in each.rules]
    texts = {text for rule in rules for text in (rule.when, rule.then) if text and text not in ("accept", "reject")}
    nodes = (node for text in texts for node in ast.walk(trace.policies.tree(text)))
    called = (node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    return any(name not in plain_functions.SIGNATURES for name in called)
