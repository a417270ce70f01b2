"""Sizes and digests written into a catalog entry: nothing else of the file changes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gezel_rules.catalog import load_entry
from gezel_rules.errors import BadInput, TransferFailed
from gezel_rules.store.pin import pin
from gezel_rules.store.web import Web

from .conftest import gguf
from .hub_server import Server

ENTRY = """\
# yaml-language-server: $schema=../../schemas/catalog-entry.schema.json
id: thing   # ünïcode before the places that are edited: 模型
name: "Thing"
family: thing
summary: >-
  A thing,
  folded.
quant: Q4_K_M
files:
  - role: model
    # the shards
    shards:
      - T-00001-of-00002.gguf   # first
      - T-00002-of-00002.gguf
    sources:
      - {hub: u/r, file: "Q4/{shard}"}
  - role: projector
    name: mmproj.gguf  # kept
    sources:
      - {hub: u/r, file: mmproj.gguf}
  - {role: draft, name: draft.gguf, sources: [{hub: u/r, file: draft.gguf}]}
"""
FILES = {
    "Q4/T-00001-of-00002.gguf": gguf(1000, seed=1),
    "Q4/T-00002-of-00002.gguf": gguf(1100, seed=2),
    "mmproj.gguf": gguf(1200, seed=3),
    "draft.gguf": gguf(1300, seed=4),
}


@pytest.fixture
def path(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    server.hub("u/r", FILES)
    monkeypatch.setenv("HF_ENDPOINT", server.base)
    made = tmp_path / "thing.yaml"
    made.write_text(ENTRY)
    return made


def figures(name: str) -> tuple[int, str]:
    return len(FILES[name]), hashlib.sha256(FILES[name]).hexdigest()


def test_every_figure_is_written_and_every_other_character_stays(path: Path) -> None:
    pinned = pin(path, Web())
    assert [(item.size, item.sha256) for item in pinned] == [figures(name) for name in FILES]
    entry = load_entry(path)
    parts = [part for file in entry.files for part in file.parts]
    assert [(part.size, part.sha256) for part in parts] == [figures(name) for name in FILES]
    text = path.read_text()
    for size, digest in map(figures, FILES):
        for added in (f", size: {size}, sha256: {digest}", f"\n    size: {size}\n    sha256: {digest}"):
            text = text.replace(added, "", 1)
    assert (
        text.replace("{name: T-00001-of-00002.gguf}", "T-00001-of-00002.gguf").replace(
            "{name: T-00002-of-00002.gguf}", "T-00002-of-00002.gguf"
        )
        == ENTRY
    )


def test_pinned_twice_is_pinned_once(path: Path, server: Server) -> None:
    pin(path, Web())
    once = path.read_text()
    server.seen.clear()
    assert pin(path, Web()) == []
    assert path.read_text() == once
    assert not server.seen


def test_only_the_missing_figure_is_added(path: Path) -> None:
    size, digest = figures("mmproj.gguf")
    path.write_text(ENTRY.replace("  # kept", f"\n    size: {size}"))
    pin(path, Web())
    assert f"name: mmproj.gguf\n    size: {size}\n    sha256: {digest}\n" in path.read_text()


def test_a_contradiction_is_told_and_nothing_written(path: Path) -> None:
    text = ENTRY.replace("  # kept", "\n    size: 7")
    path.write_text(text)
    with pytest.raises(BadInput, match="'size' is 7, but the hub says 1200") as caught:
        pin(path, Web())
    assert caught.value.problems[0].span is not None
    assert path.read_text() == text


def test_a_hub_that_cannot_be_asked_changes_nothing(path: Path, server: Server) -> None:
    del server.files["/u/r/resolve/main/draft.gguf"]
    with pytest.raises(TransferFailed, match="not there"):
        pin(path, Web())
    assert path.read_text() == ENTRY
