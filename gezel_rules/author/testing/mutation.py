"""Whether the tests would notice a mistake: each mutant of a decision is run through the cases that judge it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from gezel_rules.author.testing.judge import Bench, Ran
from gezel_rules.author.testing.mutants import KINDS, Mutant, mutants
from gezel_rules.author.testing.places import rule_node
from gezel_rules.documents.node import Node
from gezel_rules.policy.model import Decision, PolicySet, Rule
from gezel_rules.record import NamedTuple

_REASON = re.compile(rf"#\s*survives ({'|'.join(KINDS)}): (\S.*)")


class Survivor(NamedTuple):
    """A mutant that no test noticed, at ``file:line``; ``reason`` is why none can, as the policy says beside the rule
    ("": it says nothing)."""

    place: str
    decision: str
    rule: str
    kind: str
    says: str
    reason: str


class Mutated(NamedTuple):
    """What became of the mutants of one policy file: how many there were, and those that survived. ``idle``: reasons
    that stand beside rules of which nothing survives, as (place, kind)."""

    file: str
    mutants: int
    survivors: tuple[Survivor, ...]
    idle: tuple[tuple[str, str], ...]

    @property
    def unexplained(self) -> list[Survivor]:
        """The survivors of which the policy says nothing."""
        return [each for each in self.survivors if not each.reason]


def mutated(file: str, root: Node, bench: Bench, ran: Sequence[Ran]) -> Mutated:
    """Run all mutants of a policy file; ``ran``: every case of its family, as it went on the policies as they are."""
    policies, count = bench.words.policies, 0
    survivors: list[Survivor] = []
    reasons: dict[tuple[int, str], str] = {}
    for decision in policies.decisions.values():
        if decision.file != file:
            continue
        cases = _judging(decision, ran)
        for rule in decision.rules:
            reasons |= {(rule.line, kind): reason for kind, reason in _reasons(rule, decision, root)}
        for mutant in mutants(decision, policies):
            count += 1
            if not _noticed(mutant, cases, bench, policies):
                survivors.append(_survivor(mutant, decision, reasons))
    used = {(each.place, each.kind) for each in survivors}
    idle = [(f"{file}:{line}", kind) for line, kind in reasons if (f"{file}:{line}", kind) not in used]
    return Mutated(file, count, tuple(survivors), tuple(idle))


def _judging(decision: Decision, ran: Sequence[Ran]) -> list[Ran]:
    """The cases in which the decision was judged, its own first."""
    judging = [each for each in ran if each.passed and each.trace and decision.name in each.trace.judgements]
    return sorted(judging, key=lambda each: each.case.decision != decision.name)


def _noticed(mutant: Mutant, cases: Sequence[Ran], bench: Bench, policies: PolicySet) -> bool:
    changed = policies.changed(mutant.decision)
    return any(not bench.run(each.case, changed).passed for each in cases)


def _survivor(mutant: Mutant, decision: Decision, reasons: dict[tuple[int, str], str]) -> Survivor:
    reason = reasons.get((mutant.rule.line, mutant.kind), "")
    place = f"{decision.file}:{mutant.rule.line}"
    return Survivor(place, decision.name, mutant.rule.id, mutant.kind, mutant.says, reason)


def _reasons(rule: Rule, decision: Decision, root: Node) -> Iterator[tuple[str, str]]:
    """What comments within a rule say of mutants that survive: ``# survives swap: both give the same``."""
    for line in _lines(rule_node(rule, decision, root)):
        if found := _REASON.search(line):
            yield found[1], found[2].strip()


def _lines(node: Node) -> Iterator[str]:
    """The lines of a mapping: its first, and those below that are indented further."""
    first, *below = node.text.text.split("\n")[(node.key or node).line - 1 :]
    yield first
    yield from takewhile(lambda line: not line.strip() or _indent(line) > _indent(first), below)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
