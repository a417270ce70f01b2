"""Running the cases of logs; what they show of verdicts and failure classes; and mistakes in these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from gezel_rules.author.testing.cases import Log
from gezel_rules.author.testing.coverage import Covered, Gap
from gezel_rules.author.testing.judge import Difference
from gezel_rules.author.testing.mutants import Mutant
from gezel_rules.logs.model import Condition, Exit, Failure, LogPolicy, Rule, holds
from gezel_rules.logs.verdict import Court, Evidence, Verdict, judge
from gezel_rules.logs.watch import gathered
from gezel_rules.record import NamedTuple

Entry = Rule | Failure | Exit
_SECTIONS = ("rules", "failures", "exits")
_LACKING = {True: "fires in no log", False: "fires in every log that tries it"}
_MISSING = {True: "never seen", False: "never missing"}


class RanLog(NamedTuple):
    """A log that was judged: what it is evidence of, the verdict, and every difference."""

    case: Log
    evidence: Mapping[str, Evidence]
    verdict: Verdict
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        """Whether all is as expected."""
        return not self.differences


def run_log(case: Log, policy: LogPolicy) -> RanLog:
    """Judge a log and hold the verdict against what it must mean."""
    evidence = gathered(case.lines, policy, case.backend, case.engine)
    verdict = judge(policy, evidence, case.backend, case.exit)
    strange = case.backend is not None and case.backend not in policy.backends
    nobody = [Difference("backend", "one that log policies know", case.backend)] if strange else []
    return RanLog(case, evidence, verdict, (*nobody, *_differences(case, verdict)))


def _differences(case: Log, verdict: Verdict) -> Iterator[Difference]:
    rules = {"rule": verdict.rule, "gpu_rule": verdict.gpu_rule}
    found = {**verdict._asdict(), **{key: rule.id if rule else None for key, rule in rules.items()}}
    for key, value in case.expected:
        if found[key] != value:
            yield Difference(key, value, found[key])


def court_of(ran: RanLog, policy: LogPolicy) -> Court:
    """The judgement of a log by a policy that sees the same in its lines."""
    return Court(policy, ran.evidence, ran.case.backend, ran.case.exit)


def noticed(mutant: LogMutant, ran: RanLog, court: Court) -> bool:
    """Whether a log does not mean what it must where a mistake was made; ``court``: as it is judged without."""
    if mutant.entry is not None and _holds_entry(mutant.entry, court) == _holds_entry(mutant.instead, court):
        return False
    return any(_differences(ran.case, judge(mutant.policy, ran.evidence, ran.case.backend, ran.case.exit)))


def _holds_entry(entry: Entry | None, court: Court) -> bool:
    """Whether an entry, taken by itself, holds."""
    if entry is None:
        return False
    if isinstance(entry, Exit):
        return entry in court.exits
    if entry.condition is not None:
        return holds(entry.condition, court.seen, court.backend)
    return isinstance(entry, Failure) and court.own(entry.id) is not None


def covered_logs(file: str, policy: LogPolicy, ran: Sequence[RanLog]) -> Covered:
    """What logs show of the verdicts, failure classes and exit statuses of a file. Patterns prove themselves, by the
    lines beside them."""
    courts = [(each, court_of(each, policy)) for each in ran]
    gaps: list[Gap] = []
    rules = conditions = 0
    entries = [entry for section in _SECTIONS for entry in getattr(policy, section) if entry.place.file == file]
    for entry in entries:
        fired = {_fired(entry, each, court) for each, court in courts if _is_tried(entry, each, policy)}
        lacking = [outcome for outcome in (True, False) if outcome not in fired]
        rules += 2 - len(lacking)
        gaps += [_gap(entry, _LACKING[each]) for each in lacking] if fired else [_gap(entry, "no log tries it")]
    parts = [(entry, part) for entry in entries for part in _parts(getattr(entry, "condition", None))]
    for entry, part in parts:
        came_to = {_holds(part, court) for each, court in courts if _is_tried(entry, each, policy)}
        conditions += len(came_to)
        missing = [word for value, word in _MISSING.items() if came_to and value not in came_to]
        gaps += [_gap(entry, f"{word}: {_said(part)}") for word in missing]
    return Covered(file, (rules, 2 * len(entries)), (conditions, 2 * len(parts)), tuple(gaps))


def _fired(entry: Entry, ran: RanLog, court: Court) -> bool:
    if isinstance(entry, Rule):
        return ran.verdict.gpu_rule is not None and ran.verdict.gpu_rule.id == entry.id
    return ran.verdict.failure == entry.id if isinstance(entry, Failure) else entry in court.exits


def _is_tried(entry: Entry, ran: RanLog, policy: LogPolicy) -> bool:
    """Whether nothing before it had settled the verdict; an entry without a condition may also be beaten."""
    if isinstance(entry, Exit) or getattr(entry, "condition", None) in (None, Condition()):
        return True
    if isinstance(entry, Rule):
        order, winner = [rule.id for rule in policy.rules], ran.verdict.gpu_rule.id if ran.verdict.gpu_rule else None
    else:
        order, winner = [failure.id for failure in policy.failures], ran.verdict.failure
    return winner is None or order.index(entry.id) <= order.index(winner)


def _parts(condition: Condition | None) -> Iterator[Any]:
    for part in (*condition.all, *condition.any, *condition.none) if condition else ():
        yield part
        if isinstance(part, Condition):
            yield from _parts(part)


def _holds(part: Any, court: Court) -> bool:
    return holds(Condition(all=(part,)), court.seen, court.backend)


def _said(part: Any) -> str:
    if isinstance(part, Condition):
        named = [f"{key}: [{', '.join(map(_said, each))}]" for key, each in part._asdict().items() if each]
        return f"{{{', '.join(named)}}}"
    return part if isinstance(part, str) else f"{{{': '.join(part)}}}"


def _gap(entry: Entry, says: str) -> Gap:
    return Gap(f"{entry.place.file}:{entry.place.line}", _kind(entry), entry.id, says)


def _kind(entry: Entry) -> str:
    return {Rule: "verdict", Failure: "failure class", Exit: "exit"}[type(entry)]


class LogMutant(NamedTuple):
    """A mistake and the policy that has it: an ``entry`` with another ``instead`` (``None``: dropped); where there is
    no entry, two changed places."""

    mutant: Mutant
    policy: LogPolicy
    entry: Entry | None = None
    instead: Entry | None = None


def log_mutants(file: str, policy: LogPolicy) -> Iterator[LogMutant]:
    """Every mutant of the verdicts, failure classes and exit statuses of a file: one dropped, one of its conditions
    dropped, two verdicts that changed places."""
    for section in _SECTIONS:
        entries: tuple[Entry, ...] = getattr(policy, section)
        for number, entry in enumerate(entries):
            if entry.place.file == file:
                for kind, says, instead in _changes(entry):
                    parts = (*entries[:number], *([instead] if instead else ()), *entries[number + 1 :])
                    changed: dict[str, Any] = {section: parts}
                    yield LogMutant(_mutant(kind, entry, says), policy._replace(**changed), entry, instead)
    for one, other in pairwise(policy.rules):
        if one.place.file == file and not (_exclude(one, other) or _exclude(other, one)):
            order = tuple({one.id: other, other.id: one}.get(rule.id, rule) for rule in policy.rules)
            yield LogMutant(_mutant("swap", one, f"behind the next, '{other.id}'"), policy._replace(rules=order))


def _exclude(one: Rule, other: Rule) -> bool:
    """Whether two verdicts never hold together: one needs what the other must not have."""
    return not set(one.condition.all).isdisjoint(other.condition.none)


def _mutant(kind: str, entry: Entry, says: str) -> Mutant:
    return Mutant(kind, _kind(entry), entry.id, entry.place.line, says)


def _changes(entry: Entry) -> Iterator[tuple[str, str, Entry | None]]:
    yield "drop", "without it", None
    if isinstance(entry, Exit) or entry.condition is None:
        return
    for part, less in _less(entry.condition):
        yield "negate", f"without '{_said(part)}'", entry._replace(condition=less)


def _less(condition: Condition) -> Iterator[tuple[Any, Condition]]:
    """A condition without one of its parts, at any depth."""
    for key, parts in condition._asdict().items():
        for number, part in enumerate(parts):
            rest = (*parts[:number], *parts[number + 1 :])
            yield part, condition._replace(**{key: rest})
            for inner, less in _less(part) if isinstance(part, Condition) else ():
                yield inner, condition._replace(**{key: (*parts[:number], less, *parts[number + 1 :])})
