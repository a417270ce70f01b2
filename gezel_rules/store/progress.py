"""Progress of several files: bars for a person at a terminal, nothing when piped."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, TextIO


class Progress:
    """Quiet: what a pipe gets. Offsets are bytes from the file's start."""

    def begin(self, name: str, size: int | None, at: int = 0) -> None:
        """A file starts moving at an offset; its size may be unknown."""

    def move(self, name: str, at: int) -> None:
        """The file has reached an offset."""

    def end(self, name: str) -> None:
        """The file stands, or was given up."""

    def note(self, text: str) -> None:
        """One line worth reading: a retry, a fall-over, a wait for another installer."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class Notes(Progress):
    """Quiet but for notes, each a line on stderr."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr

    def note(self, text: str) -> None:
        """Print the line."""
        print(text, file=self.stream, flush=True)


class Bars(Progress):
    """Bars with size, rate and time left (rich)."""

    def __init__(self, stream: TextIO | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
        from rich.progress import Progress as RichProgress

        console = Console(file=stream or sys.stderr, stderr=stream is None)
        name = TextColumn("{task.fields[name]}", markup=False)
        columns = (name, BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
        self._bars = RichProgress(*columns, console=console, refresh_per_second=8)
        self._tasks: dict[str, Any] = {}
        self._bars.start()

    def begin(self, name: str, size: int | None, at: int = 0) -> None:
        """Add or restart a bar."""
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task("", total=size, completed=at, name=name)
        self._bars.update(self._tasks[name], total=size, completed=at)

    def move(self, name: str, at: int) -> None:
        """Advance a bar."""
        if name in self._tasks:
            self._bars.update(self._tasks[name], completed=at)

    def end(self, name: str) -> None:
        """Stop a bar's clock."""
        if name in self._tasks:
            self._bars.stop_task(self._tasks[name])

    def note(self, text: str) -> None:
        """Print above the bars."""
        self._bars.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        """Stop drawing."""
        self._bars.stop()


def progress_for(stream: TextIO | None = None) -> Progress:
    """Bars on a terminal, notes alone when piped."""
    out = stream or sys.stderr
    return Bars(stream) if out.isatty() else Notes(out)


class Limit:
    """A bandwidth limit in bytes per second over all files (0: none). Monotonic time only: clocks jump."""

    def __init__(self, rate: float = 0.0) -> None:
        self.rate, self._due, self._lock = rate, 0.0, threading.Lock()

    def take(self, count: int) -> None:
        """Wait until ``count`` more bytes are within the limit."""
        if self.rate <= 0:
            return
        with self._lock:
            now = time.monotonic()
            self._due = max(self._due, now) + count / self.rate
            wait = self._due - now
        time.sleep(wait)

    @property
    def step(self) -> int | None:
        """Bytes to ask for at a time so that the flow stays even; ``None`` without a limit."""
        return max(1024, int(self.rate / 20)) if self.rate > 0 else None
