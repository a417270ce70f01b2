"""A generation that somebody launches from stays: over updates, repairs and removals, until nobody holds it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gezel_rules.errors import Refused
from gezel_rules.store.holds import holding, in_use, unused, users
from gezel_rules.store.install import InstallPlan, Source, Wanted, install, installed, remove
from gezel_rules.store.leftovers import leftovers, repair, tidy

from .conftest import Said, gguf

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows deletes no open file, and has no such locks")


def version(store: Path, tmp_path: Path, seed: int, said: Said | None = None) -> Path:
    """Installs a version of a model; the folder it lies in."""
    path = tmp_path / f"{seed}.src"
    path.write_bytes(gguf(5000, seed=seed))
    wanted = Wanted("model", "a.gguf", None, None, (Source("path", str(path)),))
    return Path(install(InstallPlan("one", "one", (wanted,)), store, said or Said()).files[0].path).parent


def test_an_update_leaves_what_is_held(store: Path, tmp_path: Path) -> None:
    old, said = version(store, tmp_path, 1), Said()
    with holding([old]), holding([old]):
        new = version(store, tmp_path, 2, said)
        assert said.notes == [f"one: {users(old)} goes on with the version before until it ends"]
        tidy(store, ["one"])
        assert repair(store) == leftovers(store) == []
        assert (old / "a.gguf").read_bytes() == gguf(5000, seed=1)
        assert installed(store)[0].files[0].path == str(new / "a.gguf")
    assert [item.path for item in leftovers(store)] == [old]
    tidy(store, ["one", "gone", ".staging"])
    assert not old.exists() and leftovers(store) == []


@pytest.mark.parametrize("next_step", ["a pull that changes nothing", "an update"])
def test_a_later_pull_deletes_it(store: Path, tmp_path: Path, next_step: str) -> None:
    old = version(store, tmp_path, 1)
    with holding([old]):
        version(store, tmp_path, 2)
    version(store, tmp_path, 2 if "nothing" in next_step else 3)
    assert not old.exists() and leftovers(store) == []


@pytest.mark.parametrize("which", ["the model's own", "one before"])
def test_what_is_held_is_not_removed(store: Path, tmp_path: Path, which: str) -> None:
    old = version(store, tmp_path, 1)
    with holding([old]):
        if which == "one before":
            version(store, tmp_path, 2)
        with pytest.raises(Refused, match=r"one: in use by .*process.*; stop it first \('gezel-rules ps'"):
            remove(store, "one")
        assert old.is_dir() and len(installed(store)) == 1
    remove(store, "one")
    assert not list(store.glob("one"))


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the processes are listed in /proc")
def test_who_holds_it_is_named(store: Path, tmp_path: Path) -> None:
    folder = version(store, tmp_path, 1)
    with holding([folder]):
        child = os.fork()
        if child == 0:
            with holding([folder]):
                os.kill(os.getpid(), signal.SIGSTOP)
            os._exit(0)
        os.waitpid(child, os.WUNTRACED)
        assert users(folder) == f"processes {min(os.getpid(), child)}, {max(os.getpid(), child)}"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not in_use(folder)


def test_what_is_gone_or_no_folder_cannot_be_held(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").write_text("x")
    with holding([tmp_path / "none", tmp_path / "link", tmp_path / "file"]):
        assert not in_use(tmp_path) and not in_use(tmp_path / "file")


def test_nobody_begins_while_it_is_deleted(tmp_path: Path) -> None:
    with unused(tmp_path) as free, unused(tmp_path) as again:
        assert (free, again) == (True, False)
