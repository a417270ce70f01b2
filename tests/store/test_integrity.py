"""A changed file does not go unnoticed: by its stat in every listing, by its digest before a launch."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gezel_rules.errors import Refused
from gezel_rules.store.install import Installed, install, installed, remove
from gezel_rules.store.integrity import CHANGED, fault, unchanged
from gezel_rules.store.launch_files import confirmed, used_by
from gezel_rules.store.leftovers import leftovers
from gezel_rules.store.wanted import InstalledFile, InstallPlan, Source, Wanted

from .conftest import gguf
from .test_shelf import put

OTHER = b"8 bytes!"


def the_file(store: Path, model_id: str = "one") -> InstalledFile:
    return next(model for model in installed(store) if model.model_id == model_id).files[0]


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(OTHER)


def overwritten_unseen(path: Path) -> None:
    """With the modification time put back."""
    before = path.stat()
    overwrite(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[1000:1008] = OTHER
    path.unlink()
    path.write_bytes(data)


def confirm(store: Path) -> list[str]:
    """What a launch says of the model's files. Raises Refused."""
    said: list[str] = []
    confirmed(store, used_by([the_file(store).path], store), said.append)
    return said


@pytest.mark.parametrize("how", [overwrite, overwritten_unseen, replaced])
def test_eight_bytes_are_noticed_and_refused(store: Path, tmp_path: Path, how: Callable[[Path], None]) -> None:
    put(store, tmp_path, "one")
    assert confirm(store) == []
    how(Path(the_file(store).path))
    (item,) = leftovers(store)
    assert (item.what, item.advice) == (f"a.gguf {CHANGED}", "'gezel-rules verify one' hashes it again")
    with pytest.raises(Refused, match=r"has sha256 .*, recorded .*; 'gezel-rules pull one' fetches it again$"):
        confirm(store)
    assert fault(the_file(store)) == CHANGED  # nothing was recorded of wrong bytes


def test_a_missing_a_shorter_and_a_linked_file_are_refused_unhashed(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "one")
    path = Path(the_file(store).path)
    os.truncate(path, 4000)
    with pytest.raises(Refused, match=r"has 4,000 bytes, not 5,000; 'gezel-rules pull one'"):
        confirm(store)
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="is missing"):
        confirmed(store, [the_file(store)], print)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="no longer a plain file"):
        confirmed(store, [the_file(store)], print)


def _touched(store: Path, path: Path) -> None:
    os.utime(path, ns=(5, 5))


def _mode(store: Path, path: Path) -> None:
    path.chmod(0o600)


