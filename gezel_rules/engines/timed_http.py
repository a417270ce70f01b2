"""HTTP to an engine with a time for whole things, however slowly their bytes come."""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPConnection, HTTPResponse
from typing import Any


class TimedConnection(HTTPConnection):
    """A connection on which what is waited for must be there within the seconds last given: connecting, sending and
    the head of the answer within those it is made with. Raises TimeoutError."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        super().__init__(host, port, timeout=seconds)
        self._until = 0.0
        self.give(seconds)

    def give(self, seconds: float) -> None:
        """Wait so long for what is read from now on."""
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left. Raises TimeoutError when there are none."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def response_class(self, sock: socket.socket, **how: Any) -> HTTPResponse:  # type: ignore[override]
        """An answer that is read against the clock."""
        response = HTTPResponse(sock, **how)
        response.fp.close()
        response.fp = io.BufferedReader(_TimedReader(sock, self))
        return response


class _TimedReader(io.RawIOBase):
    """Bytes of a socket, each read of it only as long as there is time left."""

    def __init__(self, sock: socket.socket, connection: TimedConnection) -> None:
        self._sock, self._connection = sock, connection
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._connection.left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
