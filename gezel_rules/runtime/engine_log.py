"""What an engine prints: read as it comes, written to a log file that rotates, remembered at both ends."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO

LINE_BYTES = 1 << 16  # longer lines are cut: a chat template is printed in one


class EngineLog:
    """Reads a pipe to its end in a thread of its own. ``first`` and ``last`` lines stay in memory; secrets never reach
    memory or disk. A full disk stops the file, not the reading: an engine must not block on its log."""

    def __init__(self, path: Path, limit: int, kept: int, first: int, last: int, secrets: Sequence[str] = ()) -> None:
        self.path, self._limit, self._kept = path, limit, kept
        self.secrets = tuple(secret for secret in secrets if secret)
        self._first: list[str] = []
        self._room = first
        self._last: deque[str] = deque(maxlen=last)
        self._arrival = threading.Condition()
        self._file: IO[bytes] | None = None
        self._size = 0
        self._thread: threading.Thread | None = None
        self.ended = False

    def read_from(self, pipe: IO[bytes]) -> None:
        """Start reading; returns at once."""
        self._open()
        self._thread = threading.Thread(target=self._pump, args=(pipe,), name="engine-log", daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait until the engine's last line was read."""
        if self._thread is not None:
            self._thread.join(seconds)

    def lines(self) -> list[str]:
        """The first lines and the last ones, in order, none twice."""
        with self._arrival:
            return [*self._first, *self._last]

    def wait_for_more(self, seen: int, seconds: float) -> list[str]:
        """The first lines from index ``seen`` on, as soon as there are any, or none after ``seconds``."""
        with self._arrival:
            self._arrival.wait_for(lambda: len(self._first) > seen or self.ended, seconds)
            return self._first[seen:]

    def _pump(self, pipe: IO[bytes]) -> None:
        with pipe:
            while line := pipe.readline(LINE_BYTES):
                self._take(line)
        with self._arrival:
            self.ended = True
            self._arrival.notify_all()
        self._close()

    def _take(self, raw: bytes) -> None:
        text = raw.decode("utf-8", "replace").rstrip("\r\n")
        for secret in self.secrets:
            text = text.replace(secret, "***")
        self._write(text)
        with self._arrival:
            if len(self._first) < self._room:
                self._first.append(text)
            else:
                self._last.append(text)
            self._arrival.notify_all()

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.path.exists():
            self._rotate()
        self._file, self._size = self.path.open("wb", buffering=0), 0

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace") + b"\n"
        try:
            if self._file is not None and self._size + len(data) > self._limit:
                self._file.close()
                self._rotate()
                self._file, self._size = self.path.open("wb", buffering=0), 0
            if self._file is not None:
                self._size += self._file.write(data)
        except OSError:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _rotate(self) -> None:
        for number in range(self._kept - 1, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number}")
            if older.exists():
                older.replace(self.path.with_name(f"{self.path.name}.{number + 1}"))
        self.path.replace(self.path.with_name(f"{self.path.name}.1"))