def _restored_later(store: Path, path: Path) -> None:
    """By a program that keeps no times."""
    shutil.copyfile(path, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


@pytest.mark.parametrize("how", [_touched, _mode, _restored_later])
def test_the_same_bytes_are_hashed_once_and_recorded_anew(
    store: Path, tmp_path: Path, how: Callable[[Path, Path], None]
) -> None:
    put(store, tmp_path, "one")
    assert confirm(store) == []
    how(store, Path(the_file(store).path))
    assert [line.partition(": ")[2] for line in confirm(store)] == [f"{CHANGED}; hashing it again"]
    assert unchanged(the_file(store)) and leftovers(store) == [] and confirm(store) == []


def _copied(path: Path) -> None:
    shutil.copy2(path, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def _in_whole_seconds(path: Path) -> None:
    _copied(path)
    os.utime(path, ns=(0, path.stat().st_mtime_ns // 10**9 * 10**9))


def _linked(path: Path) -> None:
    os.link(path, path.with_suffix(".second"))
    (path.parents[3] / "backup").mkdir()
    path.with_suffix(".second").rename(path.parents[3] / "backup" / "a.gguf")


@pytest.mark.parametrize("how", [_copied, _in_whole_seconds, _linked])
def test_copies_backups_and_second_names_cost_no_hashing(
    store: Path, tmp_path: Path, how: Callable[[Path], None]
) -> None:
    put(store, tmp_path, "one")
    assert confirm(store) == []
    how(Path(the_file(store).path))
    assert leftovers(store) == [] and confirm(store) == []


def test_a_record_older_than_change_times_holds(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "one")
    manifest = store / "one" / "manifest.json"
    data = json.loads(manifest.read_text())
    for key in ("ctime_ns", "links"):
        del data["files"][0][key]
    manifest.write_text(json.dumps(data))
    assert confirm(store) == []
    overwrite(Path(the_file(store).path))
    with pytest.raises(Refused):
        confirm(store)


# --- files that have, or had, another name ----------------------------------------------------------------------------


def adopted(store: Path, source: Path, data: bytes) -> Installed:
    """A model whose file is a second name of the person's own, or a copy of it; nobody stated its digest."""
    source.write_bytes(data)
    wanted = Wanted("model", "a.gguf", None, None, (Source("path", str(source)),))
    return install(InstallPlan("one", "one", (wanted,)), store)


def test_an_adopted_file_changed_under_its_first_name(store: Path, tmp_path: Path) -> None:
    source = tmp_path / "mine.gguf"
    adopted(store, source, gguf(5000))
    if not Path(the_file(store).path).samefile(source):
        pytest.skip("this file system has no hard links: the store has a copy of its own")
    overwrite(source)
    with pytest.raises(Refused):
        confirm(store)
    adopted(store, source, source.read_bytes())  # that is what is wanted now
    assert confirm(store) == []
    source.unlink()
    assert confirm(store) == []


def test_a_file_that_two_models_share(store: Path, tmp_path: Path) -> None:
    data = gguf(5000)
    for name in ("one", "two"):
        put(store, tmp_path, name, data)
    one, two = the_file(store), the_file(store, "two")
    assert leftovers(store) == []
    remove(store, "two")
    assert leftovers(store) == [] and confirm(store) == []
    put(store, tmp_path, "two", data)
    overwrite(Path(the_file(store, "two").path))
    shared = Path(one.path).samefile(two.path)
    assert [item.path for item in leftovers(store)] == [Path(one.path), Path(two.path)][not shared :]


def test_a_file_changed_while_the_rest_of_its_model_arrives(store: Path, tmp_path: Path) -> None:
    """Hashed first, recorded minutes later: the record is of the bytes that were hashed."""
    source, rest = tmp_path / "mine.gguf", tmp_path / "rest.gguf"
    source.write_bytes(gguf(5000))
    rest.write_bytes(gguf(3000))

    from gezel_rules.store.progress import Progress

    class Meanwhile(Progress):
        def begin(self, name: str, size: int | None, at: int = 0) -> None:
            if name == "rest.gguf":
                overwrite(source)

    files = [("model", "a.gguf", source), ("projector", "rest.gguf", rest)]
    wanted = [Wanted(role, name, None, None, (Source("path", str(path)),)) for role, name, path in files]
    model = install(InstallPlan("one", "one", tuple(wanted)), store, Meanwhile())
    if not Path(model.files[0].path).samefile(source):
        pytest.skip("this file system has no hard links: the store has a copy of its own")
    with pytest.raises(Refused):
        confirm(store)


# --- which files a launch uses ----------------------------------------------------------------------------------------


def sharded(store: Path, tmp_path: Path) -> Installed:
    names = [("model", "m-1.gguf"), ("model", "m-2.gguf"), ("projector", "p.gguf"), ("draft", "d.gguf")]
    wanted = []
    for number, (role, name) in enumerate(names):
        (tmp_path / name).write_bytes(gguf(4000, seed=number))
        wanted.append(Wanted(role, name, None, None, (Source("path", str(tmp_path / name)),)))
    return install(InstallPlan("one", "one", tuple(wanted)), store)


def test_a_launch_uses_what_its_argv_names_and_the_models_other_shards(store: Path, tmp_path: Path) -> None:
    model = sharded(store, tmp_path)
    first, second, projector, draft = model.files
    put(store, tmp_path, "two")
    assert used_by(["-m", first.path, "--mmproj", projector.path, "-c", "512"], store) == (first, second, projector)
    assert used_by(["-md", draft.path, "-m", the_file(store, "two").path], store) == (draft, the_file(store, "two"))
    assert used_by(["-m", os.path.relpath(first.path)], store) == (first, second)
    alias = tmp_path / "alias"
    alias.symlink_to(store)
    assert used_by(["-m", first.path.replace(str(store), str(alias))], store) == (first, second)


def test_what_is_not_of_the_store_is_used_unasked(store: Path, tmp_path: Path) -> None:
    assert used_by(["-m", "/no/such.gguf"], store) == ()
    sharded(store, tmp_path)
    (store / "one" / "stray.gguf").write_bytes(b"GGUF")
    assert used_by(["-m", str(tmp_path / "m-1.gguf"), "--lora", str(store / "one" / "stray.gguf")], store) == ()


def test_a_store_that_cannot_be_written_is_hashed_each_time(store: Path, tmp_path: Path) -> None:
    put(store, tmp_path, "one")
    os.utime(the_file(store).path, ns=(5, 5))
    shutil.rmtree(store / ".locks")
    (store / ".locks").symlink_to(tmp_path)  # no lock can be had, so no record is written
    assert len(confirm(store)) == len(confirm(store)) == 1
