"""Generations in use: who launches from one holds it, and it is not deleted while anybody does.

The kernel keeps the hold, a shared lock on the folder, and drops it with the process. Where it offers none (Windows,
some network file systems) nothing is known to be in use.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_LOCKS = Path("/proc/locks")


@contextmanager
def holding(folders: Iterable[Path]) -> Iterator[None]:
    """Keep folders where they are for the length of the block, beside whoever else does. One that cannot be held, or
    is gone, is passed over."""
    with ExitStack() as held:
        for folder in folders:
            if (descriptor := _opened(folder)) is not None:
                held.callback(os.close, descriptor)
                _lock(descriptor, alone=False)
        yield


@contextmanager
def unused(folder: Path) -> Iterator[bool]:
    """Whether nobody holds a folder; if so, who begins to waits until the block is over."""
    descriptor = _opened(folder)
    try:
        yield descriptor is None or _lock(descriptor, alone=True)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def in_use(folder: Path) -> bool:
    """Whether somebody holds a folder now."""
    with unused(folder) as free:
        return not free


def users(folder: Path) -> str:
    """Who holds a folder, for people: the processes, where the system lists them."""
    status = folder.stat()
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = [line.split() for line in _LOCKS.read_text().splitlines()]
    except OSError:
        lines = []
    found = sorted({int(words[4]) for words in lines if words[1:2] == ["FLOCK"] and words[5:6] == [place]} - {0, -1})
    listed = ", ".join(map(str, found))
    return f"process {listed}" if len(found) == 1 else f"processes {listed}" if found else "another process"


def _opened(folder: Path) -> int | None:
    try:
        return os.open(folder, _FOLDER)
    except OSError:
        return None


def _lock(descriptor: int, *, alone: bool) -> bool:
    """Whether the lock was had, or none is to be had here; one for all waits for one that is held ``alone``."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
