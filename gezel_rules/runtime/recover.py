"""What is tried after a failed start, in a fixed order and a bounded number of times; and what broke engine builds:
drafters, and weights packed for the CPU."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from gezel_rules.runtime.rules import Step
from gezel_rules.runtime.state_files import read_json, write_json

BROKEN = "broken-drafters.json"
BROKEN_PACKING = "broken-packing.json"


def next_step(steps: Sequence[Step], failure: str | None, tried: Sequence[str], has: Collection[str]) -> Step | None:
    """The first step that is left to try: what it needs is there (``has``), it helps with this failure class, and it
    was not tried as often as it may be. ``None`` when nothing is left: the failure stands."""
    for step in steps:
        helps = not step.failures or failure in step.failures
        if helps and step.needs in has and tried.count(step.step) < step.times:
            return step
    return None


def remember_broken(state_dir: Path, build: str, drafter: str, failure: str | None) -> None:
    """Remember that this engine build did not run with this drafter; a new build gets a new chance."""
    known = read_json(state_dir / BROKEN) or {}
    pairs = known.get(build)
    known[build] = {**(pairs if isinstance(pairs, dict) else {}), drafter: failure or "died"}
    write_json(state_dir / BROKEN, known)


def is_broken(state_dir: Path, build: str, drafter: str) -> bool:
    """Whether the pair is remembered as broken."""
    return drafter in broken_drafters(state_dir, build)


def broken_drafters(state_dir: Path, build: str) -> dict[str, str]:
    """The drafters remembered as broken under an engine build, with the failure class of each."""
    pairs = (read_json(state_dir / BROKEN) or {}).get(build)
    return {str(name): str(why) for name, why in pairs.items()} if isinstance(pairs, dict) else {}


def forgive(state_dir: Path, build: str, drafter: str) -> None:
    """Forget a pair; a person lifts the verdict."""
    known = read_json(state_dir / BROKEN) or {}
    if isinstance(pairs := known.get(build), dict) and pairs.pop(drafter, None) is not None:
        write_json(state_dir / BROKEN, known)


def remember_packing(state_dir: Path, build: str, failure: str) -> None:
    """Remember that this engine build died over weights packed for the CPU, and of what."""
    write_json(state_dir / BROKEN_PACKING, {**(read_json(state_dir / BROKEN_PACKING) or {}), build: failure})


def packing_broke(state_dir: Path, build: str) -> bool:
    """Whether that is remembered of a build."""
    return build in (read_json(state_dir / BROKEN_PACKING) or {})


def forgive_packing(state_dir: Path, build: str) -> None:
    """Forget it: the build died of the same without packed weights."""
    known = read_json(state_dir / BROKEN_PACKING) or {}
    if known.pop(build, None) is not None:
        write_json(state_dir / BROKEN_PACKING, known)
