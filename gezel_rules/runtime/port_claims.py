"""Ports that an engine's log says it took. A log prints what a model file says too: a claim is not yet a port."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from gezel_rules.regex import Choice, Regex

MOST = 64  # claims that are remembered, the newest: an engine makes one
_DIGITS = 5


class PortClaims:
    """Hears every line of a log, in the thread that reads it; ``expressions`` find a ``port`` in a line."""

    def __init__(self, expressions: Iterable[Regex]) -> None:
        self._expressions = Choice(expressions, anywhere=True)
        self._ports: dict[int, None] = {}
        self._arrival = threading.Condition()

    def hear(self, line: str) -> None:
        """Remember what a line claims, if it claims anything."""
        for at in self._expressions.found_in(line):
            match = self._expressions.expressions[at].search(line)
            if match and len(match["port"] or "") <= _DIGITS:
                self._remember(int(match["port"] or 0))

    def _remember(self, port: int) -> None:
        if not 0 < port < 65536:
            return
        with self._arrival:
            self._ports.pop(port, None)
            self._ports[port] = None
            if len(self._ports) > MOST:
                del self._ports[next(iter(self._ports))]
            self._arrival.notify_all()

    def wait(self, seconds: float) -> list[int]:
        """All claims, the oldest first, as soon as there is one; none after so many seconds."""
        with self._arrival:
            self._arrival.wait_for(lambda: self._ports, seconds)
            return list(self._ports)
