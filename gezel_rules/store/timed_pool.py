"""urllib3's connections, on which the head of an answer, and each read of its body, is waited for as a whole.

urllib3 starts its time anew with every byte that comes.
"""

from __future__ import annotations

import socket
from http.client import HTTPResponse
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection

from gezel_rules.engines.timed_http import Clock, timed_response


class _Timed:
    """What is added to both kinds of connections."""

    timeout: float | None

    def response_class(self, sock: socket.socket, **how: Any) -> HTTPResponse:
        """An answer with a ``clock``, which has the read time-out now and is given more by whoever reads on."""
        clock = Clock(self.timeout or float("inf"))
        response = timed_response(sock, clock, **how)
        response.clock = clock  # type: ignore[attr-defined]
        return response


class _Http(_Timed, HTTPConnection):  # type: ignore[misc]
    pass


class _Https(_Timed, HTTPSConnection):  # type: ignore[misc]
    pass


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https


def timed(manager: PoolManager) -> PoolManager:
    """The manager, with such connections."""
    manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
    return manager
