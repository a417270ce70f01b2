"""A file on its way: the bytes so far, and a log that proves them.

``NAME.part.log`` holds JSON lines: who the bytes come from (source, ETag), checkpoints (offset, sha256 of everything
before it), and pieces that several connections brought ahead of it (start, end, sha256). After a crash the bytes are
hashed again and trusted up to the last checkpoint that agrees, and so is each piece beyond; the rest is dropped. A torn
last line is ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gezel_rules.errors import BadInput, why
from gezel_rules.plain_file import NO_LINK, read_plain

BLOCK = 1 << 20  # bytes read or written at a time
_LOG_LIMIT = 16 << 20  # bytes; a log beyond this is not ours


class Part:
    """One unfinished file. ``offset`` bytes are proven, ``hasher`` has taken exactly those; ``source`` and ``etag`` say
    where they came from; ``ahead`` are proven pieces beyond (start → end and their own hasher); ``complete`` is the
    digest logged when the last byte had been received."""

    def __init__(self, path: Path) -> None:
        self.path, self.log_path = path, path.with_name(path.name + ".log")
        self.offset, self.hasher = 0, hashlib.sha256()
        self.source, self.etag, self.complete = "", "", ""
        self.checkpoints: dict[int, str] = {}
        self.ahead: dict[int, tuple[int, Any]] = {}
        self._pieces: dict[int, tuple[int, str]] = {}
        self._log: int | None = None
        self.fd = -1

    def open(self, progress: Callable[[int], None] = lambda _: None) -> None:
        """Open for appending and prove what is there. Raises BadInput when the place is not a plain file of ours."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            self.fd = os.open(self.path, flags | getattr(os, "O_BINARY", 0), 0o644)
            self._log = os.open(self.log_path, flags | os.O_APPEND, 0o644)
        except OSError as error:
            self.close()
            raise refusal(error, self.path) from None
        for fd, path in ((self.fd, self.path), (self._log, self.log_path)):
            if fault := not_ours(os.fstat(fd)):
                self.close()
                raise BadInput(f"{path}: {fault}; delete it")
        self._read_log()
        self._prove(progress)

    def _read_log(self) -> None:
        assert self._log is not None
        size = os.fstat(self._log).st_size
        data = os.read(self._log, size) if size <= _LOG_LIMIT else b""
        lines = data.split(b"\n")
        if lines[-1]:
            os.write(self._log, b"\n")  # what comes next must not be glued to a torn line
        for line in lines:
            with contextlib.suppress(ValueError):
                self._take(json.loads(line))

    def _take(self, entry: Any) -> None:
        if not isinstance(entry, dict):
            return
        if isinstance(entry.get("source"), str) and isinstance(entry.get("etag"), str):
            self.source, self.etag = entry["source"], entry["etag"]
            self._pieces.clear()
        at, digest, piece = entry.get("at"), entry.get("sha256"), entry.get("piece")
        if not isinstance(at, int) or not isinstance(digest, str):
            return
        if isinstance(piece, int):
            self._pieces[piece] = (at, digest)
        else:
            self.checkpoints[at] = digest
            self.complete = digest if entry.get("complete") is True else ""

    def _prove(self, progress: Callable[[int], None]) -> None:
        """Hash up to each checkpoint; keep the longest prefix that agrees with its checkpoint, and each piece beyond
        that agrees with its own."""
        hasher, at, size = hashlib.sha256(), 0, os.fstat(self.fd).st_size
        for mark in sorted(mark for mark in self.checkpoints if 0 < mark <= size):
            at = self._hash(hasher, at, mark, progress)
            if at < mark or hasher.hexdigest() != self.checkpoints[mark]:
                break
            self.offset, self.hasher = at, hasher.copy()
        for start, (end, digest) in self._pieces.items():
            hasher = hashlib.sha256()
            if (
                self.offset <= start
                and self._hash(hasher, start, end, progress) == end
                and hasher.hexdigest() == digest
            ):
                self.ahead[start] = (end, hasher)
        if self.complete and self.complete != self.hasher.hexdigest():
            self.complete = ""
        self.cut()

    def _hash(self, hasher: Any, at: int, end: int, progress: Callable[[int], None]) -> int:
        """Hash from ``at`` towards ``end``; how far the file goes."""
        os.lseek(self.fd, at, os.SEEK_SET)
        while at < end and (block := os.read(self.fd, min(BLOCK, end - at))):
            hasher.update(block)
            at += len(block)
            progress(at)
        return at

    def cut(self) -> None:
        """Drop what is not proven, and be ready to append to what is."""
        self.ahead = {start: piece for start, piece in self.ahead.items() if start >= self.offset}
        os.ftruncate(self.fd, max([self.offset, *(end for end, _ in self.ahead.values())]))
        os.lseek(self.fd, self.offset, os.SEEK_SET)

    def reset(self) -> None:
        """Forget every byte: they do not belong to what is being fetched now."""
        self.offset, self.hasher, self.complete = 0, hashlib.sha256(), ""
        self.source, self.etag = "", ""
        self.checkpoints.clear()
        self.ahead.clear()
        self.cut()
        assert self._log is not None
        os.ftruncate(self._log, 0)

    def comes_from(self, source: str, etag: str) -> None:
        """Log whose bytes follow."""
        if (source, etag) != (self.source, self.etag):
            self.source, self.etag = source, etag
            self.ahead.clear()
            self._write({"source": source, "etag": etag})

    def checkpoint(self, offset: int, hasher: Any) -> None:
        """Log that the first ``offset`` bytes have the digest of ``hasher``."""
        self.checkpoints[offset] = hasher.hexdigest()
        self._write({"at": offset, "sha256": self.checkpoints[offset]})

    def piece(self, start: int, end: int, hasher: Any) -> None:
        """Log that the bytes from ``start`` to ``end``, beyond the offset, have the digest of ``hasher``."""
        self.ahead[start] = (end, hasher.copy())
        self._write({"piece": start, "at": end, "sha256": hasher.hexdigest()})

    def finish(self) -> str:
        """Make the bytes durable, log the digest of the whole file, return it."""
        os.fsync(self.fd)
        self.complete = self.hasher.hexdigest()
        self._write({"at": self.offset, "sha256": self.complete, "complete": True})
        return self.complete

    def _write(self, entry: dict[str, object]) -> None:
        if self._log is not None:
            with contextlib.suppress(OSError):  # a full disk costs a checkpoint, not the transfer
                os.write(self._log, json.dumps(entry).encode() + b"\n")

    def close(self) -> None:
        """Close both files; the part stays."""
        for fd in (self.fd, self._log):
            if fd is not None and fd >= 0:
                os.close(fd)
        self.fd, self._log = -1, None


def not_ours(status: os.stat_result) -> str:
    """What is wrong with a file that the store would write to: what it makes is plain and has one name."""
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link, not a file of the store's own"
    if not stat.S_ISREG(status.st_mode):
        return "not a plain file"
    return "is a hard link, not a file of the store's own" if status.st_nlink > 1 else ""


def refusal(error: OSError, path: Path) -> BadInput:
    """A store that cannot be written, in one line."""
    return BadInput(f"{path}: cannot be written ({why(error)})")


def logged_digest(path: Path) -> tuple[str, str]:
    """The digest a part's log gives for the whole file, and its source; empty when it was never whole."""
    part = Part(path)
    try:
        lines = read_plain(part.log_path, _LOG_LIMIT, NO_LINK).split(b"\n")
    except OSError:
        return "", ""
    for line in lines:
        with contextlib.suppress(ValueError):
            part._take(json.loads(line))
    return part.complete, part.source
