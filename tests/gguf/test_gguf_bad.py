"""Files that are wrong: one line that names the file, what is wrong and where, and no memory spent on lies."""

from __future__ import annotations

import os
import struct
import tracemalloc

import pytest
from gguf_oracle import gguf_file, key, tensor, text

from gezel_rules.errors import BadInput
from gezel_rules.gguf import read_header

HUGE = 1 << 60
U64 = struct.Struct("<Q").pack
ONE = struct.pack("<I", 1)
ALIGN = struct.pack("<I", 24)

CASES = {
    "empty": (b"", "empty file, not a GGUF"),
    "three bytes": (b"GGU", r"the GGUF magic needs 4 bytes, but only 3 are left in the file \(at byte 0\)"),
    "another format": (b"PK\x03\x04" + bytes(60), r"it starts with b'PK\\x03\\x04' instead of b'GGUF' \(at byte 0\)"),
    "v1": (b"GGUF" + struct.pack("<III", 1, 0, 0), r"GGUF v1 is not supported: convert the model again"),
    "v4": (b"GGUF" + struct.pack("<IQQ", 4, 0, 0), r"GGUF version 4 is not known \(v2 or v3 is needed\) \(at byte 4\)"),
    "no counts": (b"GGUF" + struct.pack("<IQ", 3, 0), r"key count needs 8 bytes, but only 0 are left"),
    "huge tensor count": (b"GGUF" + struct.pack("<IQQ", 3, HUGE, 0), rf"tensor count is {HUGE}, but only 8 bytes"),
    "huge key count": (b"GGUF" + struct.pack("<IQQ", 3, 0, HUGE), rf"key count is {HUGE}, but only 0 bytes"),
    "huge key": (gguf_file(U64(HUGE) + ONE + ONE), rf"a key has {HUGE} bytes, more than 65535 \(at byte 24\)"),
    "huge text": (gguf_file(key("k", 8, U64(HUGE))), rf"'k' needs {HUGE} bytes, but only \d+ are left"),
    "huge numbers": (
        gguf_file(key("k", 9, struct.pack("<IQ", 12, HUGE))),
        rf"number of items of 'k' is {HUGE}, but only \d+ bytes are left in the file \(at byte \d+\)",
    ),
    "huge strings": (gguf_file(key("k", 9, struct.pack("<IQ", 8, HUGE))), rf"number of items of 'k' is {HUGE}"),
    "huge string": (gguf_file(key("k", 9, struct.pack("<IQQ", 8, 1, HUGE))), r"the rest of 'k' needs \d+ bytes"),
    "empty key": (gguf_file(key("", 4, ONE)), r"a key is empty \(at byte 24\)"),
    "twice": (gguf_file(key("k", 4, ONE), key("k", 4, ONE)), r"duplicate key 'k' \(at byte 41\)"),
    "key bytes": (gguf_file(key(b"\xff", 4, ONE)), r"a key is not UTF-8 \(at byte 24\)"),
    "value type": (gguf_file(key("k", 13, ONE)), r"key 'k' has unknown value type 13 \(at byte 33\)"),
    "item type": (gguf_file(key("k", 9, struct.pack("<IQ", 99, 0))), r"array 'k' has items of unknown type 99"),
    "nested": (gguf_file(key("k", 9, struct.pack("<IQ", 9, 0))), r"array 'k' has items of unknown type 9 "),
    "alignment": (gguf_file(key("general.alignment", 4, ALIGN)), r"general\.alignment is '24', not a power of two"),
    "no alignment": (gguf_file(key("general.alignment", 4, bytes(4))), r"general\.alignment is '0', not a power"),
    "long align": (gguf_file(key("general.alignment", 10, U64(32))), r"general\.alignment is not a UINT32"),
    "same tensor": (gguf_file(tensors=(tensor("t", (8,)), tensor("t", (8,), offset=32))), r"duplicate tensor 't'"),
    "tensor type": (gguf_file(tensors=(tensor("t", (8,), 31),)), r"tensor 't' has unknown type 31 \(at byte 24\)"),
    "long name": (gguf_file(tensors=(tensor("n" * 64, (8,)),)), r"the name of a tensor has 64 bytes, more than 63"),
    "name bytes": (gguf_file(tensors=(tensor(b"\xc3(", (8,)),)), r"the name of a tensor is not UTF-8"),
    "five dims": (gguf_file(tensors=(tensor("t", (1,) * 5),)), r"tensor 't' has 5 dimensions, more than 4"),
    "overflow": (gguf_file(tensors=(tensor("t", (1 << 40, 1 << 40)),)), r"shape \[\d+, \d+\] overflows 63 bits"),
    "negative": (gguf_file(tensors=(tensor("t", (0, 1 << 63)),)), r"shape \[0, \d+\] overflows 63 bits"),
    "block": (gguf_file(tensors=(tensor("t", (100,), 12),)), r"a row of \[100\] is not a multiple of 256 for Q4_K"),
    "offset": (gguf_file(tensors=(tensor("t", (8,), offset=64),)), r"tensor 't' is at data offset 64, expected 0"),
    "no data": (
        gguf_file(tensors=(tensor("t", (8,)),)),
        r"truncated: tensor data ends at byte 96, but the file",
    ),
    "ugly key": (gguf_file(key("\x1b[31m\n", 13, ONE)), r"key '\\x1b\[31m\\n' has unknown value type 13"),
}


