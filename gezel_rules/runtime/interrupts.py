"""Ctrl-C and polite termination, as one exception that arrives only where it may.

Signals that come while something must not be cut short (a process half started, an engine half stopped) are kept
until it is done; those that come while a module is loaded arrive once more.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from gezel_rules.arrival import postponed

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_MAY_BE_IGNORED = "SIGHUP"  # by nohup: who closes the terminal then wants us to go on


class Interrupted(KeyboardInterrupt):
    """A person or the system asked us to stop; ``number`` is the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Interrupts:
    """While entered, signals raise Interrupted in the main thread, at once or when ``held`` ends."""

    def __init__(self) -> None:
        self._held, self._pending = 0, 0
        self._before: dict[int, Any] = {}
        self._outer: FrameType | None = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name) and not _ignored(name)]
            self._outer = sys._getframe(1)
            self._before = {number: signal.signal(number, self._arrived) for number in numbers}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._outer = None

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if self._held:
            self._pending = number
        elif not postponed(number, frame, self._outer):
            raise Interrupted(number)

    @property
    def pending(self) -> bool:
        """Whether a signal came while they are held."""
        return self._pending != 0

    @contextmanager
    def held(self, *, forget: bool = False) -> Iterator[None]:
        """Keep signals until the block is left; ``forget`` drops them, for the way out."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            number = self._pending
            if not self._held:
                self._pending = 0
                if number and not forget:
                    raise Interrupted(number)


def _ignored(name: str) -> bool:
    return name == _MAY_BE_IGNORED and signal.getsignal(getattr(signal, name)) == signal.SIG_IGN
