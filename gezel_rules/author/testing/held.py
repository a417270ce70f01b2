"""The tests of a directory held against its policies: what they cover, and which mistakes they would notice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gezel_rules.author.testing.coverage import Covered, covered, seen_in
from gezel_rules.author.testing.judge import Bench
from gezel_rules.author.testing.logs import covered_logs
from gezel_rules.author.testing.mutation import Mutated, mutated, mutated_logs
from gezel_rules.author.testing.run import Results
from gezel_rules.logs.model import LogPolicy
from gezel_rules.logs.sealed import log_policy


def coverage_of(results: Sequence[Results], benches: Mapping[str, Bench], whole: bool) -> list[Covered]:
    """What the tests show of each policy file that has decisions; ``whole``: of those without tests too."""
    found = []
    for family, bench in benches.items():
        of = [each for each in results if each.suite.family == family]
        seen = seen_in(trace for each in of for trace in each.traces)
        roots = {each.suite.root.text.name: each.suite.root for each in of}
        for file in _with_decisions(bench) if whole else [name for name in _with_decisions(bench) if name in roots]:
            found.append(covered(file, roots.get(file), bench.words.policies, seen, bench.words.unknowable))
        found += _logs(of, bench, whole)
    return found


def _logs(of: Sequence[Results], bench: Bench, whole: bool) -> Iterator[Covered]:
    """What the logs of a family show; nothing where no case is one."""
    ran = [log for each in of for log in each.logs]
    policy = log_policy(bench.words.policies) if ran else None
    tested = {each.suite.root.text.name for each in of}
    for file in _with_verdicts(policy) if policy else ():
        if policy and (whole or file in tested):
            yield covered_logs(file, policy, ran)


def _with_decisions(bench: Bench) -> list[str]:
    return sorted({decision.file for decision in bench.words.policies.decisions.values()})


def _with_verdicts(policy: LogPolicy) -> list[str]:
    files = [rule.place.file for rule in policy.rules] + [failure.place.file for failure in policy.failures]
    return sorted({*files, *(exit_.place.file for exit_ in policy.exits)})


def mutation_of(results: Sequence[Results], benches: Mapping[str, Bench]) -> list[Mutated]:
    """Which mutants of each policy file that has cases the tests let pass."""
    found = []
    for each in results:
        if each.cases:
            bench = benches[each.suite.family]
            ran = [case for other in results if other.suite.family == each.suite.family for case in other.cases]
            found.append(mutated(each.suite.root.text.name, each.suite.root, bench, ran))
        if each.logs:
            ran_logs = [log for other in results if other.suite.family == each.suite.family for log in other.logs]
            policy = log_policy(each.suite.words.policies)
            found.append(mutated_logs(each.suite.root.text.name, each.suite.root, policy, ran_logs))
    return found
