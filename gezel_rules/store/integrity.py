"""Whether an installed file is still the one that was recorded: told by its stat, hashed only where that changed.

Size and modification time are those of the bytes that were hashed, and a copy or a restored backup keeps them. In the
very file that was recorded the change time counts too, which nobody sets back; not when its number of names changed,
for that sets it as well (an adopted file's first name was deleted, another model links to it).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from gezel_rules.errors import TransferFailed, why
from gezel_rules.record import NamedTuple
from gezel_rules.store.adopt import hash_file
from gezel_rules.store.wanted import InstalledFile

CHANGED = "changed on disk since it was recorded"
_SECOND = 10**9  # nanoseconds


class HashedFile(NamedTuple):
    """One file read again: ``problem`` is empty when it has the recorded digest; ``file`` has the stat of now then."""

    file: InstalledFile
    problem: str


def fault(file: InstalledFile) -> str:
    """What a file's stat shows to be wrong with it; empty when it is as recorded. No byte is read."""
    try:
        now = os.lstat(file.path)
    except OSError:
        return "is missing"
    if not stat.S_ISREG(now.st_mode):
        return "is no longer a plain file"
    if now.st_size != file.size:
        return f"has {now.st_size:,} bytes, not {file.size:,}"
    return "" if _written_then(file, now) else CHANGED


def _written_then(file: InstalledFile, now: os.stat_result) -> bool:
    whole_second = file.mtime_ns - file.mtime_ns % _SECOND  # all that some archives and file systems keep
    if now.st_mtime_ns not in (file.mtime_ns, whole_second):
        return False
    return (now.st_ino, now.st_nlink) != (file.inode, file.links) or now.st_ctime_ns == file.ctime_ns


def advice(wrong: str, model_id: str) -> str:
    """What a person can do about a ``fault``."""
    hash_it = f"'gezel-rules verify {model_id}' hashes it again"
    return hash_it if wrong == CHANGED else f"'gezel-rules pull {model_id}' fetches it again"


def unchanged(file: InstalledFile) -> bool:
    """Whether the file still has the stat its digest was recorded with."""
    return not fault(file)


def examine(file: InstalledFile, moved: Callable[[int], None] = lambda _: None) -> HashedFile:
    """Hash a file and hold it against its record. ``moved`` is told the offset in bytes."""
    path = Path(file.path)
    if path.is_symlink() or not path.is_file():
        return HashedFile(file, "is missing")
    try:
        digest, now = hash_file(path, moved)
    except OSError as error:
        return HashedFile(file, f"cannot be read ({why(error)})")
    except TransferFailed:
        return HashedFile(file, "changed while it was read")
    if digest != file.sha256:
        return HashedFile(file, f"has sha256 {digest}, recorded {file.sha256}")
    return HashedFile(with_stat(file, now), "")


def with_stat(file: InstalledFile, now: os.stat_result) -> InstalledFile:
    """The record of a file whose digest was just taken, or that nobody else can write."""
    return in_place(file._replace(mtime_ns=now.st_mtime_ns), now)


def in_place(file: InstalledFile, now: os.stat_result) -> InstalledFile:
    """The record after the file got another name or a copy of it took its place: what was written when stays."""
    return file._replace(inode=now.st_ino, ctime_ns=now.st_ctime_ns, links=now.st_nlink)
