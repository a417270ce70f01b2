"""Parts under random damage: what is proven is right, and no more is kept than that."""

from __future__ import annotations

import hashlib
import os
import random
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.store.part import Part, logged_digest

DATA = random.Random(0).randbytes(20_000)


def written(folder: Path, marks: list[int], tail: int) -> Part:
    """A part with checkpoints at the marks and ``tail`` bytes beyond the last."""
    part = Part(folder / "x.part")
    part.open()
    part.comes_from("somewhere", '"v1"')
    for mark in sorted(set(marks)):
        os.write(part.fd, DATA[part.offset : mark])
        part.hasher.update(DATA[part.offset : mark])
        part.offset = mark
        part.checkpoint(mark, part.hasher)
    os.write(part.fd, DATA[part.offset : part.offset + tail])
    part.close()
    return part


marks = st.lists(st.integers(1, 15_000), max_size=8)


@given(marks, st.integers(0, 5_000), st.integers(0, 20_000), st.sampled_from(["none", "flip", "cut", "zero"]))
def test_the_longest_prefix_that_its_checkpoint_confirms(at: list[int], tail: int, where: int, damage: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        part = written(Path(folder), at, tail)
        data = bytearray(part.path.read_bytes())
        if damage == "cut":
            del data[where:]
        elif damage == "flip" and where < len(data):
            data[where] ^= 0x10
        elif damage == "zero":
            data[where:] = bytes(len(data[where:]))
        part.path.write_bytes(data)
        again = Part(part.path)
        again.open()
        good = [mark for mark in at if data[:mark] == DATA[:mark]]
        assert again.offset == max(good, default=0)
        assert again.path.read_bytes() == DATA[: again.offset]
        assert again.hasher.hexdigest() == hashlib.sha256(DATA[: again.offset]).hexdigest()
        assert (again.source, again.etag) == ("somewhere", '"v1"')
        again.close()


@given(marks, st.binary(max_size=60), st.integers(0, 3_000))
def test_a_damaged_log_never_proves_wrong_bytes(at: list[int], noise: bytes, where: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        part = written(Path(folder), at, 0)
        log = part.log_path.read_bytes()
        part.log_path.write_bytes(log[:where] + noise)
        again = Part(part.path)
        again.open()
        assert again.path.read_bytes() == DATA[: again.offset]
        os.write(again.fd, DATA[again.offset : again.offset + 10])
        again.hasher.update(DATA[again.offset : again.offset + 10])
        again.offset += 10
        again.checkpoint(again.offset, again.hasher)
        again.close()
        third = Part(part.path)
        third.open()
        assert third.offset == again.offset  # what is logged after a torn line counts
        third.close()


def test_the_digest_of_a_finished_part_is_kept(tmp_path: Path) -> None:
    part = written(tmp_path, [100], 0)
    assert logged_digest(part.path) == ("", "somewhere")
    again = Part(part.path)
    again.open()
    assert again.finish() == hashlib.sha256(DATA[:100]).hexdigest()
    again.close()
    assert logged_digest(part.path) == (hashlib.sha256(DATA[:100]).hexdigest(), "somewhere")
    assert logged_digest(tmp_path / "other.part") == ("", "")


pieces = st.dictionaries(st.integers(0, 9).map(lambda n: 10_000 + 1000 * n), st.integers(1, 1000), max_size=6)


@given(pieces, st.integers(0, 20_000), st.sampled_from(["none", "flip", "cut"]), st.binary(max_size=40))
def test_pieces_ahead_are_each_proven(ahead: dict[int, int], where: int, damage: str, noise: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        part = written(Path(folder), [5_000], 0)
        part.open()
        for start, count in ahead.items():
            os.pwrite(part.fd, DATA[start : start + count], start)
            part.piece(start, start + count, hashlib.sha256(DATA[start : start + count]))
        part.close()
        data = bytearray(part.path.read_bytes())
        if damage == "cut":
            del data[where:]
        elif damage == "flip" and where < len(data):
            data[where] ^= 0x10
        part.path.write_bytes(data)
        with part.log_path.open("ab") as log:
            log.write(noise)
        again = Part(part.path)
        again.open()
        whole = {
            start: end for start, end in ((s, s + n) for s, n in ahead.items()) if data[start:end] == DATA[start:end]
        }
        assert again.offset == (5_000 if data[:5_000] == DATA[:5_000] else 0)
        assert {start: end for start, (end, _) in again.ahead.items()} == whole
        again.reset()
        assert again.ahead == {} and again.path.stat().st_size == 0
        again.close()


def test_pieces_of_another_source_are_forgotten(tmp_path: Path) -> None:
    part = written(tmp_path, [5_000], 0)
    part.open()
    os.pwrite(part.fd, DATA[9_000:9_500], 9_000)
    part.piece(9_000, 9_500, hashlib.sha256(DATA[9_000:9_500]))
    part.comes_from("elsewhere", '"v1"')
    assert part.ahead == {}
    part.close()
    part.open()
    assert part.ahead == {} and part.path.stat().st_size == 5_000
    part.close()
