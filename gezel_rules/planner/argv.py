"""Decided flags → argv: each flag with its tokens, in the order policy lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gezel_rules.decisions.decide import Trace
from gezel_rules.errors import BadInput, Problem, Span
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.policy.model import WHATEVER
from gezel_rules.record import NamedTuple


class Flag(NamedTuple):
    """The tokens one decision put into argv."""

    tokens: tuple[str, ...]
    decision: str


def flags(trace: Trace) -> list[Flag]:
    """Every flag that is passed. Raises BadInput when a flag's value is unknown: an argv holds no guesses."""
    return list(_flags(trace))


def _flags(trace: Trace) -> Iterator[Flag]:
    for name in trace.policies.flags:
        judgement = trace.judgements[name]
        decision = judgement.decision
        if judgement.value is UNKNOWN:
            raise BadInput(Problem(f"'{name}' is unknown", Span(decision.file, decision.line, 1)))
        tokens = _tokens(decision.flag or "", judgement.value)
        if tokens:
            yield Flag(tokens, name)


def _tokens(flag: str, value: Any) -> tuple[str, ...]:
    if value is None or value is False:
        return ()
    if flag == WHATEVER:
        return tuple(map(str, value))
    if value is True:
        return (flag,)
    return (flag, ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
