"""What an engine prints: read as it comes, written to a log file that rotates, remembered at both ends."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from gezel_rules.logs.lines import LONGEST
from gezel_rules.planner.needs import EngineLogs


class Ends:
    """The first lines of a text and the last ones: so many, and so many bytes of them, each cut at ``LONGEST``."""

    def __init__(self, sizes: EngineLogs) -> None:
        self._sizes = sizes
        self._first: list[str] = []
        self._first_bytes = self._last_bytes = 0
        self._last: deque[tuple[str, int]] = deque()

    def add(self, line: str) -> None:
        """Remember a line; an earlier one that is at neither end any more is forgotten."""
        line = line[:LONGEST]
        size = len(line.encode("utf-8", "replace"))
        sizes = self._sizes
        if not self._last and len(self._first) < sizes.first_lines and self._first_bytes + size <= sizes.first_bytes:
            self._first.append(line)
            self._first_bytes += size
            return
        self._last.append((line, size))
        self._last_bytes += size
        while self._last and (len(self._last) > sizes.last_lines or self._last_bytes > sizes.last_bytes):
            self._last_bytes -= self._last.popleft()[1]

    def lines(self) -> list[str]:
        """What is remembered, in order."""
        return [*self._first, *(line for line, _ in self._last)]


class EngineLog:
    """Reads a pipe to its end in a thread of its own. The ends of the log stay in memory; secrets never reach memory or
    disk; ``hear`` is told every line. A full disk stops the file, not the reading: an engine must not block on its log.
    """

    def __init__(
        self, path: Path, sizes: EngineLogs, secrets: Sequence[str] = (), hear: Callable[[str], None] | None = None
    ) -> None:
        self.path, self._sizes, self._hear = path, sizes, hear
        self.secrets = tuple(secret for secret in secrets if secret)
        self._longest = max((len(secret.encode()) for secret in self.secrets), default=0)
        self._ends = Ends(sizes)
        self._reading = threading.Lock()
        self._file: IO[bytes] | None = None
        self._size = 0
        self._thread: threading.Thread | None = None

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
        with self._reading:
            return self._ends.lines()

    def _pump(self, pipe: IO[bytes]) -> None:
        with pipe:
            while line := pipe.readline(self._sizes.line_bytes):
                left_out = 0
                end = line
                while not end.endswith(b"\n") and (end := pipe.readline(self._sizes.line_bytes)):
                    left_out += len(end)
                self._take(line, left_out)
        self._close()

    def _take(self, raw: bytes, left_out: int) -> None:
        text = raw.decode("utf-8", "replace").rstrip("\r\n")
        for secret in self.secrets:
            text = text.replace(secret, "***")
        if left_out:  # what stands last may be the beginning of a secret
            text = f"{text[: len(text) - self._longest]} … and {left_out + self._longest:,} bytes more"
        self._write(text)
        with self._reading:
            self._ends.add(text)
        if self._hear is not None:
            self._hear(text[:LONGEST])

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.path.exists():
            self._rotate()
        self._file, self._size = self.path.open("wb", buffering=0), 0

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace") + b"\n"
        try:
            if self._file is not None and self._size + len(data) > self._sizes.bytes:
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
        for number in range(self._sizes.kept - 1, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number}")
            if older.exists():
                older.replace(self.path.with_name(f"{self.path.name}.{number + 1}"))
        self.path.replace(self.path.with_name(f"{self.path.name}.1"))
