"""Writes that survive a crash: fsync before a rename, the directory's own fsync after it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def no_link(path: str, flags: int) -> int:
    """An ``opener``: a link that lies at the path is not followed. Raises OSError."""
    return os.open(path, flags | _PLAIN)


def create_anew(path: Path) -> int:
    """A descriptor of a file that was not there before: what lay at the path, a link or a file with a second name, is
    forgotten and not written. Raises OSError."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o644)


def discard(path: Path, *, ignore_errors: bool = False) -> None:
    """Delete a file, a link (not what it leads to), or a folder and all in it; one that is gone is no error.
    ``ignore_errors``: of a folder, whatever can be deleted. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        import shutil

        shutil.rmtree(path, ignore_errors=ignore_errors)
    else:
        path.unlink(missing_ok=True)


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
    Raises OSError, the old file untouched; nothing stays beside it, also when a signal comes."""
    beside = path.with_name(f"{path.name}.new")
    try:
        with os.fdopen(create_anew(beside), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    sync_directory(path.parent)
