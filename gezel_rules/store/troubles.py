"""What can go wrong with a transfer, told apart by what helps: waiting, another source, room on the disk, nothing."""

from __future__ import annotations

import errno

from gezel_rules.errors import TransferFailed, why
from gezel_rules.store.part import Part


class DiskFull(TransferFailed):
    """No room left: another source would not help. The part is kept."""


class Contradicted(TransferFailed):
    """What a source has is not what was asked for, by size or digest: trying again cannot help, for the entry or the
    source is wrong. Bad input, then (exit 2)."""

    exit_status = 2


class Mismatch(Contradicted):
    """The whole file arrived and is not what was asked for. ``retry``: the server itself claims the right digest, or
    the bytes were joined from two runs, so one more try is fair; otherwise it would only cost quota."""

    def __init__(self, message: str, retry: bool) -> None:
        super().__init__(message)
        self.retry = retry


class Garbled(Mismatch):
    """Not what arrived was wrong but the way here: the server itself claims the digest that is wanted (exit 3)."""

    exit_status = 3


class AgainError(Exception):
    """Try again, not sooner than ``wait`` seconds."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


def disk_trouble(error: OSError, part: Part) -> TransferFailed:
    where = f"{part.path.parent}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(f"{where}: no room left after {part.offset:,} bytes of {part.path.stem}; they are kept")
    return DiskFull(f"{where}: cannot write {part.path.stem} ({why(error)})")


def meaning(status: int, token: bool) -> str:
    if status in (401, 403):
        hint = "the token has no access to it" if token else "it needs HF_TOKEN or an accepted licence"
        return f"refused ({status}); {hint}"
    if status in (404, 410):
        return f"not there ({status})"
    return f"the server answers {status}"
