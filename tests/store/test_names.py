"""Names that would escape the store, hide in it, or be two at once."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gezel_rules.errors import BadInput, TransferFailed
from gezel_rules.store.install import InstallPlan, Source, Wanted, install

from .conftest import gguf
from .hub_server import File, Server

DATA = gguf(3_000_000)
SHA = hashlib.sha256(DATA).hexdigest()
PATH = "/x/model.gguf"


def plan(server: Server, name: str = "model.gguf", directory: str = "m") -> InstallPlan:
    source = Source("url", server.url(PATH))
    return InstallPlan(directory, directory, (Wanted("model", name, len(DATA), SHA, (source,)),), fingerprint="f")


BAD_NAMES = [
    "../up.gguf", "/etc/x", "a/b.gguf", "a\\b.gguf", "..", ".", "", ".hidden", "manifest.json", "MANIFEST.JSON", "con",
    "nul.gguf", "a:b", "a\nb", "a\x00b", "x" * 300, "end.", "end ", "-rf", "a\u202egguf",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES)
def test_no_name_leaves_the_store(server: Server, store: Path, name: str) -> None:
    with pytest.raises(BadInput) as caught:
        install(plan(server, name=name), store)
    assert "\n" not in str(caught.value)
    assert not store.exists()


@pytest.mark.parametrize("directory", ["../m", "a/b", "..", "", ".staging", "/tmp/m"])
def test_no_directory_leaves_the_store(server: Server, store: Path, directory: str) -> None:
    with pytest.raises(BadInput):
        install(plan(server, directory=directory), store)
    assert not store.exists()


@pytest.mark.parametrize("names", [("a.gguf", "A.gguf"), ("é.gguf", "e\u0301.gguf"), ("a.gguf", "a.gguf")])
def test_names_that_collide_where_case_does_not_count(server: Server, store: Path, names: tuple[str, str]) -> None:
    one, two = (plan(server, name=name).wanted[0] for name in names)
    with pytest.raises(BadInput, match="same file"):
        install(InstallPlan("m", "m", (one, two)), store)


def test_directories_that_collide_where_case_does_not_count(server: Server, store: Path) -> None:
    (store / "Model").mkdir(parents=True)
    with pytest.raises(BadInput, match="differs only by case"):
        install(plan(server, directory="model"), store)


@pytest.mark.parametrize("place", ["m", ".staging", ".staging/m", ".locks"])
def test_a_link_in_the_store_is_not_followed(server: Server, store: Path, tmp_path: Path, place: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (store / place).parent.mkdir(parents=True, exist_ok=True)
    (store / place).symlink_to(elsewhere)
    with pytest.raises(BadInput, match="symbolic link"):
        install(plan(server), store)
    assert not list(elsewhere.iterdir())


def test_a_link_in_place_of_a_part_is_not_followed(server: Server, store: Path, tmp_path: Path) -> None:
    server.files[PATH] = File(DATA)
    mine = tmp_path / "mine"
    mine.write_text("precious")
    (store / ".staging" / "m").mkdir(parents=True)
    (store / ".staging" / "m" / "model.gguf.part").symlink_to(mine)
    with pytest.raises((BadInput, TransferFailed)):
        install(plan(server), store)
    assert mine.read_text() == "precious"
