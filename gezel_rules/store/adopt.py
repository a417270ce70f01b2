"""Bytes that are on this machine already: hard link, else reflink, else copy. The file they come from is only read."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from gezel_rules.errors import TransferFailed, why
from gezel_rules.store.durable import create_anew
from gezel_rules.store.part import BLOCK, Part
from gezel_rules.store.progress import Limit, Progress
from gezel_rules.store.transfer import Asked, Received
from gezel_rules.store.troubles import Contradicted, disk_trouble

_FICLONE = 0x40049409  # linux/fs.h: share extents (btrfs, xfs, bcachefs)


def hash_file(path: Path, moved: Callable[[int], None] = lambda _: None) -> tuple[str, os.stat_result]:
    """sha256 of a plain file and its stat, the same before and after. Raises OSError; TransferFailed if it changed."""
    hasher, at, buffer = hashlib.sha256(), 0, memoryview(bytearray(BLOCK))
    with path.open("rb", buffering=0) as file:
        before = os.fstat(file.fileno())
        while got := file.readinto(buffer):
            hasher.update(buffer[:got])
            moved(at := at + got)
        after = os.fstat(file.fileno())
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise TransferFailed(f"{path}: changed while it was read")
    return hasher.hexdigest(), after


def link(source: Path, target: Path) -> bool:
    """Hard link ``source`` as ``target``; False when the volumes or the file system cannot."""
    try:
        os.link(source, target)
    except FileExistsError:
        target.unlink()
        return link(source, target)
    except (OSError, NotImplementedError):
        return False
    return True


def clone(source: Path, target: Path) -> bool:
    """Share the extents of ``source`` under a new inode; False where the file system cannot."""
    try:
        import fcntl

        with source.open("rb") as old, os.fdopen(create_anew(target), "wb") as new:
            fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
    except (ImportError, OSError):
        target.unlink(missing_ok=True)
        return False
    return True


def adopt(source: Path, target: Path, asked: Asked, progress: Progress) -> Received | None:
    """Verify a local file and link or clone it to ``target``; ``None`` when neither is possible. Raises TransferFailed
    when it is not what was asked for."""
    real = source.resolve()
    with local_trouble(source):
        if asked.size is not None and real.stat().st_size != asked.size:
            raise Contradicted(f"{source}: has {real.stat().st_size:,} bytes, wanted {asked.size:,}")
        if not (link(real, target) or clone(real, target)):
            return None
        progress.begin(asked.name, real.stat().st_size)
        digest, stat = hash_file(target, lambda at: progress.move(asked.name, at))
    if asked.sha256 and digest != asked.sha256:
        target.unlink()
        raise Contradicted(f"{source}: has sha256 {digest}, wanted {asked.sha256}")
    return Received(digest, stat.st_size)


def copy(pieces: Sequence[Path], name: str, part: Part, asked: Asked, progress: Progress, limit: Limit) -> Received:
    """Join local pieces into the part, hashed while copied, continued where an earlier copy stopped. ``name`` is the
    source's. Raises TransferFailed."""
    with local_trouble(pieces[0]):
        stats = [piece.stat() for piece in pieces]
    total = sum(stat.st_size for stat in stats)
    if asked.size not in (None, total):
        raise Contradicted(f"{name}: has {total:,} bytes, wanted {asked.size:,}")
    version = "-".join(f"{stat.st_size}:{stat.st_mtime_ns}" for stat in stats)
    if (part.source, part.etag) != (name, version) or part.offset > total:
        part.reset()
    part.comes_from(name, version)
    progress.begin(asked.name, total, part.offset)
    with _Joined(pieces, part.offset) as joined:
        _pour(joined, total, part, asked, progress, limit)
    digest = part.finish()
    if asked.sha256 and digest != asked.sha256:
        part.reset()
        raise Contradicted(f"{name}: has sha256 {digest}, wanted {asked.sha256}")
    return Received(digest, part.offset)


def _pour(joined: _Joined, total: int, part: Part, asked: Asked, progress: Progress, limit: Limit) -> None:
    from gezel_rules.store.stream import Stream

    stream = Stream(part, lambda at: progress.move(asked.name, at), limit)
    try:
        stream.take(joined.readinto, total - part.offset)
    except OSError as error:
        raise disk_trouble(error, part) from None
    finally:
        stream.close()
    if part.offset != total:
        raise TransferFailed(f"{part.source}: changed while it was copied")


class _Joined:
    """Several files read as one, from an offset."""

    def __init__(self, pieces: Sequence[Path], offset: int) -> None:
        self.pieces, self.offset = list(pieces), offset
        self._file: IO[bytes] | None = None

    def __enter__(self) -> _Joined:
        while self.pieces and (size := self.pieces[0].stat().st_size) <= self.offset:
            self.offset -= size
            self.pieces.pop(0)
        return self

    def readinto(self, view: memoryview) -> int:
        while self.pieces or self._file:
            if self._file is None:
                self._file = self.pieces.pop(0).open("rb", buffering=0)
                self._file.seek(self.offset)
                self.offset = 0
            if got := self._file.readinto(view):  # type: ignore[attr-defined]
                return int(got)
            self._file.close()
            self._file = None
        return 0

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()


@contextlib.contextmanager
def local_trouble(path: Path):  # type: ignore[no-untyped-def]
    """Errors of reading a local source, in one line; a full disk stays what it is."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise TransferFailed(f"{path}: {why(error)}") from None
