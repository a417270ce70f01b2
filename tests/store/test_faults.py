"""The fault matrix: every way a server can answer, and what comes of it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from gezel_rules.errors import TransferFailed
from gezel_rules.store.install import Installed, InstallPlan, Source, Wanted, install

from .conftest import Said, gguf
from .hub_server import File, Server

SIZE = 3_000_000
DATA = gguf(SIZE)
SHA = hashlib.sha256(DATA).hexdigest()
PATH = "/files/model.gguf"


def plan(*urls: str, size: int | None = SIZE, sha256: str | None = SHA, name: str = "model.gguf") -> InstallPlan:
    sources = tuple(Source("url", url) for url in urls)
    return InstallPlan("m", "m", (Wanted("model", name, size, sha256, sources),), fingerprint="f", entry_digest="e")


def content(model: Installed) -> bytes:
    return Path(model.files[0].path).read_bytes()


def nothing_published(store: Path) -> bool:
    return not (store / "m" / "manifest.json").exists()


def test_plain(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA)
    model = install(plan(server.url(PATH)), store)
    assert content(model) == DATA
    assert model.fingerprint == "f"
    assert model.header == {"arch": "llama", "quant": "Q4_K_M", "context_length": 4096}
    assert not list((store / ".staging").iterdir())
    again = install(plan(server.url(PATH)), store)
    assert again == model
    assert len(server.gets()) == 1


@pytest.mark.parametrize("known", [True, False], ids=["digest known", "digest unknown"])
@pytest.mark.parametrize(
    ("faults", "requests"),
    [
        pytest.param([("cut", 1_000_000)], 2, id="connection cut: resumed"),
        pytest.param([("cut", 700_000), ("cut", 700_000), ("cut", 700_000)], 4, id="cut three times: resumed"),
        pytest.param(["hang-up"], 2, id="no answer at all: asked again"),
        pytest.param([("status", 503, {"Retry-After": "0"})], 2, id="503: asked again"),
        pytest.param([("status", 429, {"Retry-After": "0"})], 2, id="429: asked again"),
        pytest.param([("cut", 1_000_000), ("status", 500)], 3, id="cut, then 500: still resumed"),
        pytest.param([("length", 500)], 2, id="promises more than it sends: 416 settles it"),
    ],
)
def test_passing_troubles(server: Server, store: Path, faults: list[Any], requests: int, known: bool) -> None:
    """Every byte crosses the wire once."""
    server.files[PATH] = File(DATA, faults=list(faults))
    digest = SHA if known else None
    model = install(plan(server.url(PATH), size=None, sha256=digest), store)
    assert content(model) == DATA
    assert len(server.gets()) == requests
    assert server.sent[PATH] == SIZE
    assert model.fingerprint == ("f" if known else None)


def test_if_range_carries_the_etag(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, faults=[("cut", 1_000_000)])
    install(plan(server.url(PATH)), store)
    second = server.gets()[1].headers
    assert second["Range"] == "bytes=1000000-"
    assert second["If-Range"] == server.files[PATH].etag


def test_200_instead_of_206_with_the_same_etag_keeps_the_part(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, faults=[("cut", 1_000_000), "whole"])
    assert content(install(plan(server.url(PATH)), store)) == DATA


def test_200_instead_of_206_without_etag_starts_over(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, ranges=False, faults=[("cut", 1_000_000)])
    server.files[PATH].etag = ""
    assert content(install(plan(server.url(PATH)), store)) == DATA


def test_no_ranges_and_no_digest_never_joins_two_files(server: Server, store: Path) -> None:
    other = gguf(SIZE, seed=7)

    def swap(file: File) -> None:
        file.data, file.etag = other, '"other"'

    server.files[PATH] = File(DATA, faults=[("cut", 1_000_000), swap])
    model = install(plan(server.url(PATH), size=None, sha256=None), store)
    assert content(model) == other


def test_416_when_the_part_is_whole(server: Server, store: Path) -> None:
    """All bytes came, then the connection broke before anybody could tell: the server's 416 settles it."""
    server.files[PATH] = File(DATA, faults=[("length", 100)])
    with pytest.raises(TransferFailed, match="tried several times"):
        server.files[PATH].faults = [("length", 100)] + [("status", 503)] * 5
        install(plan(server.url(PATH), size=None, sha256=None), store)
    model = install(plan(server.url(PATH), size=None, sha256=None), store)
    assert content(model) == DATA
    assert server.sent[PATH] == SIZE


def test_416_for_a_file_that_became_shorter(server: Server, store: Path) -> None:
    short = gguf(1_000_000, seed=3)

    def shrink(file: File) -> None:
        file.data, file.etag = short, '"short"'

    server.files[PATH] = File(DATA, faults=[("cut", 2_000_000), shrink])
    model = install(plan(server.url(PATH), size=None, sha256=None), store)
    assert content(model) == short


def test_changed_etag_between_parts(server: Server, store: Path) -> None:
    """The server answers 206 although If-Range did not match: the other ETag gives it away."""
    server.files[PATH] = File(DATA, faults=[("cut", 1_000_000), ("etag", '"another"')])
    said = Said()
    assert content(install(plan(server.url(PATH)), store, said)) == DATA
    assert any("other ETag" in note for note in said.notes)


