"""Several connections: only where one is slow, never at the price of proof."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gezel_rules.errors import TransferFailed
from gezel_rules.store import spread
from gezel_rules.store.install import InstallPlan, Source, Wanted, install
from gezel_rules.store.part import Part
from gezel_rules.store.progress import Limit

from .conftest import gguf
from .hub_server import File, Server

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
    import time

    server.files[PATH] = File(DATA, rate=RATE, headers=BYTES)
    began = time.monotonic()
    assert pull(server, store, limit=6e6) == DATA
    assert time.monotonic() - began >= SIZE / 6e6 * 0.9


def test_what_was_proven_is_kept(server: Server, store: Path) -> None:
    """Half way through the server is gone; the part ends at the frontier and its log agrees."""
    file = server.files[PATH] = File(DATA, rate=RATE, headers=BYTES)
    file.faults = [None] * 9 + [("status", 404)] * 9
    with pytest.raises(TransferFailed):
        pull(server, store)
    part = Part(store / ".staging" / "m" / "model.gguf.part")
    size = part.path.stat().st_size
    part.open()
    assert part.offset == size > 0
    assert part.hasher.hexdigest() == hashlib.sha256(DATA[:size]).hexdigest()
    part.close()
    file.faults = []
    before = server.sent[PATH]
    assert pull(server, store) == DATA
    assert server.sent[PATH] - before <= SIZE - size + 1_200_000
