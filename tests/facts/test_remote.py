"""Headers over real HTTP: a few megabytes whatever the file's size, and a plain word about every odd server."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from gguf_oracle import gguf_file

from gezel_rules.errors import BadInput, TransferFailed
from gezel_rules.facts import remote
from gezel_rules.facts.gguf import read_header
from gezel_rules.facts.remote import read_remote_header


class Site(ThreadingHTTPServer):
    """Serves ``files`` (path → leading bytes, size; zeros behind), by range unless ``answer`` says otherwise."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, tuple[bytes, int]] = {}
        self.answer = serve_range
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.sent = 0
        self.connections = 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, *_) -> None:
        """A client that hangs up early is part of the tests."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_GET(self) -> None:
        self.server.seen.append((self.path, dict(self.headers)))
        self.server.answer(self)

    def log_message(self, *_) -> None:
        """Silence."""

    def piece(self, start: int, stop: int) -> bytes:
        data, _ = self.server.files[self.path.partition("?")[0]]
        return (data[start:stop]) + bytes(stop - max(start, len(data))) if stop > len(data) else data[start:stop]

    def send(self, status: int, headers: dict[str, object], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)
        self.server.sent += len(body)

    @property
    def span(self) -> tuple[int, int]:
        """First byte asked for, and the one behind the last."""
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        return int(first), int(last) + 1

    @property
    def size(self) -> int:
        return self.server.files[self.path.partition("?")[0]][1]


def serve_range(handler: Handler) -> None:
    if handler.path.partition("?")[0] not in handler.server.files:
        return handler.send(404, {"Content-Length": 0})
    start, stop = handler.span
    if start >= handler.size:
        return handler.send(416, {"Content-Length": 0, "Content-Range": f"bytes */{handler.size}"})
    body = handler.piece(start, min(stop, handler.size))
    span = f"bytes {start}-{start + len(body) - 1}/{handler.size}"
    return handler.send(206, {"Content-Length": len(body), "Content-Range": span, "ETag": '"one"'}, body)


def ignore_range(handler: Handler) -> None:
    """The whole file, or as much of it as the other side takes."""
    handler.send(200, {"Content-Length": handler.size})
    for start in range(0, handler.size, 1 << 16):
        body = handler.piece(start, min(start + (1 << 16), handler.size))
        handler.wfile.write(body)
        handler.server.sent += len(body)


@pytest.fixture
def site():
    with Site() as server:
        yield server
        server.shutdown()


@pytest.fixture
def hasty(monkeypatch):
    """Little patience, so that a silent server costs a test a second and not minutes."""
    monkeypatch.setattr(remote, "_PATIENCE", 1.0)
    monkeypatch.setattr(remote, "_TIMEOUTS", {"connect": 0.5, "read": 0.5})


def test_every_real_shape_reads_as_it_does_from_disk(site, header_bytes, header_index, sparse):
    for name, data in header_bytes.items():
        size = header_index[name]["file_bytes"]
        site.files[f"/{name}"] = data, size
        path = sparse(data, size)
        assert read_remote_header(f"{site.url}/{name}") == read_header(path)
        path.unlink()
    assert site.sent == len(header_bytes) << 20  # one first piece each, of files up to 1.3 TB


def test_a_real_vocabulary_takes_a_few_ranges(site, real_model):
    data = real_model.read_bytes()
    site.files["/model.gguf"] = data, len(data)
    header = read_remote_header(f"{site.url}/model.gguf")
    assert header == read_header(real_model)
    assert header.data_offset <= site.sent <= header.data_offset * 1.5
    assert len(site.seen) <= 5
    assert site.connections == 1  # one connection for all ranges


def test_headers_are_sent_and_the_body_is_not_compressed(site, header_bytes):
    site.files["/a.gguf"] = header_bytes["lfm2-1.2b.gguf"], 2 << 30
    read_remote_header(f"{site.url}/a.gguf?token=t", {"Authorization": "Bearer secret"})
    path, headers = site.seen[0]
    assert (path, headers["Authorization"]) == ("/a.gguf?token=t", "Bearer secret")
    assert headers["Accept-Encoding"] == "identity"


def test_a_redirect_to_another_host_carries_no_secret(site, header_bytes):
    site.files["/a.gguf"] = header_bytes["lfm2-1.2b.gguf"], 2 << 30
    with Site() as front:
        front.answer = lambda h: h.send(302, {"Location": f"{site.url}/a.gguf", "Content-Length": 0})
        sent = {"Authorization": "Bearer secret", "X-Api-Key": "secret"}
        assert read_remote_header(f"{front.url}/a.gguf", sent).arch == "lfm2"
        assert front.seen[0][1]["X-Api-Key"] == "secret"
        front.shutdown()
    assert "secret" not in str(site.seen)
    assert site.seen[0][1]["Range"] == "bytes=0-1048575"


def test_parts_of_a_split_model_are_fetched_with_the_same_query(site):
    import struct

    from gguf_oracle import key, tensor

    for number in (1, 2):
        keys = key("split.no", 2, struct.pack("<H", number - 1)), key("split.count", 2, struct.pack("<H", 2))
        data = gguf_file(*keys, tensors=(tensor(f"t{number}", (8,)),), data=32)
        site.files[f"/m-0000{number}-of-00002.gguf"] = data, len(data)
    header = read_remote_header(f"{site.url}/m-00001-of-00002.gguf?sig=s")
    assert [tensor.name for tensor in header.tensors] == ["t1", "t2"]
    assert [path for path, _ in site.seen] == [f"/m-0000{n}-of-00002.gguf?sig=s" for n in (1, 2)]
    del site.files["/m-00002-of-00002.gguf"]
    with pytest.raises(TransferFailed, match=r"/m-00002-of-00002\.gguf: the server answered 404"):
        read_remote_header(f"{site.url}/m-00001-of-00002.gguf?sig=s")


def test_a_server_that_ignores_range_is_read_no_further_than_the_header(site, real_model):
    data = real_model.read_bytes()
    site.files["/model.gguf"] = data, len(data)
    site.answer = ignore_range
    assert read_remote_header(f"{site.url}/model.gguf") == read_header(real_model)
    assert len(site.seen) == 1
    assert site.sent < 40 << 20  # the rest is in socket buffers, not the file's 253 MB


def test_a_server_that_ignores_range_is_read_up_to_the_limit_then_refused(site):
    import struct

    from gguf_oracle import key

    head = gguf_file(key("words", 9, struct.pack("<IQ", 8, 1 << 22)))  # zeros behind it are empty strings
    site.files["/endless.gguf"] = head[:-8], 1 << 40
    site.answer = ignore_range
    with pytest.raises(BadInput, match="the header needs more than 32 MiB"):
        read_remote_header(f"{site.url}/endless.gguf")
    assert site.sent < 64 << 20


def test_a_body_without_length_that_ends_early_is_a_truncated_file(site, header_bytes):
    def until_close(handler: Handler) -> None:
        handler.send(200, {"Connection": "close"}, header_bytes["lfm2-1.2b.gguf"][:500])
        handler.close_connection = True

    site.answer = until_close
    with pytest.raises(BadInput, match="tensor count is 148, but only 484 bytes are left in the file"):
        read_remote_header(f"{site.url}/a.gguf")


@pytest.mark.parametrize(
    ("data", "size", "message"),
    [
        (b"", 0, "empty file, not a GGUF"),
        (b"<html>", 1000, "not a GGUF file"),
        (b"GGUF\x01\0\0\0" + bytes(20), 1000, "GGUF v1 is not supported"),
    ],
    ids=["empty", "html", "v1"],
)
def test_a_file_that_is_no_gguf(site, data, size, message):
    site.files["/a.gguf"] = data, size
    with pytest.raises(BadInput, match=message):
        read_remote_header(f"{site.url}/a.gguf")
    assert site.sent <= 1000


def test_an_incomplete_upload_is_named(site, header_bytes):
    site.files["/a.gguf"] = header_bytes["lfm2-1.2b.gguf"], 1 << 20
    with pytest.raises(BadInput, match="truncated"):
        read_remote_header(f"{site.url}/a.gguf")
    assert read_remote_header(f"{site.url}/a.gguf", check_size=False).arch == "lfm2"


@pytest.mark.parametrize("status", [401, 403, 404, 410, 500])
def test_an_error_status_is_told(site, status):
    site.answer = lambda handler: handler.send(status, {"Content-Length": 0})
    with pytest.raises(
        TransferFailed, match=rf"/a\.gguf: the server answered {status} to a request for a range"
    ) as error:
        read_remote_header(f"{site.url.replace('://', '://user:secret@')}/a.gguf?token=secret")
    assert "secret" not in str(error.value)


def test_a_server_that_recovers_is_asked_again(site, header_bytes):
    site.files["/a.gguf"] = header_bytes["lfm2-1.2b.gguf"], 2 << 30

    def first_busy(handler: Handler) -> None:
        if len(handler.server.seen) == 1:
            handler.send(503, {"Content-Length": 0, "Retry-After": 3600})
        else:
            serve_range(handler)

    site.answer = first_busy
    assert read_remote_header(f"{site.url}/a.gguf").arch == "lfm2"


BODY = b"GGUF" + bytes(96)


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({}, "Content-Range or ETag does not fit"),
        ({"Content-Range": "bytes 0-99"}, "Content-Range or ETag does not fit"),
        ({"Content-Range": f"bytes 0-99/{'9' * 30}"}, "Content-Range or ETag does not fit"),
        ({"Content-Range": "bytes 5-104/1000"}, "another range or file"),
        ({"Content-Range": "bytes 0-999/1000"}, "the connection (broke|closed)"),
    ],
    ids=["none", "no size", "huge", "elsewhere", "short"],
)
def test_a_range_that_was_not_asked_for_is_refused(site, headers, message):
    def answer(handler: Handler) -> None:
        handler.send(206, {**headers, "Content-Length": len(BODY)}, BODY)

    site.answer = answer
    with pytest.raises(TransferFailed, match=message):
        read_remote_header(f"{site.url}/a.gguf")


@pytest.mark.parametrize("change", ["size", "version", "whole"])
def test_a_file_that_changes_between_two_ranges_is_refused(site, real_model, change):
    data = real_model.read_bytes()[: 8 << 20]
    site.files["/a.gguf"] = data, 300 << 20

    def answer(handler: Handler) -> None:
        start, stop = handler.span
        later = start > 0
        span = f"bytes {start}-{stop - 1}/{301 << 20 if later and change == 'size' else 300 << 20}"
        version = '"two"' if later and change == "version" else '"one"'
        body = handler.piece(start, stop)
        status = 200 if later and change == "whole" else 206
        handler.send(status, {"Content-Length": len(body), "Content-Range": span, "ETag": version}, body)

    site.answer = answer
    with pytest.raises(TransferFailed, match=r"another range or file|does not fit|answered 200"):
        read_remote_header(f"{site.url}/a.gguf")


def test_a_server_that_sends_ranges_of_one_byte_is_not_followed_for_ever(site, header_bytes, hasty):
    site.files["/a.gguf"] = header_bytes["lfm2-1.2b.gguf"], 2 << 30

    def one_byte(handler: Handler) -> None:
        start, _ = handler.span
        span = f"bytes {start}-{start}/{handler.size}"
        handler.send(206, {"Content-Length": 1, "Content-Range": span}, handler.piece(start, start + 1))

    site.answer = one_byte
    with pytest.raises(TransferFailed, match="no header after 1 s"):
        read_remote_header(f"{site.url}/a.gguf")


def test_a_silent_and_a_trickling_server_are_given_up(site, hasty):
    site.files["/a.gguf"] = b"GGUF", 1 << 20
    site.answer = lambda handler: time.sleep(3)
    with pytest.raises(TransferFailed, match=r"no answer in time|cannot be fetched"):
        read_remote_header(f"{site.url}/a.gguf")

    def trickle(handler: Handler) -> None:
        handler.send(206, {"Content-Length": 1 << 20, "Content-Range": f"bytes 0-{(1 << 20) - 1}/{1 << 20}"})
        for _ in range(40):
            handler.wfile.write(b"G")
            time.sleep(0.1)

    site.answer = trickle
    with pytest.raises(TransferFailed, match="no header after 1 s"):
        read_remote_header(f"{site.url}/a.gguf")


def test_nobody_there(hasty):
    with pytest.raises(TransferFailed, match=r"http://127\.0\.0\.1:1/a\.gguf: cannot be fetched: no connection"):
        read_remote_header("http://127.0.0.1:1/a.gguf?token=secret")


@pytest.mark.parametrize(
    "url", ["", "a.gguf", "ftp://h/a", "file:///etc/passwd", "http://", "http://h:99999/a", "http://[x/a"]
)
def test_addresses_that_are_none(url):
    with pytest.raises(BadInput, match="not an http or https address"):
        read_remote_header(url)


def test_a_header_that_cannot_be_sent_is_refused_without_showing_it(site):
    with pytest.raises(BadInput, match="cannot be sent over HTTP") as error:
        read_remote_header(f"{site.url}/a.gguf", {"Authorization": "secret\r\nX: y"})
    assert "secret" not in str(error.value)


def test_a_redirect_that_goes_round_ends(site):
    site.answer = lambda handler: handler.send(302, {"Location": "/a.gguf", "Content-Length": 0})
    with pytest.raises(TransferFailed, match=r"cannot be fetched|answered 302"):
        read_remote_header(f"{site.url}/a.gguf")
    site.answer = lambda handler: handler.send(302, {"Location": "file:///etc/passwd", "Content-Length": 0})
    with pytest.raises(TransferFailed, match="cannot be fetched"):
        read_remote_header(f"{site.url}/a.gguf")
