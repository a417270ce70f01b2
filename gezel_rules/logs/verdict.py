"""From evidence to a verdict: the first GPU rule and the first failure class whose conditions hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gezel_rules.logs.exit_status import signed
from gezel_rules.logs.model import Exit, Failure, LogPolicy, Pattern, Rule, holds, named
from gezel_rules.record import NamedTuple

_PART = re.compile(r"\{(\w+)\}")


class Evidence(NamedTuple):
    """A line that counted: the pattern it matched, its words, its named parts, and its turn."""

    id: str
    line: str
    parts: Mapping[str, str]
    turn: int


class Source(NamedTuple):
    """The rule behind a verdict, for a person to open."""

    id: str
    file: str
    line: int


class Verdict(NamedTuple):
    """``gpu``: in-use, init-failed, no-devices, not-loaded or unknown; ``detail``: the engine's words on it.
    ``failure``: class of what failed; ``fatal``: it ended the start, by its words or because the process failed;
    ``advice``: what a person can do.
    ``rule``: what decided (the failure when there is one, else the GPU verdict); ``gpu_rule`` always the latter.
    ``line``: the engine's own line behind ``rule``; None when an exit status or silence decided."""

    gpu: str
    detail: str | None
    failure: str | None
    fatal: bool
    advice: str | None
    rule: Source | None
    gpu_rule: Source | None
    says: str | None
    line: str | None
    gpu_line: str | None

    def as_json(self) -> dict[str, Any]:
        """The stable JSON shape of ``gezel-rules log``."""
        rule = None if self.rule is None else self.rule._asdict()
        return {"gpu": self.gpu, "detail": self.detail, "failure": self.failure, "advice": self.advice, "rule": rule}


def judge(policy: LogPolicy, evidence: Mapping[str, Evidence], backend: str | None, exit_status: int | None) -> Verdict:
    """Apply the rules in order to the evidence."""
    court = Court(policy, evidence, backend, exit_status)
    gpu, gpu_rule, gpu_evidence = court.gpu()
    failure, source, proof = court.failure()
    proof = proof if failure else gpu_evidence
    return Verdict(
        gpu=gpu,
        detail=court.detail(gpu_rule, gpu_evidence),
        failure=failure.id if failure else None,
        fatal=bool(failure) and exit_status != 0 and (died(policy, exit_status) or court.fatal(failure, proof)),
        advice=failure.advice if failure else gpu_rule.advice if gpu_rule else None,
        rule=source or _source(gpu_rule),
        gpu_rule=_source(gpu_rule),
        says=failure.says if failure else None,
        line=proof.line if proof else None,
        gpu_line=gpu_evidence.line if gpu_evidence else None,
    )


class Court:
    """One judgement: the policy, the evidence, and what the caller knows."""

    def __init__(
        self, policy: LogPolicy, evidence: Mapping[str, Evidence], backend: str | None, status: int | None
    ) -> None:
        self.policy, self.evidence, self.backend = policy, evidence, backend
        self.exits = _exits(policy, status)

    def seen(self, name: str) -> bool:
        """Whether there is evidence of that id: a pattern, an exit status, or any of a group."""
        if name in self.policy.groups:
            return any(self.seen(item) for item in self.policy.groups[name])
        return name in self.evidence or any(e.id == name for e in self.exits)

    def gpu(self) -> tuple[str, Rule | None, Evidence | None]:
        """The first GPU rule that holds, and the line that carries it."""
        for rule in self.policy.rules:
            if holds(rule.condition, self.seen, self.backend):
                return rule.gpu, rule, self.proof(named(rule.condition))
        return "unknown", None, None

    def failure(self) -> tuple[Failure | None, Source | None, Evidence | None]:
        """The first failure class that holds, the rule to look at, and the line that carries it."""
        for failure in self.policy.failures:
            if failure.condition is not None:
                if holds(failure.condition, self.seen, self.backend):
                    proof = self.proof(named(failure.condition))
                    return failure, self.supporter(failure, proof) or _source(failure), proof
            elif own := self.own(failure.id):
                return failure, *own
        return None, None, None

    def supporter(self, failure: Failure, proof: Evidence | None) -> Source | None:
        """The pattern behind a class's condition, when by itself it speaks for that class."""
        pattern = self.policy.patterns[proof.id] if proof else None
        return Source(pattern.id, *pattern.place) if pattern and pattern.failure == failure.id else None

    def own(self, name: str) -> tuple[Source, Evidence | None] | None:
        """The earliest line, else the exit status, that supports a class by itself."""
        lines = [e for e in self.evidence.values() if self.policy.patterns[e.id].failure == name]
        if lines:
            first = min(lines, key=lambda e: e.turn)
            return Source(first.id, *self.policy.patterns[first.id].place), first
        status = next((e for e in self.exits if e.failure == name), None)
        return (Source(status.id, *status.place), None) if status else None

    def fatal(self, failure: Failure | None, proof: Evidence | None) -> bool:
        """Whether the failure ended the start: as its line says, else as its class does."""
        said = self.policy.patterns[proof.id].fatal if proof else None
        return said if said is not None else bool(failure and failure.fatal)

    def proof(self, names: tuple[str, ...]) -> Evidence | None:
        """The line behind a condition: of the first id in reading order that was seen."""
        for name in names:
            group = self.policy.groups.get(name)
            found = self.evidence.get(name) if group is None else self.proof(group)
            if found is not None:
                return found
        return None

    def detail(self, rule: Rule | None, proof: Evidence | None) -> str | None:
        """The rule's own words, else those of the pattern that carried it; ``{part}`` is a named part of the line."""
        if rule is None or rule.gpu == "unknown":
            return None
        template = rule.detail or (self.policy.patterns[proof.id].detail if proof else None)
        return fill(template, proof.parts if proof else {}) if template else None


def died(policy: LogPolicy, status: int | None) -> bool:
    """Whether a process failed, by its exit status: not 0, and none that says it was asked to end."""
    return status not in (None, 0) and all(exit_.failure is not None for exit_ in _exits(policy, status))


def _exits(policy: LogPolicy, status: int | None) -> list[Exit]:
    """The entries of the policy for a status, whichever way it is written."""
    return [e for e in policy.exits if status is not None and signed(status) in map(signed, e.statuses)]


def ends_the_start(policy: LogPolicy, pattern: Pattern) -> bool:
    """Whether a line would be the end of a start: it supports a fatal class."""
    if pattern.fatal is not None:
        return pattern.fatal
    return any(failure.fatal for failure in policy.failures if failure.id == pattern.failure)


def parts(template: str) -> list[str]:
    """The named parts that a template asks for."""
    return _PART.findall(template)


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Put named parts into a template; a part the line did not have leaves nothing behind."""
    return _PART.sub(lambda match: parts.get(match[1], ""), template)


def _source(entry: Rule | Failure | None) -> Source | None:
    return Source(entry.id, *entry.place) if entry is not None else None
