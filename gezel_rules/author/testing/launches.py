"""Running the cases of whole launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from gezel_rules.author.testing.cases import Launch
from gezel_rules.author.testing.judge import Difference, same
from gezel_rules.decisions.decide import Trace
from gezel_rules.errors import BadInput
from gezel_rules.record import NamedTuple


class Launched(NamedTuple):
    """A launch as it was planned: the tokens of each flag, the environment, and how it was decided."""

    flags: Sequence[Sequence[str]]
    env: Mapping[str, str]
    trace: Trace


Planner = Callable[[str, str, Sequence[str]], Launched]
"""Plans a model on a host under settings (``NAME=VALUE``). Raises BadInput."""


class RanLaunch(NamedTuple):
    """A launch that was planned (``None``: it could not be, for what ``fault`` says), and every difference."""

    case: Launch
    trace: Trace | None
    differences: tuple[Difference, ...]
    fault: BadInput | None = None

    @property
    def passed(self) -> bool:
        """Whether all is as expected."""
        return not self.differences and self.fault is None


def run_launch(case: Launch, plan: Planner) -> RanLaunch:
    """Plan a launch and hold it against what it must be."""
    try:
        launched = plan(case.model, case.host, case.settings)
    except BadInput as error:
        return RanLaunch(case, None, (), error)
    return RanLaunch(case, launched.trace, tuple(_of_launch(case, launched)))


def _of_launch(case: Launch, launched: Launched) -> Iterator[Difference]:
    refusal = launched.trace.get("refusal")
    if refusal != case.refusal:
        yield Difference("refused", case.refusal, refusal)
    tokens = {flag[0]: flag[1] if len(flag) == 2 else True for flag in launched.flags if flag}
    for name, value in case.flags:
        got = tokens.get(name)
        if str(got) != str(value):
            yield Difference(name, value, got)
    for name, value in case.env:
        if launched.env.get(name) != (None if value is None else str(value)):
            yield Difference(name, value, launched.env.get(name))
    facts = {name: fact.value for name, fact in launched.trace.facts.items()}
    for name, value in (*case.decisions, *case.facts):
        got = facts[name] if name in facts else launched.trace.get(name)
        if not same(value, got):
            yield Difference(name, value, got)
