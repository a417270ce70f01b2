"""A real HTTP server on loopback that serves files the way hubs do, and lies the way servers do when told to."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class File:
    """One file and how its server behaves. ``faults`` are used up one a GET request, in order; then it behaves."""

    data: bytes
    etag: str = ""
    ranges: bool = True
    chunked: bool = False
    rate: float = 0.0
    faults: list[Any] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    redirect: str = ""

    def __post_init__(self) -> None:
        if not self.etag:
            self.etag = f'"{hashlib.sha256(self.data).hexdigest()}"'


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    sent: int = 0


class Server:
    """``files`` maps a path to a File; ``seen`` lists the requests; ``sent`` counts body bytes per path."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.files: dict[str, File] = {}
        self.seen: list[Seen] = []
        self.sent: dict[str, int] = defaultdict(int)
        self.lock = threading.Lock()
        owner = self

        class Handler(_Handler):
            server_of = owner

        self.http = _Quiet((host, 0), Handler)
        self.base = f"http://{host}:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Server:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()

    def url(self, path: str) -> str:
        return self.base + path

    def gets(self, path: str = "") -> list[Seen]:
        return [seen for seen in self.seen if seen.method == "GET" and (not path or seen.path == path)]

    def hub(self, repo: str, files: dict[str, bytes], revision: str = "main", far: Server | None = None) -> None:
        """Serve a hub repository: listing, resolve addresses; with ``far`` the bytes come from there, redirected."""
        commit = hashlib.sha1(repo.encode()).hexdigest()
        listed = []
        for name, data in files.items():
            digest = hashlib.sha256(data).hexdigest()
            listed.append({"type": "file", "path": name, "size": len(data), "lfs": {"oid": digest, "size": len(data)}})
            headers = {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(data)), "X-Repo-Commit": commit}
            for rev in (revision, commit):
                file = self.files[f"/{repo}/resolve/{rev}/{name}"] = File(data, headers=headers)
                if far:
                    far.files[f"/cdn/{digest}"] = far.files.get(f"/cdn/{digest}") or File(data)
                    file.redirect = far.url(f"/cdn/{digest}?X-Signature=sEcReT-signature")
        for rev in (revision, commit):
            self.files[f"/api/models/{repo}/tree/{rev}"] = File(json.dumps(listed).encode())


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that was killed is what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def _serve(self) -> None:
        owner, parts = self.server_of, urlsplit(self.path)
        path = unquote(parts.path)
        self.entry = Seen(self.command, path, parts.query, dict(self.headers.items()))
        with owner.lock:
            owner.seen.append(self.entry)
            file = owner.files.get(path)
            fault = file.faults.pop(0) if file and file.faults and self.command == "GET" else None
        self.path_key = path
        if file is None:
            return self._answer(404)
        if callable(fault):
            fault = fault(file)
        if fault is not None and self._misbehave(file, fault):
            return None
        if file.redirect:
            return self._answer(302, {"Location": file.redirect, **file.headers})
        return self._file(file, fault)

    def _answer(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def _misbehave(self, file: File, fault: Any) -> bool:
        """Faults that are a whole answer of their own; the others bend ``_file``."""
        kind, *rest = fault if isinstance(fault, tuple) else (fault,)
        if kind == "status":
            self._answer(rest[0], dict(rest[1]) if len(rest) > 1 else {})
            return True
        if kind == "hang-up":
            self.close_connection = True
            return True
        return False

    def _file(self, file: File, fault: Any) -> None:
        kind, *rest = fault if isinstance(fault, tuple) else (fault,)
        bounds, total = self._bounds(file, kind), len(file.data)
        if bounds is None:
            return
        start, end, partial = bounds
        body = file.data[start:end]
        if kind == "flip":
            at = max(0, rest[0] - start)
            body = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        self.send_response(206 if partial else 200)
        if partial:
            shown = start + rest[0] if kind == "shift" else start
            self.send_header("Content-Range", f"bytes {shown}-{end - 1}/{total}")
        self._headers(file, rest[0] if kind == "etag" else file.etag, kind, len(body), rest)
        if self.command == "HEAD":
            return
        cut = rest[0] if kind == "cut" else None
        self._send(body if cut is None else body[:cut], file, whole=cut is None)
        if cut is not None or kind in ("length", "no-length"):
            self.close_connection = True

    def _headers(self, file: File, etag: str, kind: Any, length: int, rest: list[Any]) -> None:
        if file.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif kind != "no-length":
            self.send_header("Content-Length", str(length + (rest[0] if kind == "length" else 0)))
        if etag:
            self.send_header("ETag", etag)
        for key, value in file.headers.items():
            self.send_header(key, value)
        self.end_headers()

    def _range(self) -> tuple[int, int | None] | None:
        said = self.headers.get("Range", "")
        if not said.startswith("bytes="):
            return None
        first, _, last = said[6:].partition("-")
        return int(first), int(last) + 1 if last else None

    def _bounds(self, file: File, kind: Any) -> tuple[int, int, bool] | None:
        """Start, end, and whether it is a part of the file; ``None`` when 416 was the answer."""
        wish, total = self._range(), len(file.data)
        condition = self.headers.get("If-Range")
        if wish is None or not file.ranges or kind == "whole" or (condition and condition != file.etag):
            return 0, total, False
        if wish[0] >= total:
            self._answer(416, {"Content-Range": f"bytes */{total}", "ETag": file.etag})
            return None
        return wish[0], min(total, wish[1] or total), True

    def _send(self, body: bytes, file: File, whole: bool = True) -> None:
        step = max(512, int(file.rate / 100)) if file.rate else 1 << 18
        try:
            for at in range(0, len(body), step):
                piece = body[at : at + step]
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if file.chunked else piece)
                self.server_of.sent[self.path_key] += len(piece)
                if file.rate:
                    time.sleep(len(piece) / file.rate)
            if file.chunked and whole:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
