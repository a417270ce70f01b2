"""Kept YAML: the same nodes and places as the parser gives, whatever happens to the copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from gezel_rules.documents.kept import load_kept
from gezel_rules.documents.source import Node, load_yaml
from gezel_rules.errors import BadInput
from gezel_rules.places import catalog_dir

FILES = sorted([*(catalog_dir() / "models").glob("*.yaml"), *(catalog_dir() / "hosts").glob("*.yaml")])


def places(node: Node) -> object:
    """Values, places and keys, all the way down."""
    value: object = node.value
    if isinstance(node.value, dict):
        value = {key: places(child) for key, child in node.value.items()}
    elif isinstance(node.value, list):
        value = [places(child) for child in node.value]
    key = (node.key.value, node.key.line, node.key.column) if node.key else None
    return value, node.line, node.column, node.start, node.end, key


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_kept_file_is_the_file(path: Path, tmp_path: Path) -> None:
    parsed = places(load_yaml(path))
    assert places(load_kept(path, path.name, tmp_path)) == parsed  # kept now
    assert len(list(tmp_path.iterdir())) == 1
    assert places(load_kept(path, path.name, tmp_path)) == parsed  # thawed


def test_a_change_of_the_file_is_seen(tmp_path: Path) -> None:
    path, cache = tmp_path / "x.yaml", tmp_path / "cache"
    path.write_text("a: 1\n")
    assert load_kept(path, "x", cache).plain() == {"a": 1}
    path.write_text("a: 2\n")
    assert load_kept(path, "x", cache).plain() == {"a": 2}


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"[1,2]", b'[{"a":3},1,1,0,1]', b"\xff\xfe"])
def test_a_damaged_copy_is_ignored(damage: bytes, tmp_path: Path) -> None:
    path, cache = tmp_path / "x.yaml", tmp_path / "cache"
    path.write_text("a: [1, b]\n")
    load_kept(path, "x", cache)
    (kept,) = cache.iterdir()
    kept.write_bytes(damage)
    assert load_kept(path, "x", cache).plain() == {"a": [1, "b"]}


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: 1\n")
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert load_kept(path, "x", blocked / "cache").plain() == {"a": 1}


def test_problems_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: [\n")
    with pytest.raises(BadInput, match=r"shown\.yaml:\d+:\d+: not valid YAML"):
        load_kept(path, "shown.yaml", tmp_path / "cache")
