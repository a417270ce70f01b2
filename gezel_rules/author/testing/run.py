"""All cases of some suites, run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gezel_rules.author.testing.given import Words
from gezel_rules.author.testing.judge import Bench, Ran
from gezel_rules.author.testing.launches import Planner, RanLaunch, run_launch
from gezel_rules.author.testing.logs import RanLog, run_log
from gezel_rules.author.testing.suites import Suite
from gezel_rules.decisions.decide import Trace
from gezel_rules.engines import plain_functions
from gezel_rules.facts.vocabulary import Word, fact_types
from gezel_rules.lang.types import Function
from gezel_rules.logs.sealed import log_policy
from gezel_rules.policy.model import PolicySet
from gezel_rules.record import NamedTuple

AnyRan = Ran | RanLaunch | RanLog


class Results(NamedTuple):
    """What became of every case of a suite, in the order of the file."""

    suite: Suite
    cases: tuple[Ran, ...]
    launches: tuple[RanLaunch, ...]
    logs: tuple[RanLog, ...]

    @property
    def all(self) -> tuple[AnyRan, ...]:
        """Every case that was run."""
        return (*self.cases, *self.launches, *self.logs)

    @property
    def traces(self) -> list[Trace]:
        """How decisions were made, in every case that could be judged."""
        traces = [*(ran.trace for ran in self.cases), *(ran.trace for ran in self.launches)]
        return [trace for trace in traces if trace is not None]

    @property
    def failed(self) -> list[AnyRan]:
        """The cases that are not as expected."""
        return [ran for ran in self.all if not ran.passed]


def words_of(vocabulary: Iterable[Word], functions: Mapping[str, Function], policies: PolicySet) -> Words:
    """What the cases of a family may speak of: of its functions, those that are bound to a model and a machine are
    given answers."""
    words = tuple(vocabulary)
    bound = {name: each for name, each in functions.items() if name not in plain_functions.SIGNATURES}
    return Words(fact_types(words), frozenset(word.name for word in words if word.unknown), policies, bound)


def run_suites(suites: Sequence[Suite], plan: Planner, benches: Mapping[str, Bench]) -> list[Results]:
    """Run everything; ``benches`` by family."""
    return [_run(suite, plan, benches[suite.family]) for suite in suites]


def benches_of(suites: Sequence[Suite]) -> dict[str, Bench]:
    """A bench for every family that has cases."""
    return {suite.family: Bench(suite.words) for suite in suites}


def _run(suite: Suite, plan: Planner, bench: Bench) -> Results:
    cases = suite.cases
    logs = log_policy(suite.words.policies) if cases.logs else None
    return Results(
        suite,
        tuple(bench.run(case) for case in cases.cases),
        tuple(run_launch(case, plan) for case in cases.launches),
        tuple(run_log(case, logs) for case in cases.logs) if logs else (),
    )
