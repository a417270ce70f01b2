"""Hub repositories by quant: listings, shards, projectors, and the hub client's own cache."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from gezel_rules.catalog.references import parse_reference
from gezel_rules.errors import BadInput, TransferFailed
from gezel_rules.store import hub
from gezel_rules.store.hub import HubFile
from gezel_rules.store.install import InstallPlan, Source, Wanted, install
from gezel_rules.store.reference_plan import plan_reference
from gezel_rules.store.web import Web

from .conftest import gguf, shipped_companions
from .hub_server import File, Server

DATA = gguf(400_000)
SHA = hashlib.sha256(DATA).hexdigest()
REPO, NAME = "someone/Some-GGUF", "Some-Q4_K_M.gguf"


def plan() -> InstallPlan:
    wanted = Wanted("model", "some.gguf", None, None, (Source("hub", REPO, NAME),))
    return InstallPlan("m", "m", (wanted,), fingerprint="f", entry_digest="e")


@pytest.fixture
def hub_server(server: Server, far: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    server.hub(REPO, {NAME: DATA}, far=far)
    monkeypatch.setenv("HF_ENDPOINT", server.base)
    return server


def test_user_repo_quant_end_to_end(
    server: Server, store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parts = {f"S-Q8_0-0000{n}-of-00002.gguf": gguf(50_000, seed=n) for n in (1, 2)}
    server.hub(REPO, {**parts, "mmproj-S-F16.gguf": gguf(9_000, seed=5), "S-Q4_K_M.gguf": DATA})
    monkeypatch.setenv("HF_ENDPOINT", server.base)
    found = plan_reference(parse_reference(f"{REPO}:q8_0"), Web(), companions=shipped_companions())
    assert [wanted.name for wanted in found.wanted] == [*parts, "mmproj-S-F16.gguf"]
    assert all(wanted.size and wanted.sha256 for wanted in found.wanted)
    model = install(found, store)
    assert model.model_id == f"hf://{REPO}:Q8_0"
    assert [file.role for file in model.files] == ["model", "model", "projector"]
    assert all(file.verified for file in model.files)
    folders = {Path(file.path).parent for file in model.files}
    assert len(folders) == 1
    without = plan_reference(parse_reference(f"{REPO}:q8_0"), Web(), vision=False, companions=shipped_companions())
    assert without.left_out == (("mmproj-S-F16.gguf", "images were declined"),)


def test_listing_pages(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.base)
    first = [{"type": "file", "path": "a.gguf", "size": 1}, {"type": "directory", "path": "d"}, "junk", None]
    second = [{"type": "file", "path": "b.gguf", "size": 2, "lfs": {"oid": SHA, "size": 2}}]
    path = f"/api/models/{REPO}/tree/main"
    server.files[path] = File(json.dumps(first).encode(), headers={"Link": f'<{server.url("/page2")}>; rel="next"'})
    server.files["/page2"] = File(json.dumps(second).encode())
    assert hub.listing(Web(), REPO) == [HubFile("a.gguf", 1, None), HubFile("b.gguf", 2, SHA)]
    server.files[path].headers["Link"] = '<http://evil.example/x>; rel="next"'
    with pytest.raises(TransferFailed, match="another host"):
        hub.listing(Web(), REPO)


@pytest.mark.parametrize("body", [b"<html>", b"", b'{"error": "x"}', b"[[[["])
def test_a_listing_that_is_none(server: Server, monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.base)
    server.files[f"/api/models/{REPO}/tree/main"] = File(body)
    with pytest.raises((BadInput, TransferFailed)):
        plan_reference(parse_reference(REPO), Web())


def test_a_private_repository_says_what_it_needs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.base)
    server.files[f"/api/models/{REPO}/tree/main"] = File(b"[]", faults=[("status", 401)])
    with pytest.raises(TransferFailed, match="needs HF_TOKEN"):
        hub.listing(Web(), REPO)


# --- the hub client's own cache --------------------------------------------------------------------------------------


def cache(tmp_path: Path, data: bytes) -> Path:
    """A cache as the hub client lays it out: a blob by digest, a snapshot that links to it."""
    repo = tmp_path / "hf-home" / "hub" / "models--someone--Some-GGUF"
    (repo / "blobs").mkdir(parents=True)
    blob = repo / "blobs" / SHA
    blob.write_bytes(data)
    (repo / "snapshots" / "abc").mkdir(parents=True)
    (repo / "snapshots" / "abc" / NAME).symlink_to(f"../../blobs/{SHA}")
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("abc")
    return blob


def test_adopts_from_the_cache_by_hard_link(hub_server: Server, far: Server, store: Path, tmp_path: Path) -> None:
    blob = cache(tmp_path, DATA)
    before = blob.stat()
    model = install(plan(), store)
    assert not far.sent
    assert Path(model.files[0].path).samefile(blob)
    after = blob.stat()
    assert (after.st_mtime_ns, after.st_size, after.st_mode) == (before.st_mtime_ns, before.st_size, before.st_mode)


def test_a_damaged_cache_is_not_believed_and_not_touched(
    hub_server: Server, far: Server, store: Path, tmp_path: Path
) -> None:
    wrong = DATA[:-1] + b"?"
    blob = cache(tmp_path, wrong)
    model = install(plan(), store)
    assert Path(model.files[0].path).read_bytes() == DATA
    assert blob.read_bytes() == wrong
    assert far.sent[f"/cdn/{SHA}"] == len(DATA)


def test_a_cache_that_points_outside_itself_is_not_followed(hub_server: Server, store: Path, tmp_path: Path) -> None:
    blob = cache(tmp_path, DATA)
    outside = tmp_path / "outside.gguf"
    outside.write_bytes(DATA)
    blob.unlink()
    blob.symlink_to(outside)
    assert hub.cached(Source("hub", REPO, NAME), SHA) is None
