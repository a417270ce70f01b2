"""Several connections: only where one is slow, never at the price of proof."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path

import pytest

from gezel_rules.errors import TransferFailed
from gezel_rules.store import spread
from gezel_rules.store.install import InstallPlan, Source, Wanted, install
from gezel_rules.store.part import Part
from gezel_rules.store.progress import Limit

from .conftest import gguf
from .hub_server import File, Server
from .kill_driver import in_child

SIZE = 6_000_123
DATA = gguf(SIZE, seed=4)
SHA = hashlib.sha256(DATA).hexdigest()
PATH = "/x/model.gguf"
RATE = 4e6  # bytes a second, each connection
BYTES = {"Accept-Ranges": "bytes"}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "PROBE_SECONDS", 0.1)
    monkeypatch.setattr(spread, "LEAST_BYTES", 1_000_000)
    monkeypatch.setattr(spread, "PIECE", 300_000)
    monkeypatch.setattr(spread, "FAST_BYTES", 2 * RATE)


def pull(server: Server, store: Path, sha256: str | None = SHA, limit: float = 0.0) -> bytes:
    wanted = Wanted("model", "model.gguf", None, sha256, (Source("url", server.url(PATH)),))
    model = install(InstallPlan("m", "m", (wanted,)), store, limit=Limit(limit))
    return Path(model.files[0].path).read_bytes()


def pieces(server: Server) -> list[str]:
    return [seen.headers["Range"] for seen in server.gets() if not seen.headers.get("Range", "-").endswith("-")]


@pytest.mark.parametrize("sha256", [SHA, None], ids=["digest known", "digest unknown"])
def test_a_slow_line_is_shared(server: Server, store: Path, sha256: str | None) -> None:
    server.files[PATH] = File(DATA, rate=RATE, headers=BYTES)
    assert pull(server, store, sha256) == DATA
    assert len(pieces(server)) == len(set(pieces(server))) > 10
    assert all(seen.headers["If-Range"] == server.files[PATH].etag for seen in server.gets()[1:])
    assert server.sent[PATH] < SIZE * 1.2


def test_a_fast_line_is_not(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, headers=BYTES)
    assert pull(server, store) == DATA
    assert len(server.gets()) == 1


@pytest.mark.parametrize("why", ["no ranges offered", "weak ETag", "no ETag"])
def test_nor_where_pieces_could_not_be_proven(server: Server, store: Path, why: str) -> None:
    headers = {} if why == "no ranges offered" else BYTES
    server.files[PATH] = File(DATA, rate=RATE * 4, headers=headers)
    server.files[PATH].etag = {"weak ETag": 'W/"x"', "no ETag": ""}.get(why, '"x"')
    assert pull(server, store) == DATA
    assert len(server.gets()) == 1


def test_troubles_on_the_way(server: Server, store: Path) -> None:
    file = server.files[PATH] = File(DATA, rate=RATE, headers=BYTES)
    file.faults = [None, None, ("cut", 1000), None, ("status", 429, {"Retry-After": "0"}), None, ("status", 503)]
    assert pull(server, store) == DATA


def test_a_file_that_changes_meanwhile_is_never_joined(server: Server, store: Path) -> None:
    other = gguf(SIZE, seed=5)

    def swap(file: File) -> None:
        file.data, file.etag = other, '"other"'

    server.files[PATH] = File(DATA, rate=RATE * 2, headers=BYTES, faults=[None, None, None, swap])
    assert pull(server, store, None) == other


def test_the_limit_holds_for_all_together(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, rate=RATE, headers=BYTES)
    began = time.monotonic()
    assert pull(server, store, limit=6e6) == DATA
    assert time.monotonic() - began >= SIZE / 6e6 * 0.9


def opened(store: Path) -> Part:
    """The part as the next pull finds it; what it holds is what the server has."""
    part = Part(store / ".staging" / "m" / "model.gguf.part")
    part.open()
    data = part.path.read_bytes()
    assert data[: part.offset] == DATA[: part.offset] and part.offset > 0
    assert part.hasher.hexdigest() == hashlib.sha256(DATA[: part.offset]).hexdigest()
    for start, (end, hasher) in part.ahead.items():
        assert data[start:end] == DATA[start:end] and hasher.hexdigest() == hashlib.sha256(DATA[start:end]).hexdigest()
    part.close()
    return part


def proven(part: Part) -> int:
    return part.offset + sum(end - start for start, (end, _) in part.ahead.items())


def continued(server: Server, store: Path) -> int:
    """Bytes that the next pull has sent to it; the file is whole then."""
    before = server.sent[PATH]
    assert pull(server, store) == DATA
    return server.sent[PATH] - before


UNDER_WAY = 400_000  # bytes of the first answer, which is given up once it is known to be of the same version


def test_what_was_proven_is_kept(server: Server, store: Path) -> None:
    """Half way through the server is gone: nothing that arrived is fetched again."""
    file = server.files[PATH] = File(DATA, rate=RATE, headers=BYTES)
    file.faults = [None] * 9 + [("status", 404)] * 9
    with pytest.raises(TransferFailed):
        pull(server, store)
    part = opened(store)
    file.faults = []
    assert continued(server, store) <= SIZE - proven(part) + UNDER_WAY


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_costs_what_is_under_way(server: Server, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four connections are killed in the middle of their pieces, and the pieces go on where they were."""
    monkeypatch.setattr(spread, "PIECE", 1_000_000)
    server.files[PATH] = File(DATA, rate=RATE / 4, headers=BYTES)
    log = store / ".staging" / "m" / "model.gguf.part.log"
    child = in_child(lambda: pull(server, store))
    while not (log.exists() and log.read_text().count('"piece"') >= 10):
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    part = opened(store)
    begun = [end for start, (end, _) in part.ahead.items() if end - start < 1_000_000]
    assert len(begun) >= 2
    assert server.sent[PATH] - proven(part) <= 4 * (UNDER_WAY + (256 << 10))  # sent, and read by each connection
    assert continued(server, store) <= SIZE - proven(part) + UNDER_WAY
    ranges = {int(seen.headers["Range"][6:].partition("-")[0]) for seen in server.gets() if "Range" in seen.headers}
    assert set(begun) <= ranges


def test_another_source_goes_on_from_the_frontier(server: Server, store: Path) -> None:
    """What several connections brought of one version is no part of another; the digest proves the rest."""
    file = server.files[PATH] = File(DATA, rate=RATE, headers=BYTES)
    file.faults = [None] * 9 + [("status", 404)] * 9
    with pytest.raises(TransferFailed):
        pull(server, store)
    opened(store)
    server.files[PATH] = File(gguf(SIZE, seed=5), '"other"', rate=RATE, headers=BYTES)
    with pytest.raises(TransferFailed, match="wanted"):
        pull(server, store)
    server.files[PATH] = File(DATA, rate=RATE, headers=BYTES)
    assert pull(server, store) == DATA
