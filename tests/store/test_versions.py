"""Two versions of a file are never joined, and what a server says in numbers is taken for what it is."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gezel_rules.cli import main
from gezel_rules.errors import GezelError
from gezel_rules.store.install import install, remove
from gezel_rules.store.leftovers import leftovers
from gezel_rules.store.part import Part

from .conftest import gguf
from .hub_server import File, Server
from .test_faults import DATA, PATH, SIZE, content, plan

NEXT = gguf(SIZE, seed=1)


def _cut_then_changed(etag: str) -> File:
    """Cut off after a third; the next request meets another file of the same length under the same ETag."""
    file = File(DATA, "none")

    def changes(file: File) -> tuple[str, int]:
        file.data = NEXT
        return ("cut", SIZE // 3)

    file.etag, file.faults = etag, [("cut", SIZE // 3), changes]
    return file


@pytest.mark.parametrize("etag", ["", 'W/"1"'], ids=["no ETag", "a weak ETag that stays"])
@pytest.mark.parametrize("size", [SIZE, None], ids=["size known", "size unknown"])
def test_without_proof_it_starts_again(server: Server, store: Path, etag: str, size: int | None) -> None:
    server.files[PATH] = _cut_then_changed(etag)
    assert content(install(plan(server.url(PATH), size=size, sha256=None), store)) == NEXT
    assert all("Range" not in seen.headers for seen in server.gets())


@pytest.mark.parametrize("etag", ["", 'W/"1"'])
def test_a_pull_of_another_day_starts_again_too(server: Server, store: Path, etag: str) -> None:
    server.files[PATH] = File(DATA, etag or "none", faults=[("cut", SIZE // 3)] * 20)
    server.files[PATH].etag = etag
    with pytest.raises(GezelError):
        install(plan(server.url(PATH), sha256=None), store)
    server.files[PATH] = File(NEXT, etag or "none")
    server.files[PATH].etag = etag
    assert content(install(plan(server.url(PATH), sha256=None), store)) == NEXT


def test_with_a_digest_the_bytes_are_kept(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, "none", faults=[("cut", SIZE // 3)])
    server.files[PATH].etag = ""
    assert content(install(plan(server.url(PATH)), store)) == DATA
    assert [seen.headers.get("Range") for seen in server.gets()] == [None, f"bytes={SIZE // 3}-"]


@pytest.mark.parametrize("said", ["²", "9" * 5000, "-1", "1e9", "٣"])
@pytest.mark.parametrize("header", ["Content-Length", "X-Linked-Size", "Retry-After"])
def test_a_number_that_is_none(server: Server, store: Path, header: str, said: str) -> None:
    """One line, or the file: never a fault."""
    raw = said.encode("utf-8").decode("latin-1")
    if header == "Retry-After":
        server.files[PATH] = File(DATA, faults=[("status", 503, {header: raw})])
    else:
        server.files[PATH] = File(DATA, headers={header: raw})
    try:
        assert content(install(plan(server.url(PATH)), store)) == DATA
    except GezelError as error:
        assert "\n" not in str(error)


def test_a_listing_of_nested_lists(server: Server, store: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.base)
    server.files["/api/models/user/repo/tree/main"] = File(b"[" * 200_000)
    assert main(["--store", str(store), "pull", "user/repo:Q4_K_M"]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_a_size_beyond_every_disk_spoils_one_model_alone(server: Server, store: Path, capsys: Any) -> None:
    server.files[PATH] = File(DATA)
    install(plan(server.url(PATH)), store)
    path = store / "m" / "manifest.json"
    path.write_text(path.read_text().replace(f'"size": {SIZE}', f'"size": 1{"0" * 400}'))
    assert main(["--store", str(store), "ls", "--json"]) == 0
    assert capsys.readouterr().err.endswith("manifest.json: not a manifest (size is no size)\n")


def test_an_install_that_never_finished_can_be_given_up(server: Server, store: Path) -> None:
    """``doctor`` says that 'rm' does it."""
    server.files[PATH] = File(DATA, faults=[("cut", SIZE // 3)] * 20)
    server.files[PATH].ranges = False
    server.files[PATH].etag = '"1"'
    with pytest.raises(GezelError):
        install(plan(server.url(PATH)), store)
    (left,) = leftovers(store)
    assert "'rm' of the model" in left.advice
    assert remove(store, "m") == left.size
    assert leftovers(store) == []


def test_a_kill_costs_eight_mebibytes(tmp_path: Path) -> None:
    """However fast the line: a checkpoint is due by bytes as well as by time."""
    from gezel_rules.store.progress import Limit
    from gezel_rules.store.stream import CHECKPOINT_BYTES, Stream

    part = Part(tmp_path / "x.part")
    part.open()
    stream = Stream(part, lambda _: None, Limit())
    stream.take(lambda view: len(view), 10 * CHECKPOINT_BYTES)
    stream.close()
    marks = [0, *sorted(part.checkpoints)]
    part.close()
    assert max(after - before for before, after in pairwise(marks)) <= 2 * CHECKPOINT_BYTES
