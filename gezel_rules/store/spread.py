"""The rest of a file over several connections, where one alone leaves the line idle.

Pieces are fetched in order, a few ahead; each is written at its place, and a hash thread follows behind the frontier of
whole pieces, reading them back from the page cache. Each connection logs a digest of what it has of its piece, so that
what lies beyond the frontier is not fetched again when something fails.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from io import FileIO
from typing import Any

from gezel_rules.record import NamedTuple
from gezel_rules.store.durable import no_link
from gezel_rules.store.part import BLOCK, Part
from gezel_rules.store.progress import Limit
from gezel_rules.store.stream import Checkpoints, write_all
from gezel_rules.store.web import DroppedError, Remote, Web, content_range, reader

PIECE = 16 << 20  # bytes
AHEAD = 2  # pieces in flight or waiting for the frontier, a connection
PROBE_SECONDS = 1.5  # one connection is watched this long
FAST_BYTES = 150e6  # bytes a second: with this from one connection, more only cost
LEAST_BYTES = 96 << 20  # less than this is not worth the requests


class Job(NamedTuple):
    """What all connections share: where from, which version (``etag``, strong), to which length."""

    web: Web
    remote: Remote
    part: Part
    total: int
    etag: str


class Piece(NamedTuple):
    """What one connection brings: from ``start`` to ``end``, and the digest of what there is of it."""

    start: int
    end: int
    hasher: Any


class Probe:
    """Watches one connection and says when more would help."""

    def __init__(self, part: Part, total: int) -> None:
        self.part, self.total = part, total
        self.began, self.start = time.monotonic(), part.offset

    def slow(self, at: int) -> bool:
        """Whether the connection had its time, is slow, and much is left; or several were at work before."""
        if self.part.ahead:
            return True
        seconds = time.monotonic() - self.began
        if seconds < PROBE_SECONDS or self.total - at < LEAST_BYTES:
            return False
        return (at - self.start) / seconds < FAST_BYTES


class Spread:
    """Fetches everything beyond ``part.offset``. ``moved`` gets the offset that as many bytes in a row would reach."""

    def __init__(self, job: Job, moved: Callable[[int], None], limit: Limit, connections: int) -> None:
        self.job, self.moved, self.limit, self.connections = job, moved, limit, connections
        self.base = job.part.offset
        job.part.ahead = {at: piece for at, piece in job.part.ahead.items() if not (at - self.base) % PIECE}
        self.received = self.base + sum(end - start for start, (end, _) in job.part.ahead.items())
        self.count = -(-(job.total - self.base) // PIECE)
        self.next = self.frontier = 0
        self.whole: set[int] = set()
        self.trouble: BaseException | None = None
        self.stopped = False
        self.turn = threading.Condition()

    def run(self) -> None:
        """Return when the file is whole; raise the first connection's trouble. In both cases the part ends at its
        proven offset."""
        threads = [threading.Thread(target=self._guarded, args=(self._fetching,)) for _ in range(self.connections)]
        threads.append(threading.Thread(target=self._guarded, args=(self._hashing,)))
        for thread in threads:
            thread.daemon = True
            thread.start()
        try:
            with self.turn:
                while not self.stopped and self.frontier < self.count:
                    self.turn.wait(0.1)  # short: Ctrl-C is seen between waits
        finally:
            self._end(threads)
        if self.trouble is not None:
            raise self.trouble

    def _end(self, threads: list[threading.Thread]) -> None:
        self._stop(None)
        for thread in threads:
            thread.join()
        self.job.part.cut()

    def _stop(self, trouble: BaseException | None) -> None:
        with self.turn:
            self.trouble = self.trouble or trouble
            self.stopped = True
            self.turn.notify_all()

    def _guarded(self, work: Callable[[FileIO], None]) -> None:
        try:
            with open(self.job.part.path, "r+b", buffering=0, opener=no_link) as file:
                work(file)
        except Exception as trouble:
            self._stop(trouble)

    def _range(self, number: int) -> tuple[int, int]:
        start = self.base + number * PIECE
        return start, min(start + PIECE, self.job.total)

    # --- fetching ------------------------------------------------------------------------------------------------

    def _fetching(self, file: FileIO) -> None:
        buffer = memoryview(bytearray(BLOCK))
        while (number := self._take_piece()) is not None:
            start, end = self._range(number)
            at, hasher = self.job.part.ahead.get(start, (start, hashlib.sha256()))
            if at < end:
                self._fetch(file, Piece(start, end, hasher), at, buffer)
            with self.turn:
                self.whole.add(number)
                self.turn.notify_all()

    def _fetch(self, file: FileIO, piece: Piece, at: int, buffer: memoryview) -> None:
        headers = {"Range": f"bytes={at}-{piece.end - 1}", "If-Range": self.job.etag}
        answer = self.job.web.ask("GET", self.job.remote, headers)
        try:
            self._check(answer.response, at, piece.end)
            self._fill(file, reader(answer.response), piece, at, buffer)
        finally:
            answer.response.close()

    def _take_piece(self) -> int | None:
        with self.turn:
            while not self.stopped and self.next - self.frontier >= self.connections * AHEAD:
                self.turn.wait(0.5)
            if self.stopped or self.next >= self.count:
                return None
            self.next += 1
            return self.next - 1

    def _check(self, response: Any, start: int, end: int) -> None:
        if response.status != 206 or content_range(response.headers) != (start, end - 1, self.job.total):
            raise DroppedError(f"the server answers {response.status} to one of several connections")
        if response.headers.get("ETag", "") != self.job.etag:
            raise DroppedError("the file changed on the server (other ETag)")

    def _fill(
        self, file: FileIO, readinto: Callable[[memoryview], int], piece: Piece, at: int, buffer: memoryview
    ) -> None:
        file.seek(at)
        due = Checkpoints(at, PIECE // 8)
        step = self.limit.step or (256 << 10)
        try:
            while at < piece.end and not self.stopped:
                if not (got := readinto(buffer[: min(step, piece.end - at)])):
                    raise DroppedError("connection cut")
                write_all(file.write, buffer[:got])
                piece.hasher.update(buffer[:got])
                at += got
                self._moved(got)
                if due(at):
                    self.job.part.piece(piece.start, at, piece.hasher)
        finally:
            self.job.part.piece(piece.start, at, piece.hasher)
        if at < piece.end:
            raise DroppedError("stopped")

    def _moved(self, got: int) -> None:
        self.limit.take(got)
        with self.turn:
            self.received += got
            at = self.received
        self.moved(at)

    # --- hashing behind the frontier -----------------------------------------------------------------------------

    def _hashing(self, file: FileIO) -> None:
        part, buffer = self.job.part, memoryview(bytearray(BLOCK))
        while self._whole_piece():
            start, end = self._range(self.frontier)
            file.seek(start)
            while start < end and (got := file.readinto(buffer[: min(BLOCK, end - start)])):
                part.hasher.update(buffer[:got])
                start += got
            part.offset = end
            part.checkpoint(part.offset, part.hasher)
            part.ahead.pop(self._range(self.frontier)[0], None)
            with self.turn:
                self.frontier += 1
                self.turn.notify_all()

    def _whole_piece(self) -> bool:
        """Wait for the piece at the frontier; False when there will be none."""
        with self.turn:
            while self.frontier < self.count and self.frontier not in self.whole and not self.stopped:
                self.turn.wait(0.5)
            return self.frontier in self.whole
