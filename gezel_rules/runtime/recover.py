"""What is tried after a failure, in a fixed order and a bounded number of times; and which parts of a launch broke
which engine builds."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gezel_rules.engines.family import DRAFTER
from gezel_rules.record import NamedTuple
from gezel_rules.runtime.rules import Step
from gezel_rules.runtime.state_files import read_json, write_json

BROKEN = "broken-parts.json"


def next_step(steps: Sequence[Step], failure: str | None, tried: Sequence[str], has: Collection[str]) -> Step | None:
    """The first step that is left to try: what it needs is there (``has``), it helps with this failure class, and it
    was not tried as often as it may be. ``None`` when nothing is left: the failure stands."""
    for step in steps:
        helps = not step.failures or failure in step.failures
        if helps and step.needs in has and tried.count(step.step) < step.times:
            return step
    return None


def suspect(steps: Sequence[Step], failure: str | None, parts: Collection[str]) -> Step | None:
    """The step that leaves out a part this very failure class speaks against; ``None``: it speaks against none."""
    return next((step for step in steps if step.needs in parts and failure in step.failures), None)


def step_after_death(
    steps: Sequence[Step], failure: str | None, parts: Collection[str], can: Collection[str], *, early: bool
) -> Step | None:
    """The step after the death of an engine that was ready: the first that leaves out a part which is to blame, or that
    helps with this failure class besides (``can``). A part that only some classes speak against is blamed ``early``
    alone: it did not hurt an engine that ran for long."""
    for step in steps:
        named = failure in step.failures
        to_blame = step.needs in parts and (not step.failures or (early and named))
        if to_blame or (step.needs in can and named):
            return step
    return None


def blame(
    state_dir: Path, build: str, parts: Mapping[str, str], failure: str | None, step: Step | None,
    steps: Sequence[Step], called: Mapping[str, str] = {},
) -> None:  # fmt: skip
    """Remember what is held to blame: the part that the next step leaves out because this failure speaks against it,
    else the drafter. A build that dies of the same without such a part is forgiven it. ``called``: names for people."""
    for other in steps:
        if failure in other.failures and other.needs not in parts:
            forgive(state_dir, build, other.needs)
    against = step.needs if step is not None and step.needs in parts and failure in step.failures else DRAFTER
    if against in parts:
        remember_broken(state_dir, build, parts[against], failure, called.get(parts[against], ""))


class Broken(NamedTuple):
    """A part that an engine build did not run with: its key (a drafter's digest, or policy's word), what people call
    it, the failure class, and when, in seconds since 1970 (``None``: nobody knows)."""

    build: str
    part: str
    name: str
    why: str
    when: float | None


def remember_broken(state_dir: Path, build: str, part: str, failure: str | None, name: str = "") -> None:
    """Remember that this engine build did not run with this part; a new build gets a new chance. A build that nobody
    can name is not remembered."""
    if not build:
        return
    known = read_json(state_dir / BROKEN) or {}
    pairs = known.get(build)
    verdict = {"name": name or part, "why": failure or "died", "when": time.time()}
    known[build] = {**(pairs if isinstance(pairs, dict) else {}), part: verdict}
    write_json(state_dir / BROKEN, known)


def is_broken(state_dir: Path, build: str, part: str) -> bool:
    """Whether the pair is remembered as broken."""
    return part in broken_parts(state_dir, build)


def broken_parts(state_dir: Path, build: str) -> dict[str, str]:
    """The parts remembered as broken under an engine build, with the failure class of each."""
    return {verdict.part: verdict.why for verdict in verdicts(state_dir) if verdict.build == build}


def verdicts(state_dir: Path) -> Iterator[Broken]:
    """Everything that is remembered as broken, of all builds, in the order it was learnt."""
    for build, pairs in (read_json(state_dir / BROKEN) or {}).items():
        for part, said in pairs.items() if isinstance(pairs, dict) else ():
            if isinstance(said, dict):
                yield Broken(build, part, str(said.get("name", part)), str(said.get("why", "died")), _time(said))


def _time(said: Mapping[str, Any]) -> float | None:
    when = said.get("when")
    return when if isinstance(when, float) else None


def forgive(state_dir: Path, build: str, part: str) -> None:
    """Forget a pair."""
    known = read_json(state_dir / BROKEN) or {}
    if isinstance(pairs := known.get(build), dict) and pairs.pop(part, None) is not None:
        write_json(state_dir / BROKEN, known)


def forgive_named(state_dir: Path, name: str) -> list[Broken]:
    """Forget what people call ``name`` (or its key), under whatever build. Returns what was forgotten."""
    found = [verdict for verdict in verdicts(state_dir) if name in (verdict.name, verdict.part)]
    for verdict in found:
        forgive(state_dir, verdict.build, verdict.part)
    return found
