"""Files that nobody but us can have written: what caches, state and records are read from and written to.

What others could have put there is as good as not there: a compiled policy set of somebody else's would steer launches.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gezel_rules.plain_file import NO_LINK, open_plain

MAX_BYTES = 64 << 20  # the largest file we keep, a header with its tensors, takes a few MiB
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def read_owned(path: Path, most: int = MAX_BYTES) -> bytes | None:
    """The content of a plain file that is ours, in a folder that is ours, writable by nobody else; ``None`` for any
    other, one of more than ``most`` bytes and one that is not there. Links are not followed."""
    try:
        descriptor = open_plain(path, NO_LINK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        good = status.st_size <= most and _ours(status) and is_owned(path.parent)
        return file.read(most) if good else None


def is_owned(folder: Path) -> bool:
    """Whether a folder is ours and nobody else can write there; one behind another's link is not."""
    try:
        return _ours(os.stat(folder)) and not _anothers_link(folder)  # noqa: PTH116
    except OSError:
        return False


def _anothers_link(folder: Path) -> bool:
    """Whether the way to a folder leads over a link that neither we nor root made."""
    if os.name == "nt":
        return False
    known = (0, os.geteuid())
    return any(
        stat.S_ISLNK(way.st_mode) and way.st_uid not in known for way in map(os.lstat, (folder, *folder.parents))
    )


def _ours(status: os.stat_result) -> bool:
    if os.name == "nt":  # no such owners and modes there
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS


def make_owned(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for us alone. Raises OSError, also where the way there leads
    over another's link."""
    if folder.is_dir():
        if _anothers_link(folder):
            raise OSError(0, "lies behind another user's link", str(folder))
    else:
        make_owned(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def write_owned(path: Path, data: bytes) -> None:
    """Replace a file by an atomic rename, readable by us alone, its folder made when missing. Raises OSError, which
    names the file; nothing stays beside it then."""
    make_owned(path.parent)
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    staged.unlink(missing_ok=True)
    try:
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        staged.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None  # a full disk tells no name
    finally:
        staged.unlink(missing_ok=True)  # also when a signal comes
