"""Files in a cache directory: written whole or not at all. What cannot be kept is made again, so nothing is raised."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from gezel_rules.owned import write_owned


def keep(path: Path, data: bytes) -> None:
    """Replace a cache file, whole or not at all; a full disk keeps nothing."""
    with suppress(OSError):
        write_owned(path, data)


def forget_older(directory: Path, pattern: str, newest: int) -> None:
    """Delete the files of a pattern but for the newest few: whoever edits policies all day fills no disk."""
    with suppress(OSError):
        by_age = sorted(directory.glob(pattern), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in by_age[newest:]:
            path.unlink(missing_ok=True)


def code_state(folders: Iterable[Path]) -> bytes:
    """What changes when a Python file straight in one of the folders does: their names, sizes and times."""
    found = []
    for folder in folders:
        with os.scandir(folder) as files:
            code = [(file.name, file.stat()) for file in files if file.name.endswith(".py")]
        found += [f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in code]
    return "\0".join(sorted(found)).encode()
