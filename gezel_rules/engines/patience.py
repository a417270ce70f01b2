"""How long a program may take to answer, by what it does: a first look at a GPU takes its time, a hang does nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gezel_rules.errors import EngineFailed
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from subprocess import Popen

    from gezel_rules.policy.model import PolicySet

_LOOK = 0.25  # seconds between two looks at what a program does
_WAITS_FOR_DEVICE = "disk-sleep"  # psutil's word for a wait that the kernel lets nobody interrupt


class SilentError(EngineFailed):
    """A program that gave no answer in time."""


class Bounds(NamedTuple):
    """Seconds in which a program may do nothing, and seconds in any case, over all that it is asked; percent of a
    processor from which it does something."""

    idle_seconds: float
    seconds: float
    busy_percent: float


class Patience:
    """What is left of the bounds for one program: the time that one answer took is gone for the next."""

    def __init__(self, bounds: Bounds) -> None:
        self._idle, self._any, self._share = bounds.idle_seconds, bounds.seconds, bounds.busy_percent / 100

    def wait(self, process: Popen[bytes]) -> bool:
        """Whether a process ends while there is patience. A thread waits for it: ``Popen.wait`` with a time-out looks
        only every 50 ms."""
        import threading

        waiting = threading.Thread(target=process.wait, daemon=True)
        waiting.start()
        worked, then = 0.0, time.monotonic()
        while True:
            waiting.join(max(0.0, min(_LOOK, self._idle, self._any)))
            now = time.monotonic()
            self._any -= now - then
            if not waiting.is_alive():
                return True
            works = _seconds_worked(process.pid)
            if works is not None and works - worked < self._share * (now - then):
                self._idle -= now - then
            if self._idle <= 0 or self._any <= 0:
                return False
            worked, then = works or worked, now


def patience_by(policies: PolicySet) -> Patience:
    """How long an engine of the family may take for all that it is asked."""
    return Patience(policies.row("engine_questions", "all", Bounds))


def _seconds_worked(pid: int) -> float | None:
    """Processor seconds of a process and its children so far; ``None`` while one of them waits for a device."""
    import psutil  # 15 ms, which a quick answer saves

    total = 0.0
    try:
        for one in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            if one.status() == _WAITS_FOR_DEVICE:
                return None
            times = one.cpu_times()
            total += times.user + times.system
    except psutil.Error:
        return None  # it ends just now
    return total
