"""Writes that survive a crash: fsync before a rename, the directory's own fsync after it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable (where the system can: Windows cannot open one)."""
    with contextlib.suppress(PermissionError, NotADirectoryError):
        fd = os.open(path, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):  # some network file systems refuse it
                os.fsync(fd)
        finally:
            os.close(fd)


def sync_file(path: Path) -> None:
    """Make a file's bytes durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a read-only handle cannot be flushed everywhere
            os.fsync(fd)
    finally:
        os.close(fd)


def replace_durably(path: Path, data: bytes) -> None:
    """Write a whole small file beside its place and rename it there; the caller holds the lock for the place.
    Raises OSError, the old file untouched."""
    beside = path.with_name(f"{path.name}.new")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    sync_directory(path.parent)
