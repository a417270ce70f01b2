"""Engines that run now, in files other commands can read: for ``ps``, ``stop``, and cleaning up what was orphaned."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gezel_rules.record import NamedTuple
from gezel_rules.runtime import process
from gezel_rules.runtime.state_files import each_json, seconds, write_json

FOLDER = "running"
KEYS = "keys"


class Entry(NamedTuple):
    """A running engine. ``owner`` is the command that started it; ``since`` is seconds since 1970; ``key_file`` holds
    the API key when the person is meant to have it; ``record`` is the journal's of its launch."""

    id: str
    model: str
    engine: str
    url: str
    pid: int
    started: str
    owner: int
    owner_started: str
    since: float
    log: str
    key_file: str = ""
    record: str = ""

    @property
    def orphan(self) -> bool:
        """Whether the command that watched over it is gone."""
        return not process.alive(self.owner, self.owner_started)


_KINDS = Entry.__annotations__


def enter(state_dir: Path, entry: Entry) -> Path:
    """Write or update an engine's entry."""
    path = state_dir / FOLDER / f"{entry.id}.json"
    write_json(path, entry._asdict())
    return path


def leave(path: Path) -> None:
    """Remove an entry; one that is gone is no error."""
    path.unlink(missing_ok=True)


def running(state_dir: Path) -> list[Entry]:
    """Engines that live, oldest first. Entries of dead ones are removed."""
    found = []
    for path, data in each_json(state_dir / FOLDER):
        entry = _entry(data)
        if entry is not None and process.alive(entry.pid, entry.started):
            found.append(entry)
        elif entry is None or entry.orphan:  # an owner that lives is about to write it again or to remove it
            _forget(state_dir, path, entry)
    return found


def _entry(data: Mapping[str, Any]) -> Entry | None:
    kinds: dict[str, type | tuple[type, ...]] = {"pid": int, "owner": int, "since": (int, float)}
    if set(data) != set(_KINDS):
        return None
    if not all(isinstance(value, kinds.get(name, str)) for name, value in data.items()):
        return None
    good = data["pid"] > 1 and data["owner"] > 1 and seconds(data["since"]) is not None
    return Entry(**data) if good else None


def end_orphans(state_dir: Path, grace: float) -> list[Entry]:
    """End engines whose command died without stopping them. Returns those that were ended."""
    orphans = [entry for entry in running(state_dir) if entry.orphan]
    ended = [entry for entry in orphans if process.end(entry.pid, entry.started, grace)]
    for entry in ended:
        _forget(state_dir, state_dir / FOLDER / f"{entry.id}.json", entry)
    return ended


def _forget(state_dir: Path, path: Path, entry: Entry | None) -> None:
    leave(path)
    if entry is not None and entry.key_file:
        (state_dir / KEYS / Path(entry.key_file).name).unlink(missing_ok=True)


def halt(entry: Entry, grace: float) -> bool:
    """Stop a running engine: its owner is asked first, and left ``grace`` seconds; then its group is ended. False when
    it still runs."""
    if not entry.orphan:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(entry.owner, signal.SIGTERM)
        if process.gone(entry.pid, entry.started, grace + 1.0):
            return True
    return process.end(entry.pid, entry.started, grace)
