"""Headers kept between runs: equal to a fresh reading, never trusted when damaged, stale or for another file."""

from __future__ import annotations

import os
import shutil
import struct
from binascii import crc32
from pathlib import Path

import pytest
from gguf_oracle import gguf_file, key, same, tensor, text

from gezel_rules.errors import BadInput
from gezel_rules.gguf import Array, read_header
from gezel_rules.gguf import files as gguf_files


@pytest.fixture
def no_parsing(monkeypatch):
    """From here on only the cache can answer."""

    def parse(*_):
        raise AssertionError("parsed again")

    return lambda: monkeypatch.setattr(gguf_files, "_parse_open", parse)


def entries(directory: Path) -> list[Path]:
    return sorted(directory.glob("*"))


def test_every_real_shape_comes_back_equal_without_parsing(header_bytes, header_index, sparse, tmp_path, no_parsing):
    cache = tmp_path / "cache" / "headers"
    paths = [sparse(data, header_index[name]["file_bytes"], name) for name, data in header_bytes.items()]
    fresh = [read_header(path, cache_dir=cache) for path in paths]
    assert len(entries(cache)) == len(paths)
    no_parsing()
    for path, header in zip(paths, fresh, strict=True):
        assert same(read_header(path, cache_dir=cache), header)


def test_odd_values_survive(sparse, tmp_path, no_parsing):
    keys = (
        key("nan", 6, struct.pack("<f", float("nan"))),
        key("infinite", 12, struct.pack("<d", float("-inf"))),
        key("large", 10, struct.pack("<Q", 2**64 - 1)),
        key("no items", 9, struct.pack("<IQ", 5, 0)),
        key("truths", 9, struct.pack("<IQ??", 7, 2, True, False)),
        key("words", 9, struct.pack("<IQ", 8, 1) + text("w")),
        key("bytes", 8, text(b"\xff\x00\x1b")),
    )
    path = sparse(gguf_file(*keys))
    first = read_header(path, cache_dir=tmp_path / "c")
    no_parsing()
    again = read_header(path, cache_dir=tmp_path / "c")
    assert same(again, first)
    assert again.metadata["words"] == Array("STRING", 1)
    assert again.metadata["truths"] == (True, False)


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: entry.write_bytes(b""),
        lambda entry: entry.write_bytes(entry.read_bytes()[:-1]),
        lambda entry: entry.write_bytes(entry.read_bytes().replace(b"llama", b"mamba")),
        lambda entry: entry.write_bytes(b"zzzzzzzz\n{}"),
        lambda entry: entry.write_bytes(b"%08x\n{}" % crc32(b"{}")),
        lambda entry: entry.write_bytes(b"\xff" * 100),
        lambda entry: (entry.unlink(), entry.mkdir()),
    ],
    ids=["empty", "cut", "altered", "no checksum", "wrong shape", "bytes", "a directory"],
)
def test_a_damaged_entry_is_ignored(damage, header_bytes, sparse, tmp_path):
    path = sparse(header_bytes["llama-3.2-1b.gguf"])
    first = read_header(path, check_size=False, cache_dir=tmp_path / "c")
    (entry,) = entries(tmp_path / "c")
    damage(entry)
    assert read_header(path, check_size=False, cache_dir=tmp_path / "c") == first


def test_a_changed_file_is_read_again_and_its_old_entry_dropped(sparse, tmp_path):
    path = sparse(gguf_file(key("general.architecture", 8, text("llama"))))
    assert read_header(path, cache_dir=tmp_path / "c").arch == "llama"
    with path.open("r+b") as file:
        file.write(gguf_file(key("general.architecture", 8, text("mamba"))))
    os.utime(path, (1_000_000_001, 1_000_000_001))
    assert read_header(path, cache_dir=tmp_path / "c").arch == "mamba"
    assert len(entries(tmp_path / "c")) == 1


def test_a_file_just_written_is_not_kept(sparse, tmp_path):
    path = sparse(gguf_file(key("k", 4, bytes(4))), at_rest=False)
    read_header(path, cache_dir=tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_the_size_is_checked_on_a_kept_header_too(header_bytes, sparse, tmp_path):
    path = sparse(header_bytes["qwen3-8b.gguf"])
    read_header(path, check_size=False, cache_dir=tmp_path / "c")
    with pytest.raises(BadInput, match="truncated"):
        read_header(path, cache_dir=tmp_path / "c")


def test_a_malformed_file_is_never_kept(sparse, tmp_path):
    path = sparse(gguf_file(tensors=(tensor("t", (8,), 31),)))
    with pytest.raises(BadInput, match="unknown type"):
        read_header(path, cache_dir=tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_a_cache_that_cannot_be_written_harms_nobody(sparse, tmp_path):
    path = sparse(gguf_file(key("k", 4, bytes(4))))
    (tmp_path / "file").write_text("in the way")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        assert read_header(path, cache_dir=place).metadata == {"k": 0}


def test_a_copy_is_another_file(sparse, tmp_path):
    path = sparse(gguf_file(key("k", 4, bytes(4))))
    copy = shutil.copy2(path, tmp_path / "copy.gguf")
    for place in (path, copy):
        read_header(place, cache_dir=tmp_path / "c")
    assert len(entries(tmp_path / "c")) == 2
