"""Bytes from a socket into a part: received here, hashed in a second thread, flushed to disk in a third.

Buffers of 1 MiB are recycled, so memory stays flat. hashlib releases the GIL: with SHA-NI one core hashes 1.5 GB/s,
which is the ceiling; a separate read-back for the digest would halve it.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable

from gezel_rules.store.part import BLOCK, Part
from gezel_rules.store.progress import Limit
from gezel_rules.store.troubles import AgainError

BUFFERS = 8
FIRST_READ = 64 << 10  # bytes; grows while the network is fast, so that a slow one still shows progress
QUICK_SECONDS, SLOW_SECONDS = 0.02, 0.2
CHECKPOINT_SECONDS, CHECKPOINT_BYTES = 0.25, 8 << 20  # what a kill -9 may cost, whichever comes first
FLUSH_BYTES = 32 << 20  # dirty bytes worth an early flush; fewer wait for the fsync at the end

ReadInto = Callable[[memoryview], int]


class Checkpoints:
    """Says of an offset whether it is time to log it: after ``most`` bytes, or a while."""

    def __init__(self, at: int, most: int) -> None:
        self.proven, self.most, self.last = at, most, time.monotonic()

    def __call__(self, at: int) -> bool:
        now = time.monotonic()
        due = at - self.proven >= self.most or now - self.last > CHECKPOINT_SECONDS
        if due:
            self.proven, self.last = at, now
        return due


class Stream:
    """Feeds one part. ``received`` is the offset written, the part's own ``offset`` the one hashed."""

    def __init__(self, part: Part, moved: Callable[[int], None], limit: Limit) -> None:
        self.part, self.moved, self.limit = part, moved, limit
        self.received = part.offset
        part.ahead.clear()  # what comes in a row is written over it
        self._free: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[tuple[bytearray, int] | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        for _ in range(BUFFERS):
            self._free.put(bytearray(BLOCK))
        self._hash = threading.Thread(target=self._hashing, name="sha256", daemon=True)
        self._flush = threading.Thread(target=self._flushing, name="flush", daemon=True)
        self._hash.start()
        self._flush.start()

    def take(self, readinto: ReadInto, count: int | None, enough: Callable[[int], bool] = lambda _: False) -> int:
        """Append up to ``count`` bytes (all there are when ``None``), fewer when ``enough`` says so of the offset
        reached; returns how many came. Raises what the socket or the disk raises; what was written stays and counts."""
        span, start = FIRST_READ, self.received
        while count is None or self.received - start < count:
            room = BLOCK if count is None else count - (self.received - start)
            began = time.monotonic()
            if not (got := self._take_one(readinto, min(span, room, self.limit.step or BLOCK))):
                break
            span = _next_span(span, time.monotonic() - began)
            self.moved(self.received)
            self.limit.take(got)
            if enough(self.received):
                break
        return self.received - start

    def _take_one(self, readinto: ReadInto, count: int) -> int:
        buffer = self._free.get()
        got = 0
        try:
            with memoryview(buffer) as whole, whole[:count] as view:
                got = readinto(view)
                write_all(lambda rest: os.write(self.part.fd, rest), view[:got])
            self.received += got
        except BaseException:
            got = 0
            raise
        finally:
            if got:
                self._full.put((buffer, got))
            else:
                self._free.put(buffer)
        return got

    def _hashing(self) -> None:
        part, due = self.part, Checkpoints(self.part.offset, CHECKPOINT_BYTES)
        while (item := self._full.get()) is not None:
            buffer, count = item
            with memoryview(buffer) as whole:
                part.hasher.update(whole[:count])
            part.offset += count
            self._free.put(buffer)
            if due(part.offset):
                part.checkpoint(part.offset, part.hasher)

    def _flushing(self) -> None:
        """Write back while receiving, so that the fsync before publishing has little left to do."""
        flush, done = getattr(os, "fdatasync", os.fsync), self.received
        while not self._stop.wait(CHECKPOINT_SECONDS):
            if (now := self.received) - done >= FLUSH_BYTES:
                try:
                    flush(self.part.fd)
                except OSError:
                    return  # the write or the final fsync will say why
                done = now

    def close(self) -> None:
        """Wait for both threads and log how far the bytes are proven."""
        before = self.part.offset
        self._full.put(None)
        self._stop.set()
        self._hash.join()
        self._flush.join()
        self.part.cut()
        if self.part.offset != before or self.part.offset not in self.part.checkpoints:
            self.part.checkpoint(self.part.offset, self.part.hasher)


def _next_span(span: int, seconds: float) -> int:
    if seconds < QUICK_SECONDS:
        return min(BLOCK, span * 2)
    return max(4096, span // 2) if seconds > SLOW_SECONDS else span


def write_all(write: Callable[[memoryview], int], view: memoryview) -> None:
    """Write everything, however little goes at a time."""
    while view:
        view = view[write(view) :]


def pass_over(readinto: ReadInto, count: int, limit: Limit) -> None:
    """Read bytes that are here already. Raises AgainError when the connection ends before them."""
    scratch = memoryview(bytearray(limit.step or BLOCK))
    while count and (got := readinto(scratch[: min(count, len(scratch))])):
        count -= got
        limit.take(got)
    if count:
        raise AgainError("connection cut before the part's own end")
