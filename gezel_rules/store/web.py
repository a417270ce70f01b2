"""HTTP as the store needs it: redirects by hand, the token to its own host only, nothing secret in a message."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from gezel_rules.errors import BadInput, TransferFailed
from gezel_rules.record import NamedTuple

MAX_REDIRECTS = 8
CONNECT_SECONDS, READ_SECONDS = 15.0, 60.0
MAX_WAIT_SECONDS = 300.0  # longest Retry-After we sit out
_REDIRECTS = (301, 302, 303, 307, 308)
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18}|\*)")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Passing troubles; everything else in 4xx is an answer.
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


class Remote(NamedTuple):
    """A file on a server. ``token`` is sent to the URL's own origin only; ``name`` is how messages call the source."""

    url: str
    name: str
    token: str = ""


class Answer(NamedTuple):
    """The last response of a chain of redirects; ``early`` merges the headers of the first origin's own hops
    (that is where a hub states size, digest and commit). ``final`` is the last URL (may be signed: never shown)."""

    response: Any
    early: Mapping[str, str]
    final: str


class DroppedError(Exception):
    """The connection failed; the words are safe to show. Worth another try; fewer when it was never ``made``."""

    def __init__(self, words: str, made: bool = True) -> None:
        super().__init__(words)
        self.made = made


def shown(url: str) -> str:
    """A URL without user, query and fragment: signatures and tokens live there."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path}"


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port: what a token belongs to."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)


def whole_number(text: str) -> int | None:
    """A count as HTTP writes it, of 18 digits at most; ``None`` for anything else that a server may say."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


class ContentRange(NamedTuple):
    """What a ``Content-Range`` says: first and last byte of a part, size of the whole (``None``: unsaid)."""

    first: int | None
    last: int | None
    total: int | None


def content_range(headers: Mapping[str, str]) -> ContentRange | None:
    """The range of an answer; ``None`` when it names none, or writes it as nobody should."""
    match = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", "").strip())
    return ContentRange(*(int(n) if n and n != "*" else None for n in match.groups())) if match else None


