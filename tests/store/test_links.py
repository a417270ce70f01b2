"""Links that somebody planted in a store: nothing outside is read as ours, written or removed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gezel_rules.errors import BadInput
from gezel_rules.store.install import install, installed, remove
from gezel_rules.store.leftovers import leftovers, repair

from .hub_server import File, Server
from .test_faults import DATA, PATH, content, plan

PRECIOUS = b"somebody's own"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the store, with a file in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "model.gguf").write_bytes(PRECIOUS)
    return folder


def untouched(outside: Path) -> bool:
    return [(path.name, path.read_bytes()) for path in outside.iterdir()] == [("model.gguf", PRECIOUS)]


def to_folder(at: str) -> Callable[[Path, Path], None]:
    def plant(store: Path, outside: Path) -> None:
        (store / at).parent.mkdir(parents=True, exist_ok=True)
        (store / at).symlink_to(outside, target_is_directory=True)

    return plant


def to_file(at: str, how: Callable[[Path, Path], None] = os.symlink) -> Callable[[Path, Path], None]:
    def plant(store: Path, outside: Path) -> None:
        (store / at).parent.mkdir(parents=True, exist_ok=True)
        how(outside / "model.gguf", store / at)

    return plant


REFUSED = {
    "the staging folder of all": to_folder(".staging"),
    "the staging folder of the model": to_folder(".staging/m"),
    "the folder of what is ready": to_folder(".staging/m/ready"),
    "the model's folder": to_folder("m"),
    "the folder of locks": to_folder(".locks"),
    "the lock": to_file(".locks/m.lock"),
    "the part": to_file(".staging/m/model.gguf.part"),
    "a second name of the part": to_file(".staging/m/model.gguf.part", os.link),
    "the part's log": to_file(".staging/m/model.gguf.part.log"),
    "a second name of the part's log": to_file(".staging/m/model.gguf.part.log", os.link),
}
REPLACED = {
    "the manifest": to_file("m/manifest.json"),
    "the manifest on its way": to_file("m/manifest.json.new"),
    "a second name of the manifest on its way": to_file("m/manifest.json.new", os.link),
    "what is ready": to_file(".staging/m/ready/model.gguf"),
    "something else that is ready": to_file(".staging/m/ready/other.gguf"),
    "a folder that is ready": to_folder(".staging/m/ready/more"),
    "what arrived wrong": to_file(".staging/m/model.gguf.rejected"),
    "an old generation": to_folder("m/0123456789ab"),
}


@pytest.mark.parametrize("planted", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(server: Server, store: Path, outside: Path, planted: Callable[[Path, Path], None]) -> None:
    server.files[PATH] = File(DATA)
    planted(store, outside)
    with pytest.raises(BadInput, match=r"is a symbolic link|hard link|cannot be written \(too many levels"):
        install(plan(server.url(PATH)), store)
    assert untouched(outside)


@pytest.mark.parametrize("planted", REPLACED.values(), ids=REPLACED)
def test_what_is_replaced(server: Server, store: Path, outside: Path, planted: Callable[[Path, Path], None]) -> None:
    server.files[PATH] = File(DATA)
    planted(store, outside)
    model = install(plan(server.url(PATH)), store)
    assert content(model) == DATA
    assert untouched(outside)
    assert sorted(path.name for path in (store / "m").iterdir()) == [
        Path(model.files[0].path).parent.name,
        "manifest.json",
    ]


@pytest.mark.parametrize("kind", ["link", "second name"])
def test_a_wrong_arrival_is_not_noted_elsewhere(server: Server, store: Path, outside: Path, kind: str) -> None:
    server.files[PATH] = File(DATA[:-1] + b"x")
    to_file(".staging/m/model.gguf.rejected", os.symlink if kind == "link" else os.link)(store, outside)
    with pytest.raises(Exception, match="wanted"):
        install(plan(server.url(PATH)), store)
    assert untouched(outside)


def test_the_generation_that_comes_is_a_link(server: Server, store: Path, outside: Path) -> None:
    server.files[PATH] = File(DATA)
    home = Path(install(plan(server.url(PATH)), store).files[0].path).parent
    (store / "m" / "manifest.json").unlink()
    (home / "model.gguf").unlink()
    home.rmdir()
    home.symlink_to(outside, target_is_directory=True)
    assert content(install(plan(server.url(PATH)), store)) == DATA
    assert untouched(outside)


def test_repair_removes_the_link_alone(server: Server, store: Path, outside: Path) -> None:
    server.files[PATH] = File(DATA)
    install(plan(server.url(PATH)), store)
    to_folder(".staging/removed-x")(store, outside)
    to_folder("m/old")(store, outside)
    to_file("m/old.gguf")(store, outside)
    assert [item.path.name for item in repair(store)] == ["removed-x", "old", "old.gguf"]
    assert leftovers(store) == []
    assert untouched(outside)


def test_a_model_is_not_removed_into_another_folder(server: Server, store: Path, outside: Path) -> None:
    server.files[PATH] = File(DATA)
    install(plan(server.url(PATH)), store)
    (store / ".staging").rmdir()
    to_folder(".staging")(store, outside)
    with pytest.raises(BadInput, match="is a symbolic link"):
        remove(store, "m")
    assert untouched(outside)


def test_a_pipe_is_not_waited_for(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA)
    install(plan(server.url(PATH)), store)
    (store / "m" / "manifest.json").unlink()
    os.mkfifo(store / "m" / "manifest.json")
    with pytest.warns(UserWarning, match="not a plain file"):
        assert installed(store) == []
