"""Whether the tests would notice a mistake: each mutant of a decision is run through the cases that judge it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gezel_rules.author.testing.cells import cell_mutants
from gezel_rules.author.testing.judge import Bench, Ran
from gezel_rules.author.testing.logs import RanLog, court_of, log_mutants, noticed
from gezel_rules.author.testing.mutants import KINDS, Mutant, mutants
from gezel_rules.decisions.decide import Trace
from gezel_rules.documents.node import Node
from gezel_rules.logs.model import LogPolicy
from gezel_rules.policy.model import PolicySet
from gezel_rules.record import NamedTuple

_REASON = re.compile(rf"#\s*survives ({'|'.join(KINDS)}): (\S.*)")


class Survivor(NamedTuple):
    """A mutant that no case noticed, at ``file:line``: in which decision or table (``of``), at which rule or row
    (``part``). ``reason`` is why none can, as the policy says beside it ("": it says nothing)."""

    place: str
    of: str
    part: str
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
    every = [*_of_decisions(file, bench.words.policies), *cell_mutants(root, bench.words.policies)]
    cases = {name: _judging(name, ran) for name in {mutant.of for mutant in every}}
    survived = [mutant for mutant in every if not _noticed(mutant, cases[mutant.of], bench)]
    return _held(file, root, len(every), survived)


def mutated_logs(file: str, root: Node, policy: LogPolicy, ran: Sequence[RanLog]) -> Mutated:
    """Run all mutants of the verdicts and failure classes of a log policy; ``ran``: every log of its family."""
    every = list(log_mutants(file, policy))
    logs = [(each, court_of(each, policy)) for each in ran if each.passed]
    survived = [each.mutant for each in every if not any(noticed(each, *log) for log in logs)]
    return _held(file, root, len(every), survived)


def _held(file: str, root: Node, count: int, survived: Sequence[Mutant]) -> Mutated:
    """What survived, with what comments say of it."""
    reasons = dict(_reasons(root))
    used = {(each.line, each.kind) for each in survived}
    idle = tuple((f"{file}:{line}", kind) for line, kind in reasons if (line, kind) not in used)
    return Mutated(file, count, tuple(_survivor(file, each, reasons) for each in survived), idle)


def _survivor(file: str, mutant: Mutant, reasons: Mapping[tuple[int, str], str]) -> Survivor:
    reason = reasons.get((mutant.line, mutant.kind), "")
    return Survivor(f"{file}:{mutant.line}", mutant.of, mutant.part, mutant.kind, mutant.says, reason)


def _of_decisions(file: str, policies: PolicySet) -> Iterator[Mutant]:
    for decision in policies.decisions.values():
        if decision.file == file:
            yield from mutants(decision, policies)


def _judging(name: str, ran: Sequence[Ran]) -> list[Ran]:
    """The cases in which a decision was judged, or one that reads a table; its own first."""
    judging = [each for each in ran if each.passed and each.trace and _is_judged(name, each.trace)]
    return sorted(judging, key=lambda each: each.case.decision != name)


def _is_judged(name: str, trace: Trace) -> bool:
    return name in trace.judgements or any(name in each.decision.reads for each in trace.judgements.values())


def _noticed(mutant: Mutant, cases: Sequence[Ran], bench: Bench) -> bool:
    policies = bench.words.policies
    changed = policies.changed(mutant.decision) if mutant.decision else policies
    return any(not bench.run(each.case, changed, mutant.tables).passed for each in cases)


def _reasons(root: Node) -> Iterator[tuple[tuple[int, str], str]]:
    """What comments say of mutants that survive, on the line of a rule or row or below it, as in ``# survives swap:
    both give the same``: (the line of that rule or row, kind) → reason."""
    starts = sorted(_starts(root))
    for number, line in enumerate(root.text.text.split("\n"), 1):
        if found := _REASON.search(line):
            yield (max((start for start in starts if start <= number), default=1), found[1]), found[2].strip()


def _starts(root: Node) -> Iterator[int]:
    """The lines on which rules, rows, and decisions of one rule begin."""
    for decision in _values(root, "decisions"):
        yield from (rule.line for rule in decision.value["rules"].value) if "rules" in decision.value else ()
        yield (decision.key or decision).line
    for section in ("rules", "failures", "exits"):  # of a log policy
        yield from (entry.line for entry in root.value[section].value) if section in root.value else ()
    for table in _values(root, "tables"):
        rows = table.value.get("rows", table) if isinstance(table.value, dict) else table
        yield from ((row.key or row).line for row in rows.value.values()) if isinstance(rows.value, dict) else ()


def _values(root: Node, section: str) -> list[Node]:
    return list(root.value[section].value.values()) if section in root.value else []
