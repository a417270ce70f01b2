"""One file over HTTP: resumed only with proof that the bytes belong, verified while it streams, retried with patience.

Every way a server can answer is judged here; ``tests/store/test_faults.py`` has the matrix.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from gezel_rules.errors import TransferFailed
from gezel_rules.record import NamedTuple
from gezel_rules.store.part import Part
from gezel_rules.store.progress import Limit, Progress
from gezel_rules.store.rejected import Rejected
from gezel_rules.store.spread import Job, Probe, Spread
from gezel_rules.store.stream import Stream, pass_over
from gezel_rules.store.troubles import AgainError, Contradicted, Garbled, Mismatch, disk_trouble, meaning
from gezel_rules.store.web import (
    MAX_WAIT_SECONDS,
    TRANSIENT,
    Answer,
    DroppedError,
    Remote,
    Web,
    content_range,
    origin,
    reader,
    retry_after,
    whole_number,
)

CONNECTIONS = 4  # at most, and only where one is slow
ATTEMPTS = 6  # in a row without new bytes
RESTARTS = 3  # times a part is dropped in one run
WORTH_BYTES = 64 << 10  # an attempt that brought this much starts the count again
BACKOFF_SECONDS, BACKOFF_LIMIT = 0.5, 30.0
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Asked(NamedTuple):
    """What is to arrive: its name for messages, size in bytes and sha256 where somebody has said them."""

    name: str
    size: int | None
    sha256: str | None


class Received(NamedTuple):
    """What arrived: digest and size as received; ``stated`` is the digest the hub claimed, ``commit`` its revision."""

    sha256: str
    size: int
    stated: str = ""
    commit: str = ""


class Transfer:
    """One file from one source. ``source`` identifies it in the part's log (no secrets in it)."""

    def __init__(
        self,
        web: Web,
        remote: Remote,
        part: Part,
        asked: Asked,
        progress: Progress | None = None,
        limit: Limit | None = None,
        sleep: Callable[[float], None] = time.sleep,
        connections: int = CONNECTIONS,
    ) -> None:
        self.connections = connections
        self.web, self.remote, self.part, self.asked = web, remote, part, asked
        self.progress, self.limit, self.sleep = progress or Progress(), limit or Limit(), sleep
        self.stated, self.commit, self.resumed, self.restarts = "", "", False, 0

    def run(self) -> Received:
        """Bring the file. Raises TransferFailed (this source cannot), Mismatch, DiskFull; the part is kept unless its
        bytes are known to be wrong."""
        if not self._belongs():
            self.part.reset()
        self.resumed = self.part.offset > 0
        failures = 0
        while not self._complete():
            before = self.part.offset
            try:
                self._attempt()
            except (AgainError, DroppedError) as trouble:
                failures = 0 if self.part.offset - before >= WORTH_BYTES else failures
                failures += 1 if getattr(trouble, "made", True) else 2
                self._wait(trouble, failures)
        return self._verified()

    def _belongs(self) -> bool:
        """Whether the part may be continued from this source: same source, or a digest that will prove it."""
        part = self.part
        if self.asked.size is not None and part.offset > self.asked.size:
            return False
        return part.offset == 0 or self._provable() or bool(part.complete and part.source == self.remote.name)

    def _provable(self) -> bool:
        """Whether a digest of the whole, or a strong ETag, tells bytes that are added from those of another version."""
        same = self.part.source == self.remote.name and _strong(self.part.etag)
        return same or self.asked.sha256 is not None or bool(self.stated)

    def _complete(self) -> bool:
        if self.asked.size is not None:
            return self.part.offset == self.asked.size and (self.part.offset > 0 or bool(self.part.complete))
        return bool(self.part.complete)

    def _wait(self, trouble: Exception, failures: int) -> None:
        if failures >= ATTEMPTS:
            raise TransferFailed(f"{self.remote.name}: {trouble} (tried several times)") from None
        wait = getattr(trouble, "wait", 0.0)
        if wait > MAX_WAIT_SECONDS:
            raise TransferFailed(f"{self.remote.name}: {trouble}; asks to wait {wait:.0f} s") from None
        pause = min(BACKOFF_LIMIT, BACKOFF_SECONDS * 2 ** (failures - 1)) * random.uniform(0.75, 1.25)  # noqa: S311
        pause = max(wait, pause)
        self.progress.note(f"{self.asked.name}: {trouble}; trying again in {pause:.1f} s")
        self.sleep(pause)

    # --- one request ---------------------------------------------------------------------------------------------

    def _attempt(self) -> None:
        answer = self.web.ask("GET", self.remote, self._headers(), hear=self._hear)
        try:
            self._judge(answer)
        finally:
            answer.response.close()

    def _headers(self) -> dict[str, str]:
        part = self.part
        if not part.offset or not self._provable():
            return {}
        proof = part.source == self.remote.name and _strong(part.etag)
        return {"Range": f"bytes={part.offset}-", **({"If-Range": part.etag} if proof else {})}

    def _judge(self, answer: Answer) -> None:
        status, headers = answer.response.status, answer.response.headers
        self._hear(answer.early)
        if status == 206:
            self._continue(answer)
        elif status == 200:
            self._whole(answer)
        elif status == 416 and self.part.offset:
            self._past_end(headers)
        elif status in TRANSIENT:
            raise AgainError(f"the server answers {status}", retry_after(headers))
        elif status == 403 and origin(answer.final) != origin(self.remote.url):
            raise AgainError("the signed address was refused (403)")  # it may have run out: ask for a new one
        else:
            raise TransferFailed(f"{self.remote.name}: {meaning(status, bool(self.remote.token))}")

    def _hear(self, early: Mapping[str, str]) -> None:
        """What the hub's own hop claims; a claim against the catalog ends it before a byte is paid for."""
        stated = early.get("x-linked-etag", "").strip('"').lower()
        self.stated = stated if _SHA256.fullmatch(stated) else ""
        self.commit = early.get("x-repo-commit", "")[:64]
        if self.stated and self.asked.sha256 and self.stated != self.asked.sha256:
            raise Contradicted(
                f"{self.remote.name}: not downloaded, the server now has sha256 {self.stated}, "
                f"wanted {self.asked.sha256}"
            )
        size = early.get("x-linked-size", "")
        if (total := whole_number(size)) is not None:
            self._check_total(total)

    def _check_total(self, total: int | None) -> None:
        if total is not None and self.asked.size is not None and total != self.asked.size:
            raise Contradicted(f"{self.remote.name}: the file has {total:,} bytes there, wanted {self.asked.size:,}")

    def _continue(self, answer: Answer) -> None:
        headers, part = answer.response.headers, self.part
        found, etag = content_range(headers), headers.get("ETag", "")
        if found is None or found.last is None or found.first != part.offset:
            self._restart("the server sent another range than asked for")
        if part.source == self.remote.name and part.etag and etag != part.etag:
            self._restart("the file changed on the server (other ETag)")
        self._check_total(found.total)
        self._pour(answer, found.last + 1 - part.offset, found.total, etag)

    def _restart(self, why: str) -> NoReturn:
        self._from_the_start(why)
        raise AgainError(why + "; from the start")

    def _from_the_start(self, why: str) -> None:
        """Drop the part; a server that makes us do so again and again is given up, for every byte may cost."""
        self.part.reset()
        self.restarts += 1
        if self.restarts > RESTARTS:
            raise TransferFailed(f"{self.remote.name}: {why}; given up after {RESTARTS} new starts")

    def _whole(self, answer: Answer) -> None:
        """200: the server begins at byte 0. With the same strong ETag the part is kept and its bytes are let pass."""
        headers, part = answer.response.headers, self.part
        length = headers.get("Content-Length", "")
        total = whole_number(length)
        self._check_total(total)
        etag = headers.get("ETag", "")
        known = _strong(etag) and etag == part.etag and part.source == self.remote.name
        if part.offset and known and (total is None or total >= part.offset):
            pass_over(reader(answer.response), part.offset, self.limit)
        elif part.offset and not self._provable():
            part.reset()  # nothing tells this version from the one that was cut off: the whole was asked for
        elif part.offset:
            self._from_the_start("the server sends the whole file where the rest was asked for")
        self._pour(answer, None if total is None else total - part.offset, total, etag)

    def _past_end(self, headers: Any) -> None:
        """416: nothing beyond the part. It is whole if the server says so and nothing else speaks against it."""
        found = content_range(headers)
        total = found.total if found else None
        same = headers.get("ETag", self.part.etag) == self.part.etag
        if total != self.part.offset or not same or self.asked.size not in (None, total):
            self._restart("the part is longer than the file on the server (416)")
        self.part.finish()

    def _pour(self, answer: Answer, count: int | None, total: int | None, etag: str) -> None:
        response, part = answer.response, self.part
        if response.headers.get("Content-Encoding", "identity").lower() not in ("identity", ""):
            raise TransferFailed(f"{self.remote.name}: the server re-encodes the file")
        self._known_wrong(etag)
        total = self.asked.size if total is None else total
        if total is None and "chunked" not in response.headers.get("Transfer-Encoding", "").lower():
            raise TransferFailed(f"{self.remote.name}: the server does not say how long the file is")
        part.comes_from(self.remote.name, etag)
        self.progress.begin(self.asked.name, total, part.offset)
        self._stream(response, count if count is not None or total is None else total - part.offset, total, etag)
        if total is not None and part.offset < total:
            raise AgainError(f"connection cut at {part.offset:,} of {total:,} bytes")
        if count is None and total is not None and reader(response)(memoryview(bytearray(1))):
            part.reset()
            raise TransferFailed(f"{self.remote.name}: the server sends more than {total:,} bytes")
        part.finish()

    def _known_wrong(self, etag: str) -> None:
        """Refuse a version that arrived wrong before, ahead of its bytes; one that the hub or its ETag says to be the
        right one has another chance."""
        rejected, wanted = Rejected(self.part.path), self.asked.sha256 or ""
        digest = rejected.digest(self.remote.name, etag, wanted)
        if digest and wanted not in (self.stated, etag.strip('"').lower()):
            raise Contradicted(
                f"{self.remote.name}: not downloaded, this version arrived with sha256 {digest} before, "
                f"wanted {wanted}; deleting {rejected.path} forgets that"
            )

    def _stream(self, response: Any, count: int | None, total: int | None, etag: str) -> None:
        moved = lambda at: self.progress.move(self.asked.name, at)  # noqa: E731
        ranges = response.status == 206 or response.headers.get("Accept-Ranges", "").lower() == "bytes"
        probe = Probe(self.part, total) if total and ranges and _strong(etag) and self.connections > 1 else None
        if probe is None or not self.part.ahead:  # else it was slow before
            self._in_a_row(response, count, probe.slow if probe else lambda _: False, moved)
        if probe and probe.slow(self.part.offset):
            response.close()
            self._spread(Job(self.web, self.remote, self.part, probe.total, etag), moved)

    def _in_a_row(
        self, response: Any, count: int | None, slow: Callable[[int], bool], moved: Callable[[int], None]
    ) -> None:
        stream = Stream(self.part, moved, self.limit)
        try:
            stream.take(reader(response), count, slow)
        except OSError as error:
            raise disk_trouble(error, self.part) from None
        finally:
            stream.close()

    def _spread(self, job: Job, moved: Callable[[int], None]) -> None:
        """The rest over several connections; with trouble, fewer of them from then on."""
        try:
            Spread(job, moved, self.limit, self.connections).run()
        except OSError as error:
            raise disk_trouble(error, self.part) from None
        except (DroppedError, TransferFailed):
            self.connections //= 2
            raise

    def _verified(self) -> Received:
        digest = self.part.complete or self.part.finish()
        wanted = self.asked.sha256 or self.stated
        if wanted and digest != wanted:
            size = self.part.offset
            if not self.resumed:
                Rejected(self.part.path).note(self.part.source, self.part.etag, wanted, digest)
            self.part.reset()
            raise (Garbled if self.stated == wanted else Mismatch)(
                f"{self.remote.name}: {self.asked.name} arrived ({size:,} bytes) with sha256 {digest}, wanted {wanted}",
                retry=self.resumed or self.stated == wanted,
            )
        return Received(digest, self.part.offset, self.stated, self.commit)


def _strong(etag: str) -> bool:
    return bool(etag) and not etag.startswith("W/")
