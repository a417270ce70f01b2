"""What an install would do, told without doing it: for ``pull --dry-run``."""

from __future__ import annotations

from pathlib import Path

from gezel_rules.record import NamedTuple
from gezel_rules.store.drift import matches
from gezel_rules.store.integrity import unchanged
from gezel_rules.store.names import STAGING
from gezel_rules.store.shelf import find_installed
from gezel_rules.store.wanted import InstallPlan, Wanted


class Step(NamedTuple):
    """One wanted file. ``state``: ``here`` (recorded, stat unchanged), ``check`` (recorded, changed on disk: would be
    hashed again), ``resume`` (begun) or ``fetch``; ``left`` are the bytes to come (``None``: the size is unknown)."""

    wanted: Wanted
    state: str
    left: int | None


def preview(plan: InstallPlan, store: Path) -> list[Step]:
    """Each wanted file and what would happen to it. Reads only."""
    current = find_installed(store, plan.model_id, lambda _: None)
    have = {file.name: file for file in current.files} if current else {}
    steps = []
    for wanted in plan.wanted:
        file = have.get(wanted.name)
        if file and matches(file, wanted):
            steps.append(Step(wanted, "here" if unchanged(file) else "check", 0))
            continue
        begun = _begun(store / STAGING / plan.directory / f"{wanted.name}.part")
        left = None if wanted.size is None else max(0, wanted.size - begun)
        steps.append(Step(wanted, "resume" if begun else "fetch", left))
    return steps


def _begun(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
