"""The client of an endpoint against servers that misbehave: every fault is one line, nothing hangs."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.engines.openai_http import LINE_BYTES, Address, Call, Piece, chat, complete, status
from gezel_rules.errors import EngineFailed

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@pytest.fixture
def server():
    """Answers every connection with the same raw bytes; ``hang`` keeps the connection open after them."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    kept, requests = [], []

    def serve(raw: bytes, hang: bool = False) -> Address:
        def loop() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                requests.append(_request(connection))
                connection.sendall(raw)
                if hang:
                    kept.append(connection)
                else:
                    connection.close()

        threading.Thread(target=loop, daemon=True).start()
        return Address(*listener.getsockname())

    serve.requests = requests
    yield serve
    listener.close()
    for connection in kept:
        connection.close()


@pytest.fixture
def dripping():
    """Sends some bytes at once, and then others one after the other, each after a ``pause``."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()

    def serve(at_once: bytes, then: Iterable[bytes] = (b".",) * 300, pause: float = 0.2) -> Address:
        def loop() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                _request(connection)
                connection.sendall(at_once)
                for piece in then:
                    time.sleep(pause)
                    connection.sendall(piece)

        threading.Thread(target=loop, daemon=True).start()
        return Address(*listener.getsockname())

    yield serve
    listener.close()


def _request(connection: socket.socket) -> bytes:
    """A whole request: closing on unread bytes would reset the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 16)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(next((line[15:] for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0))
    while len(body) < length:
        body += connection.recv(1 << 16)
    return head + body


def event(**data: object) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def ask(address: Address, idle: float = 5.0) -> list[Piece]:
    return list(complete(Call(address, "the-key", [{"role": "user", "content": "hi"}], 3, idle)))


def test_pieces_thoughts_pings_and_the_end(server):
    raw = OK + b": ping\n\n" + event(choices=[{"text": "a"}]) + event(choices=[{"delta": {"content": "b"}}])
    raw += event(choices=[{"delta": {"reasoning_content": "hm", "content": None}}]) + event(choices=[], usage={})
    address = server(raw + b"data: [DONE]\n\n" + event(choices=[{"text": "after the end"}]))
    assert ask(address) == [Piece("a"), Piece("b"), Piece("hm", thought=True)]
    assert b"Authorization: Bearer the-key" in server.requests[0]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (OK + event(choices=[{"text": "a"}]), "broke off before the answer ended"),
        (OK + b"data: {nonsense\n\n", "an event that is not JSON"),
        (OK + b"data: [1]\n\n", "an event that is not an object"),
        (OK + b"data: " + b"[" * 100_000 + b"\n\n", "an event that is not JSON"),
        (OK + b"data: " + b"x" * (LINE_BYTES + 10), "an event that is not JSON"),
        (OK + event(error={"message": "context\nfull"}), "the engine refused: context full"),
        (OK + b'error: {"error": {"message": "old style"}}\n\n', "the engine refused: old style"),
        (b'HTTP/1.1 401 No\r\nConnection: close\r\n\r\n{"error": {"message": "Invalid API Key"}}', "Invalid API Key"),
        (b"HTTP/1.1 500 No\r\nConnection: close\r\n\r\n<html>", "HTTP status 500"),
        (b'HTTP/1.1 400 No\r\nConnection: close\r\n\r\n{"error": "flat"}', "refused: flat"),
        (b"not HTTP at all\r\n", "broke off: not HTTP at all"),
        (OK + event(error={"message": "\x1b[2Jgone"}), "refused: \ufffd\\[2Jgone"),
        (b"", "broke off"),
    ],
)
def test_faults_are_one_line(server, raw, said):
    with pytest.raises(EngineFailed, match=said) as caught:
        ask(server(raw))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600


def test_silence_ends(server):
    with pytest.raises(EngineFailed, match="silent for 0 s"):
        ask(server(OK + event(choices=[{"text": "a"}]), hang=True), idle=0.3)


@pytest.mark.parametrize("drip", [OK + b"data: {", b"HTTP/1.1 200 OK\r\nX-Slow: "], ids=["a line", "the head"])
def test_what_drips_is_not_waited_for(dripping, drip):
    """Each byte comes in time, and the whole never does."""
    begun = time.monotonic()
    with pytest.raises(EngineFailed, match="the engine was silent for 1 s"):
        ask(dripping(drip), idle=1)
    assert status(dripping(b"HTTP/1.1 200 OK\r\nX-Slow: "), "/health", None, 1) is None
    assert time.monotonic() - begun < 20  # it goes on for 60 s


def test_a_slow_answer_in_whole_lines_is_waited_for(dripping):
    """It takes longer than any line of it may."""
    lines = [event(choices=[{"text": str(number)}]) for number in range(6)]
    address = dripping(OK, [*lines, b"data: [DONE]\n\n"], pause=0.4)
    assert ask(address, idle=2) == [Piece(str(number)) for number in range(6)]


def test_nobody_there():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = Address(*probe.getsockname())
    with pytest.raises(EngineFailed, match=r"broke off: .*refused"):
        ask(address)
    assert status(address, "/health", None, 1) is None


def test_health(server):
    assert status(server(b"HTTP/1.1 503 Wait\r\nContent-Length: 0\r\n\r\n"), "/health", None, 5) == 503


WORDS = st.sampled_from(["choices", "delta", "text", "content", "error", "message"])
JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5), lambda x: st.lists(x) | st.dictionaries(WORDS, x), max_leaves=6
)


@given(st.lists(JSON, max_size=4))
def test_no_event_breaks_the_client(events):
    from gezel_rules.engines.openai_http import _pieces

    lines = iter([b"data: " + json.dumps(data).encode() + b"\n" for data in events] + [b"data: [DONE]\n"])

    try:
        pieces = list(_pieces(lines))
    except EngineFailed as error:
        assert "\n" not in str(error)
    else:
        assert all(isinstance(piece.text, str) and piece.text for piece in pieces)


@pytest.mark.parametrize(
    ("address", "url"), [(Address("127.0.0.1", 80), "http://127.0.0.1:80"), (Address("::1", 80), "http://[::1]:80")]
)
def test_urls(address, url):
    assert address.url == url


@pytest.mark.parametrize(
    ("request_of", "max_tokens", "body"),
    [
        (complete, -1, {"stream": True, "prompt": "hi"}),
        (chat, 4, {"stream": True, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}),
    ],
)
def test_bodies(server, request_of, max_tokens, body):
    address = server(OK + b"data: [DONE]\n\n")
    assert list(request_of(Call(address, "k", [{"role": "user", "content": "hi"}], max_tokens, 5.0))) == []
    assert json.loads(server.requests[0][server.requests[0].index(b"{") :]) == body
