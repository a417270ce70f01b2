"""Plain files of a known size: a pipe, a device or a file without end, wherever a name leads, is not waited for."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False  # type checkers know this name; typing itself is left to those who need it

if TYPE_CHECKING:
    from pathlib import Path

NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""A flag for ``open_plain``: a link that lies at the path is not followed."""
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_plain(path: str | Path, flags: int = 0) -> int:
    """A descriptor to read from. Raises OSError, for what is no plain file too."""
    descriptor = os.open(path, _FLAGS | flags)
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return descriptor
    os.close(descriptor)
    raise OSError(0, "is a directory, not a file" if stat.S_ISDIR(kind) else "not a plain file")


def read_plain(path: str | Path, most: int, flags: int = 0) -> bytes:
    """The content, of ``most`` bytes at most. Raises OSError, for a longer one too."""
    with os.fdopen(open_plain(path, flags), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(0, f"larger than {most >> 20} MiB")
    return data
