"""What arrived wrong: not paid for a third time, another chance where something speaks for it, and said the same way by
pull, doctor and rm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gezel_rules.errors import GezelError
from gezel_rules.store.install import install, installed, remove
from gezel_rules.store.leftovers import leftovers
from gezel_rules.store.rejected import MOST, Rejected

from .conftest import gguf
from .hub_server import File, Server
from .test_faults import DATA, PATH, SHA, SIZE, content, plan

WRONG = gguf(SIZE, seed=11)
OTHER = "/mirror/model.gguf"


def arrives_wrong(server: Server, store: Path, times: int = 2, *paths: str) -> str:
    """Pulls so often; what the last said."""
    said = ""
    for _ in range(times):
        with pytest.raises(GezelError) as caught:
            install(plan(*(server.url(path) for path in paths or (PATH,))), store)
        said = str(caught.value)
    return said


@pytest.fixture
def refused(server: Server, store: Path) -> Path:
    """A version that arrived wrong twice; the file that remembers."""
    server.files[PATH] = File(WRONG, '"same"')
    arrives_wrong(server, store)
    server.seen.clear()
    server.sent.clear()
    return store / ".staging" / "m" / "model.gguf.rejected"


def test_the_third_time_is_refused_with_what_a_person_can_do(server: Server, store: Path, refused: Path) -> None:
    said = arrives_wrong(server, store, 1)
    assert "not downloaded" in said and said.endswith(f"deleting {refused} forgets that") and "\n" not in said
    server.files[PATH] = File(DATA, '"same"')
    refused.unlink()
    assert content(install(plan(server.url(PATH)), store)) == DATA


def _another_etag(server: Server) -> None:
    server.files[PATH] = File(DATA, '"next"')


def _stated_by_the_hub(server: Server) -> None:
    server.files[PATH] = File(DATA, '"same"', headers={"X-Linked-Etag": f'"{SHA}"'})


def _the_etag_is_the_digest(server: Server) -> None:
    server.files[PATH] = File(DATA, f'"{SHA}"')


def _no_etag(server: Server) -> None:
    server.files[PATH] = File(DATA)
    server.files[PATH].etag = ""


@pytest.mark.parametrize("how", [_another_etag, _stated_by_the_hub, _the_etag_is_the_digest, _no_etag])
def test_what_gets_another_chance(server: Server, store: Path, refused: Path, how: Callable[[Server], None]) -> None:
    how(server)
    assert content(install(plan(server.url(PATH)), store)) == DATA
    assert not refused.exists() and leftovers(store) == []


def test_an_etag_that_is_the_digest_speaks_for_the_file(server: Server, store: Path) -> None:
    """Damage under the right name, twice: the third time it may arrive whole."""
    server.files[PATH] = File(WRONG, f'"{SHA}"')
    arrives_wrong(server, store)
    server.files[PATH] = File(DATA, f'"{SHA}"')
    assert content(install(plan(server.url(PATH)), store)) == DATA


def test_an_entry_that_wants_another_digest_is_asked_anew(server: Server, store: Path, refused: Path) -> None:
    import hashlib

    model = install(plan(server.url(PATH), sha256=hashlib.sha256(WRONG).hexdigest()), store)
    assert content(model) == WRONG


def test_two_wrong_sources_are_each_remembered(server: Server, store: Path) -> None:
    server.files[PATH], server.files[OTHER] = File(WRONG, rate=2e7), File(gguf(SIZE, seed=12), rate=2e7)
    said = arrives_wrong(server, store, 4, PATH, OTHER)
    assert said.count("not downloaded") == 2
    assert max(server.sent[PATH], server.sent[OTHER]) <= 2 * SIZE + (2 << 20)


def test_the_memory_is_bounded_and_believes_nothing_strange(tmp_path: Path) -> None:
    rejected = Rejected(tmp_path / "x.part")
    for number in range(3 * MOST):
        rejected.note("s", f'"{number}"', "w", "g")
        rejected.note("s", f'"{number}"', "w", "g")
    assert len(json.loads(rejected.path.read_text())) == MOST
    assert rejected.digest("s", f'"{3 * MOST - 1}"', "w") == "g" and not rejected.digest("s", '"0"', "w")
    for text in (
        "[",
        "{}",
        "[1]",
        '[{"source": "s"}]',
        '[{"source":"s","etag":"e","wanted":"w","got":"g","times":"9"}]',
    ):
        rejected.path.write_text(text)
        assert rejected.digest("s", "e", "w") == ""


# --- doctor, pull and rm agree ----------------------------------------------------------------------------------------


def test_doctor_says_what_pull_will_do(server: Server, store: Path, refused: Path) -> None:
    (item,) = leftovers(store)
    assert (item.path, item.harmless) == (refused, False)
    assert item.what == "model.gguf of m arrived wrong twice"
    assert item.advice == "that version is not downloaded again; deleting this file forgets that"
    assert remove(store, "m") == item.size and leftovers(store) == []
    server.files[PATH] = File(DATA, '"same"')
    assert content(install(plan(server.url(PATH)), store)) == DATA


def test_after_one_wrong_arrival_the_next_pull_goes_on(server: Server, store: Path) -> None:
    server.files[PATH] = File(WRONG, '"same"')
    arrives_wrong(server, store, 1)
    (item,) = leftovers(store)
    assert item.what == "an unfinished install of m" and item.advice.startswith("kept so that the next pull continues")


def test_an_update_that_failed_is_not_given_up_by_removing_the_model(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA)
    install(plan(server.url(PATH)), store)
    server.files[PATH] = File(gguf(2 * SIZE, seed=3), '"2"', faults=[("cut", SIZE // 3)] * 20)
    with pytest.raises(GezelError):
        install(plan(server.url(PATH), size=2 * SIZE, sha256="1" * 64), store)
    (item,) = leftovers(store)
    assert item.advice == "kept so that the next pull continues; deleting this folder gives it up"
    assert len(installed(store)) == 1