def test_a_server_that_never_stays_the_same_is_given_up(server: Server, store: Path) -> None:
    """Each answer has another ETag and breaks off: bounded, however much each one brings."""
    versions = iter(range(1000))

    def another(file: File) -> tuple[str, int]:
        file.etag = f'"{next(versions)}"'
        return "cut", 1_000_000

    server.files[PATH] = File(DATA, faults=[another] * 100)
    with pytest.raises(TransferFailed, match="given up after 3 new starts"):
        install(plan(server.url(PATH)), store)
    assert len(server.gets()) < 10


def test_a_server_without_ranges_that_always_breaks_off_is_given_up(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, ranges=False, faults=[("cut", size) for size in range(100_000, 2_000_000, 70_000)])
    server.files[PATH].etag = ""
    with pytest.raises(TransferFailed, match="given up after 3 new starts"):
        install(plan(server.url(PATH)), store)


def test_shifted_range_is_not_appended(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, faults=[("cut", 1_000_000), ("shift", 4096)])
    assert content(install(plan(server.url(PATH)), store)) == DATA


@pytest.mark.parametrize("known", [True, False], ids=["digest known", "digest unknown"])
def test_wrong_length(server: Server, store: Path, known: bool) -> None:
    """Another size than the entry's: refused before the body is paid for."""
    server.files[PATH] = File(DATA[:-10])
    with pytest.raises(TransferFailed, match=r"2,999,990 bytes there, wanted 3,000,000"):
        install(plan(server.url(PATH), sha256=SHA if known else None), store)
    assert nothing_published(store)


def test_a_server_that_sends_without_end(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA + b"more", chunked=True)
    with pytest.raises(TransferFailed, match="more than 3,000,000 bytes"):
        install(plan(server.url(PATH)), store)
    assert nothing_published(store)


def test_chunked_without_a_length(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, chunked=True)
    assert content(install(plan(server.url(PATH), size=None, sha256=None), store)) == DATA


def test_chunked_cut_is_not_an_end(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, chunked=True, faults=[("cut", 1_000_000)])
    assert content(install(plan(server.url(PATH), size=None, sha256=None), store)) == DATA


def test_no_length_at_all_is_refused(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, faults=["no-length"])
    with pytest.raises(TransferFailed, match="does not say how long"):
        install(plan(server.url(PATH), size=None, sha256=None), store)


def test_flipped_byte(server: Server, store: Path) -> None:
    """Refused with both digests, nothing published, not downloaded twice in one run; the next run is clean."""
    server.files[PATH] = File(DATA, faults=[("flip", 1_234_567)])
    with pytest.raises(TransferFailed, match=f"sha256 [0-9a-f]{{64}}, wanted {SHA}"):
        install(plan(server.url(PATH)), store)
    assert nothing_published(store)
    assert server.sent[PATH] == SIZE
    assert content(install(plan(server.url(PATH)), store)) == DATA


def test_the_same_wrong_file_is_not_paid_for_a_third_time(server: Server, store: Path) -> None:
    """The server has other bytes of the right length: told twice, then refused before the body, until they change."""
    server.files[PATH] = File(gguf(SIZE, seed=11), rate=2e7)  # slower than the client: little is under way
    for _ in range(3):
        with pytest.raises(TransferFailed) as caught:
            install(plan(server.url(PATH)), store)
    assert "not downloaded, this version arrived with sha256" in str(caught.value)
    assert server.sent[PATH] <= 2 * SIZE + (1 << 20)
    server.files[PATH] = File(DATA)
    assert content(install(plan(server.url(PATH)), store)) == DATA


def test_two_different_damages_are_no_verdict_on_the_server(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, faults=[("flip", 1), ("flip", 2)])
    for _ in range(2):
        with pytest.raises(TransferFailed):
            install(plan(server.url(PATH)), store)
    assert content(install(plan(server.url(PATH)), store)) == DATA


def test_flipped_byte_falls_over_to_the_next_source(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, faults=[("flip", 10)])
    server.files["/mirror/model.gguf"] = File(DATA)
    model = install(plan(server.url(PATH), server.url("/mirror/model.gguf")), store)
    assert content(model) == DATA
    assert model.files[0].origin.endswith("/mirror/model.gguf")


def test_a_mirror_continues_what_the_first_source_began(server: Server, store: Path) -> None:
    """The digest proves the joined file, so nothing is fetched twice."""
    server.files[PATH] = File(DATA, faults=[("cut", 2000000), ("status", 404)])
    server.files["/mirror/model.gguf"] = File(DATA, etag='"mirror"')
    assert content(install(plan(server.url(PATH), server.url("/mirror/model.gguf")), store)) == DATA
    assert server.sent[PATH] + server.sent["/mirror/model.gguf"] == SIZE


def test_without_a_digest_a_mirror_starts_over(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, faults=[("cut", 2000000), ("status", 404)])
    server.files["/mirror/model.gguf"] = File(gguf(SIZE, seed=9), etag='"mirror"')
    model = install(plan(server.url(PATH), server.url("/mirror/model.gguf"), sha256=None), store)
    assert content(model) == gguf(SIZE, seed=9)