def check_url(url: str) -> str:
    """The URL, if it is plain http(s) without credentials. Raises BadInput."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (a bad port raises here)
    except ValueError:
        raise BadInput(f"not a URL: {url.split('?')[0]!r:.200}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"not an http(s) URL: {url.split('?')[0].split('@')[-1]!r:.200}")
    if parts.username is not None or parts.password is not None:
        raise BadInput(f"{shown(url)}: credentials in a URL end up in logs; use HF_TOKEN or a signed URL")
    return url


class Web:
    """A connection pool for one install. Proxies come from the environment, never for loopback."""

    def __init__(self, connect: float | None = None, read: float | None = None) -> None:
        self.seconds = (connect or CONNECT_SECONDS, read or READ_SECONDS)
        self._pools: dict[str, Any] = {}

    def _pool(self, url: str) -> Any:
        import urllib3

        from gezel_rules.store.timed_pool import timed

        proxy = _proxy_for(url)
        if proxy not in self._pools:
            timeout = urllib3.Timeout(connect=self.seconds[0], read=self.seconds[1])
            make = urllib3.PoolManager if not proxy else lambda **kw: urllib3.ProxyManager(proxy, **kw)
            self._pools[proxy] = timed(make(timeout=timeout, retries=False, maxsize=8))
        return self._pools[proxy]

    def _hop(self, method: str, url: str, remote: Remote, headers: Mapping[str, str]) -> Any:
        import urllib3

        sent = {"User-Agent": "gezel-rules", "Accept-Encoding": "identity", **headers}
        if remote.token and origin(url) == origin(remote.url):
            sent["Authorization"] = f"Bearer {remote.token}"
        try:
            return self._pool(url).request(method, url, headers=sent, redirect=False, preload_content=False)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            made = isinstance(error, urllib3.exceptions.ProtocolError | urllib3.exceptions.ReadTimeoutError)
            raise DroppedError(f"{urlsplit(url).hostname}: {plain_reason(error)}", made) from None

    def ask(
        self,
        method: str,
        remote: Remote,
        headers: Mapping[str, str] | None = None,
        far: bool = True,
        hear: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> Answer:
        """Follow redirects and return the last response, its body unread. With ``far`` off, a redirect to another
        origin is not followed but returned; ``hear`` gets the headers so far before each step and may raise. Raises
        DroppedError, or TransferFailed for a redirect we refuse."""
        check_token(remote)
        url, early = remote.url, {}
        for _ in range(MAX_REDIRECTS):
            response = self._hop(method, url, remote, headers or {})
            if origin(url) == origin(remote.url):
                early.update({key.lower(): value for key, value in response.headers.items()})
            target = response.headers.get("Location")
            if response.status not in _REDIRECTS or not target:
                return Answer(response, early, url)
            following = _follow(url, target)
            if not far and origin(following) != origin(remote.url):
                return Answer(response, early, url)
            response.close()
            hear(early)
            url = following
        raise TransferFailed(f"{remote.name}: more than {MAX_REDIRECTS} redirects")

    def patiently(self, method: str, remote: Remote, far: bool = True) -> Answer:
        """``ask`` for something small, a few times if the trouble may pass. Raises TransferFailed."""
        for pause in (0.5, 1.0, 2.0, 0.0):
            try:
                answer = self.ask(method, remote, far=far)
            except DroppedError as trouble:
                why, wait = str(trouble), 0.0
            else:
                if answer.response.status not in TRANSIENT:
                    return answer
                why, wait = f"the server answers {answer.response.status}", retry_after(answer.response.headers)
                answer.response.close()
            if pause and wait <= MAX_WAIT_SECONDS:
                time.sleep(max(pause, wait))
        raise TransferFailed(f"{remote.name}: {why}")

    def close(self) -> None:
        """Close every idle connection."""
        for pool in self._pools.values():
            pool.clear()


def check_token(remote: Remote) -> None:
    """A token must not cross a network in clear. Raises BadInput."""
    scheme, host, _ = origin(remote.url)
    if remote.token and scheme != "https" and host not in _LOOPBACK:
        raise BadInput(f"HF_TOKEN is not sent to {host} over plain http; use https or unset HF_TOKEN")


def _follow(url: str, target: str) -> str:
    following = urljoin(url, target)
    try:
        check_url(following)
    except BadInput:
        raise TransferFailed(f"{shown(url)}: redirects to something that is not a plain http(s) URL") from None
    if origin(url)[0] == "https" and origin(following)[0] != "https":
        raise TransferFailed(f"{shown(url)}: redirects from https to http ({urlsplit(following).hostname})")
    return following


def _proxy_for(url: str) -> str:
    scheme, host, _ = origin(url)
    names = (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    if host in _LOOPBACK or not any(os.environ.get(name) for name in names):
        return ""
    from urllib.request import getproxies, proxy_bypass

    found = getproxies()
    return "" if proxy_bypass(host) else found.get(scheme) or found.get("all") or ""


def plain_reason(error: BaseException) -> str:
    """The cause of a network error in a few words: no object addresses, no URL."""
    name = type(error).__name__
    known = {
        "NewConnectionError": "connection refused or host unreachable",
        "NameResolutionError": "host name not found",
        "ConnectTimeoutError": "no connection in time",
        "ReadTimeoutError": "no data in time",
        "SSLError": "TLS certificate or handshake refused",
        "ProtocolError": "connection broken",
        "ProxyError": "proxy refused",
    }
    return known.get(name) or (os.strerror(error.errno) if isinstance(error, OSError) and error.errno else name)


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds a server asks us to wait (0 when it does not say). A date is measured against the server's own
    ``Date``, so that our clock does not matter."""
    said = headers.get("Retry-After", "").strip()
    if (seconds := whole_number(said)) is not None:
        return float(seconds)
    until, now = _date(said), _date(headers.get("Date", ""))
    return max(0.0, until - now) if until and now else 0.0


def _date(text: str) -> float:
    import email.utils

    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0


def reader(response: Any) -> Callable[[memoryview], int]:
    """``readinto`` of the connection itself: urllib3's own copies every byte twice (2.8: half the speed)."""
    import http.client

    import urllib3

    inner = getattr(response, "_fp", None)
    read = inner.readinto if isinstance(inner, http.client.HTTPResponse) else response.readinto
    clock = getattr(inner, "clock", None)

    def readinto(view: memoryview) -> int:
        if clock is not None:
            clock.give(READ_SECONDS)
        try:
            return int(read(view))
        except (http.client.HTTPException, urllib3.exceptions.HTTPError, TimeoutError, ConnectionError) as error:
            raise DroppedError(f"connection cut ({_lost(error)})") from None
        except OSError as error:
            raise DroppedError(f"connection cut ({plain_reason(error)})") from None

    return readinto


def _lost(error: BaseException) -> str:
    return "no data in time" if isinstance(error, TimeoutError) else plain_reason(error)
