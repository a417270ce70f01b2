"""What is tried after a failure, in a fixed order and a bounded number of times; and which parts of a launch broke
which engine builds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from gezel_rules.engines.family import DRAFTER
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
    state_dir: Path, build: str, parts: Mapping[str, str], failure: str | None, step: Step | None, steps: Sequence[Step]
) -> None:
    """Remember what is held to blame: the part that the next step leaves out because this failure speaks against it,
    else the drafter. A build that dies of the same without such a part is forgiven it."""
    for other in steps:
        if failure in other.failures and other.needs not in parts:
            forgive(state_dir, build, other.needs)
    if step is not None and step.needs in parts and failure in step.failures:
        remember_broken(state_dir, build, parts[step.needs], failure)
    elif DRAFTER in parts:
        remember_broken(state_dir, build, parts[DRAFTER], failure)


def remember_broken(state_dir: Path, build: str, part: str, failure: str | None) -> None:
    """Remember that this engine build did not run with this part (a drafter's file, or policy's word); a new build gets
    a new chance. A build that nobody can name is not remembered."""
    if not build:
        return
    known = read_json(state_dir / BROKEN) or {}
    pairs = known.get(build)
    known[build] = {**(pairs if isinstance(pairs, dict) else {}), part: failure or "died"}
    write_json(state_dir / BROKEN, known)


def is_broken(state_dir: Path, build: str, part: str) -> bool:
    """Whether the pair is remembered as broken."""
    return part in broken_parts(state_dir, build)


def broken_parts(state_dir: Path, build: str) -> dict[str, str]:
    """The parts remembered as broken under an engine build, with the failure class of each."""
    pairs = (read_json(state_dir / BROKEN) or {}).get(build)
    return {str(name): str(why) for name, why in pairs.items()} if isinstance(pairs, dict) else {}


def forgive(state_dir: Path, build: str, part: str) -> None:
    """Forget a pair."""
    known = read_json(state_dir / BROKEN) or {}
    if isinstance(pairs := known.get(build), dict) and pairs.pop(part, None) is not None:
        write_json(state_dir / BROKEN, known)
