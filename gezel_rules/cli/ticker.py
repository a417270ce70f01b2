"""How long loading has taken, on one line of a terminal that is wiped when it is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class Ticker:
    """Called with the seconds waited so far; silent in the first one, and where ``err`` is no terminal."""

    def __init__(self, what: str, err: TextIO) -> None:
        self._what, self._err, self._shown = what, err, 0
        self._terminal = err.isatty()

    def __call__(self, seconds: float) -> None:
        if self._terminal and int(seconds) > self._shown:
            self._shown = int(seconds)
            self._err.write(f"\r\x1b[K{self._what} … {self._shown} s")
            self._err.flush()

    def wipe(self) -> None:
        """Leave the line as it was."""
        if self._shown:
            self._shown = 0
            self._err.write("\r\x1b[K")
            self._err.flush()


@contextmanager
def ticking(what: str, err: TextIO) -> Iterator[Ticker]:
    """A ticker that is wiped whatever happens."""
    ticker = Ticker(what, err)
    try:
        yield ticker
    finally:
        ticker.wipe()
