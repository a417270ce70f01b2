"""HTTP with a time for whole things, however slowly their bytes come."""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPConnection, HTTPResponse
from typing import Any


class Clock:
    """The time that is left for what is waited for."""

    def __init__(self, seconds: float) -> None:
        self.give(seconds)

    def give(self, seconds: float) -> None:
        """Wait so long from now on."""
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left. Raises TimeoutError when there are none."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class TimedConnection(HTTPConnection):
    """A connection that takes at most ``seconds`` to connect, and whose answers are read against its ``clock``. Raises
    TimeoutError."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        super().__init__(host, port, timeout=seconds)
        self.clock = Clock(seconds)

    def response_class(self, sock: socket.socket, **how: Any) -> HTTPResponse:  # type: ignore[override]
        """What http.client makes of an answer."""
        return timed_response(sock, self.clock, **how)


def timed_response(sock: socket.socket, clock: Clock, **how: Any) -> HTTPResponse:
    """An answer of which each read must be over while the clock has time left."""
    response = HTTPResponse(sock, **how)
    response.fp.close()
    response.fp = io.BufferedReader(_TimedReader(sock, clock))
    return response


class _TimedReader(io.RawIOBase):
    """The bytes of a socket."""

    def __init__(self, sock: socket.socket, clock: Clock) -> None:
        self._sock, self._clock = sock, clock
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._clock.left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
