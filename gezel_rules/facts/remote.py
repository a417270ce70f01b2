"""GGUF headers over HTTP: the first megabytes of a file of any size, by Range requests.

What a server says is untrusted: redirects keep no secret header beyond their host, ranges are held against what was
asked for, reading is bounded in bytes and seconds, and an error shows an address without its query or user.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from gezel_rules.errors import BadInput, TransferFailed
from gezel_rules.facts.gguf.files import LARGEST_HEADER, check_complete, join_parts, parse_growing
from gezel_rules.facts.gguf.records import Header

if TYPE_CHECKING:
    import urllib3

_FIRST_PIECE = 1 << 20  # bytes; holds the whole header of most models with less than 100,000 tokens
_CHUNK = 1 << 16  # bytes between two looks at the clock
_PATIENCE = 120.0  # seconds for one file, all requests together
_TIMEOUTS = {"connect": 10.0, "read": 20.0}  # seconds
_REASONS = {
    "NewConnectionError": "no connection",
    "NameResolutionError": "unknown host",
    "ConnectTimeoutError": "no connection in time",
    "ReadTimeoutError": "no answer in time",
    "SSLError": "TLS failed (certificate?)",
    "ProtocolError": "the connection broke",
    "IncompleteRead": "the connection broke",
}
_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)")


def read_remote_header(url: str, headers: Mapping[str, str] | None = None, *, check_size: bool = True) -> Header:
    """The header of the GGUF file at the http(s) ``url``, all parts of a split model; ``headers`` go with each request.

    Reads little more than the header, in ranges that grow, and never more than 32 MiB of a file; a server that ignores
    Range is read from the start up to the same limit. Raises ``BadInput`` for what is wrong with the address or the
    file, ``TransferFailed`` for what is wrong with the server or the way to it.
    """
    address = _split(url)
    with _pool(headers or {}) as pool:

        def read_part(name: str) -> Header:
            return _read_one(pool, address._replace(path=_path_of(address, name)), check_size)

        first = read_part(_shown(address))
        return join_parts(first, _shown(address), read_part)


def _split(url: str) -> SplitResult:
    try:
        address = urlsplit(url)
        valid = address.scheme in ("http", "https") and bool(address.hostname) and (address.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise BadInput(f"not an http or https address: {url[:200]!r}")
    return address


def _shown(address: SplitResult) -> str:
    """The address for people: a signed URL carries its secret in the query, others in front of the host."""
    return urlunsplit((address.scheme, address.netloc.rpartition("@")[2], address.path, "", ""))


def _path_of(address: SplitResult, name: str) -> str:
    """The path of the part called ``name`` (as ``_shown`` would show it)."""
    return name.removeprefix(_shown(address._replace(path="")))


def _pool(headers: Mapping[str, str]) -> urllib3.PoolManager:
    import urllib3

    retry = urllib3.Retry(
        3,
        redirect=5,
        status_forcelist=(429, 500, 502, 503, 504),
        backoff_factor=0.2,
        respect_retry_after_header=False,
        raise_on_status=False,
        remove_headers_on_redirect=[*urllib3.Retry.DEFAULT_REMOVE_HEADERS_ON_REDIRECT, *headers],
    )
    # "identity": a range of a compressed body would be a range of other bytes.
    sent = {**headers, "Accept-Encoding": "identity", "User-Agent": "gezel-rules"}
    return urllib3.PoolManager(headers=sent, retries=retry, timeout=urllib3.Timeout(**_TIMEOUTS))


def _read_one(pool: urllib3.PoolManager, address: SplitResult, check_size: bool) -> Header:
    from urllib3.exceptions import HTTPError

    name = _shown(address)
    opening = _Opening(pool, urlunsplit(address), name)
    try:
        header = parse_growing(opening.first_bytes, name, _FIRST_PIECE)
    except HTTPError as error:
        # The text of urllib3's errors holds the whole address, secrets and all.
        raise TransferFailed(f"{name}: cannot be fetched: {_reason(error)}") from None
    except ValueError:
        raise BadInput(f"{name}: this address or one of its headers cannot be sent over HTTP") from None
    finally:
        opening.close()
    if check_size:
        check_complete(header, name)
    return header


def _reason(error: Exception) -> str:
    """What happened, in words, from the class of the innermost error alone."""
    cause = getattr(error, "reason", None)
    kind = type(cause if isinstance(cause, Exception) else error).__name__
    return _REASONS.get(kind, kind)


class _Opening:
    """The first bytes of one remote file, as many as were asked for so far."""

    def __init__(self, pool: urllib3.PoolManager, url: str, name: str) -> None:
        self._pool, self._url, self._name = pool, url, name
        self._held = bytearray()
        self._size: int | None = None
        self._version: str | None = None
        self._whole: Any = None  # the response of a server that ignores Range, still open
        self._deadline = time.monotonic() + _PATIENCE

    def first_bytes(self, count: int) -> tuple[bytearray, int | None]:
        """At least ``count`` bytes, fewer only at the end of the file; and the file's size, if the server tells."""
        wanted = min(count, LARGEST_HEADER)
        if self._whole is None and len(self._held) < wanted and len(self._held) != self._size:
            self._request(wanted)
        if self._whole is not None:
            self._read(self._whole, wanted)
            if len(self._held) < wanted:
                self._size = len(self._held)
        return self._held, self._size

    def close(self) -> None:
        """Drop what a server that ignores Range would still send."""
        if self._whole is not None:
            self._whole.close()

    def _request(self, wanted: int) -> None:
        span = {**self._pool.headers, "Range": f"bytes={len(self._held)}-{wanted - 1}"}
        response = self._pool.request("GET", self._url, headers=span, preload_content=False, decode_content=False)
        if response.status == 200 and not self._held:
            self._whole, self._size = response, _length(response)
            return
        try:
            self._take_range(response, wanted)
        finally:
            response.close()  # a range read to its end has already given its connection back

    def _take_range(self, response: urllib3.BaseHTTPResponse, wanted: int) -> None:
        if response.status == 416:
            self._size = len(self._held)  # nothing lies behind what is here
            return
        if response.status != 206:
            raise TransferFailed(f"{self._name}: the server answered {response.status} to a request for a range")
        start, end, size = self._range_of(response, wanted)
        if start != len(self._held) or end < start or (self._size is not None and size != self._size):
            raise TransferFailed(f"{self._name}: the server sent another range or file than the one asked for")
        self._size = size
        self._read(response, end + 1)
        if len(self._held) <= end:
            raise TransferFailed(f"{self._name}: the connection closed at byte {len(self._held)} of {end + 1}")

    def _range_of(self, response: urllib3.BaseHTTPResponse, wanted: int) -> tuple[int, int, int | None]:
        """First and last byte and the size of the file, from Content-Range, for the same version of the file."""
        version = response.headers.get("ETag")
        found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if not found or (self._version is not None and version != self._version):
            raise TransferFailed(f"{self._name}: the server's Content-Range or ETag does not fit the request")
        self._version = version
        size = None if found[3] == "*" else int(found[3])
        return int(found[1]), min(int(found[2]), wanted - 1), size

    def _read(self, response: Any, wanted: int) -> None:
        """Read on until ``wanted`` bytes are held or the response ends."""
        while len(self._held) < wanted:
            piece = response.read1(min(_CHUNK, wanted - len(self._held)))
            if not piece:
                return
            self._held += piece
            if time.monotonic() > self._deadline:
                raise TransferFailed(f"{self._name}: no header after {_PATIENCE:.0f} s")


def _length(response: urllib3.BaseHTTPResponse) -> int | None:
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 20 else None
