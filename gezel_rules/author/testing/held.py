"""The tests of a directory held against its policies: what they cover, and which mistakes they would notice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gezel_rules.author.testing.coverage import Covered, covered, seen_in
from gezel_rules.author.testing.judge import Bench
from gezel_rules.author.testing.mutation import Mutated, mutated
from gezel_rules.author.testing.run import Results


def coverage_of(results: Sequence[Results], benches: Mapping[str, Bench], whole: bool) -> list[Covered]:
    """What the tests show of each policy file that has decisions; ``whole``: of those without tests too."""
    found = []
    for family, bench in benches.items():
        of = [each for each in results if each.suite.family == family]
        seen = seen_in(trace for each in of for trace in each.traces)
        roots = {each.suite.root.text.name: each.suite.root for each in of}
        for file in _with_decisions(bench) if whole else [name for name in _with_decisions(bench) if name in roots]:
            found.append(covered(file, roots.get(file), bench.words.policies, seen, bench.words.unknowable))
    return found


def _with_decisions(bench: Bench) -> list[str]:
    return sorted({decision.file for decision in bench.words.policies.decisions.values()})


def mutation_of(results: Sequence[Results], benches: Mapping[str, Bench]) -> list[Mutated]:
    """Which mutants of each policy file that has cases the tests let pass."""
    found = []
    for each in results:
        if each.cases:
            bench = benches[each.suite.family]
            ran = [case for other in results if other.suite.family == each.suite.family for case in other.cases]
            found.append(mutated(each.suite.root.text.name, each.suite.root, bench, ran))
    return found
