"""A server that sends a byte now and then is not waited for without end."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from gezel_rules.store import web
from gezel_rules.store.web import DroppedError, Remote, Web, reader

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n"


@pytest.fixture
def drips() -> Iterator[Callable[[bytes], str]]:
    """The address of a server that sends some bytes at once, and then a byte each tenth of a second for a minute."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()

    def serve(at_once: bytes) -> str:
        def loop() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(1 << 16)
                connection.sendall(at_once)
                for _ in range(600):
                    connection.sendall(b"x")
                    time.sleep(0.1)

        threading.Thread(target=loop, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/file"

    yield serve
    listener.close()


def test_a_head_that_drips(drips: Callable[[bytes], str]) -> None:
    begun = time.monotonic()
    with pytest.raises(DroppedError):
        Web(1, 1).ask("GET", Remote(drips(HEAD + b"X-Slow: "), "a file"))
    assert time.monotonic() - begun < 20


def test_a_body_that_drips(drips: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read has its time as a whole, and the next one has its own."""
    monkeypatch.setattr(web, "READ_SECONDS", 1.0)
    begun = time.monotonic()
    response = Web(1, 1).ask("GET", Remote(drips(HEAD + b"\r\n"), "a file")).response
    with pytest.raises(DroppedError, match="no data in time"), memoryview(bytearray(4096)) as view:
        reader(response)(view)
    assert time.monotonic() - begun < 20