@pytest.mark.parametrize("at_rest", [True, False], ids=["mapped", "read"])
@pytest.mark.parametrize("case", CASES)
def test_malformed_file(case, at_rest, sparse):
    data, message = CASES[case]
    path = sparse(data, at_rest=at_rest)
    with pytest.raises(BadInput, match=message) as error:
        read_header(path)
    line = str(error.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line and "\x1b" not in line


def test_every_cut_of_a_real_header_is_refused(header_bytes, sparse):
    data = header_bytes["lfm2-1.2b.gguf"]
    path = sparse(data)
    for size in range(len(data) - 32, -1, -37):
        os.truncate(path, size)
        with pytest.raises(BadInput, match=r"left in the file|empty file|truncated"):
            read_header(path)


def test_missing_file_directory_and_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, message in {
        tmp_path / "none.gguf": "No such file or directory",
        tmp_path: "directory",
        tmp_path / "pipe": "a device or pipe, not a GGUF file",
        "a\0b": "embedded null",
    }.items():
        with pytest.raises(BadInput, match=message):
            read_header(path)


def test_random_bytes_are_refused(sparse):
    with pytest.raises(BadInput, match="not a GGUF file"):
        read_header(sparse(bytes(range(255, -1, -1)) * 64))


@pytest.mark.parametrize("at_rest", [True, False], ids=["mapped", "read"])
@pytest.mark.parametrize(
    "tail",
    [
        key("k", 9, struct.pack("<IQ", 8, 1 << 37)),  # zeros read as empty strings
        key("k", 9, struct.pack("<IQ", 10, 1 << 37)),
        key("k", 8, U64(1 << 39)),
    ],
    ids=["strings", "numbers", "text"],
)
def test_lengths_that_a_huge_file_could_hold_cost_no_memory(tail, at_rest, sparse):
    """A terabyte of zeros behind the header: every length passes the check against the file size."""
    path = sparse(gguf_file(tail), 1 << 40, at_rest=at_rest)
    assert peak_of_refusal(path) < 64 << 20


@pytest.mark.parametrize("at_rest", [True, False], ids=["mapped", "read"])
def test_millions_of_real_keys_and_tensors_cost_no_memory(at_rest, sparse):
    keys = (key(f"{n:07}" * 20, 8, text("v" * 60)) for n in range(120_000))
    assert peak_of_refusal(sparse(gguf_file(*keys), at_rest=at_rest)) < 64 << 20
    tensors = tuple(tensor(f"{n:060}", (1, 1, 1, 1), 24, 32 * n) for n in range(40_000))
    assert peak_of_refusal(sparse(gguf_file(tensors=tensors), at_rest=at_rest)) < 64 << 20


def test_the_most_tensors_that_are_read_stay_within_memory(sparse):
    tensors = tuple(tensor(f"{n:060}", (1, 1, 1, 1), 24, 32 * n) for n in range(32_768))
    path = sparse(gguf_file(tensors=tensors, data=32 * 32_768), at_rest=False)
    tracemalloc.start()
    try:
        assert len(read_header(path).tensors) == 32_768
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def peak_of_refusal(path) -> int:
    """Bytes allocated at most while ``path`` is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(BadInput):
            read_header(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
