"""The shelf: listing, removing, verifying, leftovers."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from gezel_rules.errors import BadInput
from gezel_rules.store.install import InstallPlan, Source, Wanted, install, installed, remove, verify
from gezel_rules.store.leftovers import leftovers, repair
from gezel_rules.store.shelf import find_installed

from .conftest import gguf


def put(store: Path, tmp_path: Path, model_id: str, data: bytes | None = None) -> InstallPlan:
    """Install a model from a local file."""
    data = data or gguf(5000, seed=len(model_id))
    path = tmp_path / f"{model_id}.src"
    path.write_bytes(data)
    known = Wanted("model", "a.gguf", len(data), hashlib.sha256(data).hexdigest(), (Source("path", str(path)),))
    plan = InstallPlan(model_id, model_id, (known,), fingerprint="f", entry_digest="e")
    install(plan, store)
    path.unlink()
    return plan


def test_empty_and_missing_stores(store: Path) -> None:
    assert installed(store) == []
    store.mkdir()
    assert installed(store) == []


def test_ten_thousand_models(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "first")
    manifest = json.loads((store / "first" / "manifest.json").read_text())
    for number in range(9_999):
        folder = store / f"m{number:05}"
        folder.mkdir()
        (folder / "manifest.json").write_text(json.dumps({**manifest, "model_id": folder.name}))
    warned: list[str] = []
    models = installed(store, warned.append)
    assert len(models) == 10_000
    assert [model.directory for model in models] == sorted(model.directory for model in models)
    assert not warned
    found = find_installed(store, "m00042")
    assert found is not None and found.model_id == "m00042"


BROKEN: dict[str, Any] = {
    "not JSON": "{",
    "another format": '{"manifest": 99}',
    "a list": "[]",
    "deep": "[" * 100_000,
    "no files": {"files": []},
    "escaping name": {"files": [{"role": "model", "name": "../../x", "size": 1, "sha256": "0" * 64}]},
    "escaping generation": {"generation": ".."},
    "size as text": {"files": [{"role": "model", "name": "x", "size": "1", "sha256": "0" * 64}]},
    "digest": {"files": [{"role": "model", "name": "x", "size": 1, "sha256": "zz"}]},
    "header": {"header": []},
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_directory_is_one_warning(store: Path, tmp_path: Path, what: str) -> None:
    put(store, tmp_path, "good")
    put(store, tmp_path, "bad")
    path = store / "bad" / "manifest.json"
    how = BROKEN[what]
    path.write_text(how if isinstance(how, str) else json.dumps({**json.loads(path.read_text()), **how}))
    warned: list[str] = []
    assert [model.model_id for model in installed(store, warned.append)] == ["good"]
    assert len(warned) == 1
    assert "bad" in warned[0] and "\n" not in warned[0]


@pytest.mark.filterwarnings("error")
def test_a_manifest_without_a_model_is_none_and_whoever_asks_for_it_is_told(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "bad")
    path = store / "bad" / "manifest.json"
    path.write_text(path.read_text().replace('"model"', '"modelmodel"'))
    for ask in (verify, remove):
        with pytest.raises(BadInput, match=r"'bad' is not installed; skipped: .*no file of a model"):
            ask(store, "bad")


def test_strange_things_in_the_store(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "good")
    (store / "notes.txt").write_text("mine")
    (store / "link").symlink_to(tmp_path)
    (store / "stray").mkdir()
    (store / "stray" / "x.gguf").write_bytes(b"GGUF")
    warned: list[str] = []
    assert [model.model_id for model in installed(store, warned.append)] == ["good"]
    assert len(warned) == 1 and "stray" in warned[0]


def test_remove_what_is_not_there(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "gemma-small")
    with pytest.raises(BadInput, match=r"'gemma-smal' is not installed; did you mean 'gemma-small'\?"):
        remove(store, "gemma-smal")
    for name in ("../x", "", ".staging", "/etc"):
        with pytest.raises(BadInput):
            remove(store, name)


def test_remove_does_not_follow_links(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "one")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (store / "one" / "link").symlink_to(outside)
    remove(store, "one")
    assert (outside / "precious").read_text() == "x"
    assert installed(store) == []


def test_verify_finds_a_flipped_byte_behind_an_old_stat(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "one")
    path = Path(installed(store)[0].files[0].path)
    stat = path.stat()
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert "recorded" in verify(store, "one")[0].problem
    path.unlink()
    assert verify(store, "one")[0].problem == "is missing"


def test_verify_records_a_new_stat_once_the_bytes_are_right(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "one")
    path = Path(installed(store)[0].files[0].path)
    os.utime(path, ns=(5, 5))
    assert verify(store, "one")[0].problem == ""
    assert installed(store)[0].files[0].mtime_ns == 5


def test_a_copied_store_still_works(store: Path, tmp_path: Path) -> None:
    """Restored from a backup: other inodes, other times, same bytes."""
    plan = put(store, tmp_path, "one")
    moved = tmp_path / "restored"
    shutil.copytree(store, moved)
    for path in moved.rglob("*.gguf"):
        os.utime(path, ns=(9, 9))
    model = install(plan, moved)
    assert Path(model.files[0].path).is_relative_to(moved)


# --- leftovers -------------------------------------------------------------------------------------------------------


def test_a_clean_store_has_none(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "one")
    assert leftovers(store) == []
    assert repair(store) == []


def test_harmless_leftovers_go_the_others_stay(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "one")
    for name in (".staging/removed-old-1", ".staging/two/ready", "one/0123456789ab", "empty", "strange", "three"):
        (store / name).mkdir(parents=True)
    (store / "one" / "manifest.json.new").write_text("{")
    (store / "one" / "0123456789ab" / "a.gguf").write_bytes(b"old")
    (store / ".staging" / "two" / "a.gguf.part").write_bytes(b"x" * 100)
    (store / "strange" / "x.gguf").write_bytes(b"y" * 10)
    (store / "three" / "manifest.json").write_text("{")
    found = {str(item.path.relative_to(store)): item for item in leftovers(store)}
    harmless = {name for name, item in found.items() if item.harmless}
    assert harmless == {".staging/removed-old-1", "one/0123456789ab", "one/manifest.json.new", "empty"}
    assert set(found) - harmless == {".staging/two", "strange", "three"}
    assert found[".staging/two"].size == 100
    assert all(item.advice for item in found.values() if not item.harmless)
    assert {str(item.path.relative_to(store)) for item in repair(store)} == harmless
    assert {str(item.path.relative_to(store)) for item in leftovers(store)} == set(found) - harmless
    assert [model.model_id for model in installed(store, lambda _: None)] == ["one"]
    assert not any(verdict.problem for verdict in verify(store, "one"))


def test_a_missing_file_of_a_model_is_found(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "one")
    Path(installed(store)[0].files[0].path).unlink()
    (item,) = leftovers(store)
    assert (item.what, item.advice) == ("a.gguf is missing", "'gezel-rules pull one' fetches it again")
