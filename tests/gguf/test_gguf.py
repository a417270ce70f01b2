"""Headers that are right: equal to what ``gguf.GGUFReader`` reads, on real shapes, a real model and written files."""

from __future__ import annotations

import os
import struct
import subprocess
import sys

import gguf
import pytest
from gguf_oracle import gguf_file, key, oracle, same, tensor, text
from hypothesis import given, settings
from hypothesis import strategies as st

from gezel_rules.errors import BadInput
from gezel_rules.gguf import Array, read_header
from gezel_rules.gguf.cursor import Cursor
from gezel_rules.gguf.parse import parse_header
from gezel_rules.gguf.quants import FILE_TYPES, QUANTS
from gezel_rules.gguf.strings import skip_strings


def test_every_real_shape_equals_the_reference_reader(header_bytes, header_index, sparse):
    assert len(header_bytes) == 41
    for name, data in header_bytes.items():
        path = sparse(data, header_index[name]["file_bytes"], name)
        ours = read_header(path)
        assert same(ours, oracle(path)), name
        assert ours.data_offset == header_index[name]["header_bytes"]
        path.unlink()


def test_the_real_model_equals_the_reference_reader(real_model):
    ours = read_header(real_model)
    assert same(ours, oracle(real_model))
    assert ours.metadata["tokenizer.ggml.tokens"] == Array("STRING", 262_144)
    os.utime(real_model)  # just written: read in pieces instead of mapped
    assert read_header(real_model) == ours


def test_sizes_of_tensor_types_are_those_of_the_gguf_package():
    theirs = {t.value: (t.name, *gguf.GGML_QUANT_SIZES[t]) for t in gguf.GGMLQuantizationType}
    ours = {number: row for number, row in QUANTS.items() if row[0] != "Q2_0" or number in theirs}
    assert ours == theirs


def test_names_of_file_types_are_those_of_the_gguf_package():
    prefixes = ("MOSTLY_", "ALL_")
    theirs = {t.value: t.name.removeprefix(prefixes[0]).removeprefix(prefixes[1]) for t in gguf.LlamaFileType}
    del theirs[gguf.LlamaFileType.GUESSED]
    assert {n: name for n, name in FILE_TYPES.items() if n in theirs} == theirs
    assert set(FILE_TYPES) - set(theirs) <= {41}  # Q2_0: the engine is ahead of the package


@pytest.mark.parametrize("endian", gguf.GGUFEndian)
def test_a_written_file_of_either_byte_order_equals_the_reference_reader(tmp_path, endian):
    path = tmp_path / "written.gguf"
    writer = gguf.GGUFWriter(path, "llama", endianess=endian)
    writer.add_uint64("llama.context_length", 2**40)
    writer.add_array("llama.layers", [1, 2, 3])
    writer.add_array("words", ["a", "", "drei" * 100])
    writer.add_float32("nan", float("nan"))
    writer.add_bool("yes", True)
    writer.add_string("Grüße", "chat {{ template }}")
    import numpy as np

    writer.add_tensor("token_embd.weight", np.zeros((4, 64), dtype=np.float32))
    writer.add_tensor("output.weight", np.zeros((3, 5), dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    ours = read_header(path)
    assert same(ours, oracle(path))
    assert ours.byte_order == endian.name.lower()
    assert ours.arch == "llama"
    assert ours.get("context_length") == 2**40
    assert ours.get("no such key", 7) == 7


def test_arrays_of_numbers_are_kept_up_to_4096_items(sparse):
    def numbers(count):
        return struct.pack("<IQ", 5, count) + struct.pack(f"<{count}i", *range(count))

    header = read_header(sparse(gguf_file(key("a", 9, numbers(4096)), key("b", 9, numbers(4097)))))
    assert header.metadata == {"a": tuple(range(4096)), "b": Array("INT32", 4097)}


def test_a_text_of_more_than_a_mebibyte_is_not_kept(sparse):
    long, longer = "x" * (1 << 20), "x" * ((1 << 20) + 1)
    header = read_header(sparse(gguf_file(key("a", 8, text(long)), key("b", 8, text(longer)))))
    assert header.metadata == {"a": long, "b": Array("TEXT", len(longer))}


def test_bytes_that_are_not_utf8_in_a_value_are_replaced(sparse):
    assert read_header(sparse(gguf_file(key("k", 8, text(b"a\xffb"))))).metadata == {"k": "a\ufffdb"}


def test_v2_is_read_like_v3(sparse):
    path = sparse(gguf_file(key("k", 4, struct.pack("<I", 7)), version=2))
    assert same(read_header(path), oracle(path))


def test_data_alignment_of_the_file_is_honoured(sparse):
    parts = (tensor("a", (3,)), tensor("b", (5,), offset=256))
    data = gguf_file(key("general.alignment", 4, struct.pack("<I", 256)), tensors=parts)
    path = sparse(data, 4096)
    header = read_header(path)
    assert same(header, oracle(path))
    assert header.data_offset % 256 == 0


def test_a_file_without_tensors_is_a_vocabulary(sparse):
    assert read_header(sparse(gguf_file(key("general.architecture", 8, text("llama"))))).tensors == ()


def test_check_size_off_accepts_a_header_alone(header_bytes, sparse):
    path = sparse(header_bytes["qwen3-8b.gguf"])
    with pytest.raises(BadInput, match=r"truncated: tensor data ends at byte 50218\d+, but the file has only"):
        read_header(path)
    assert len(read_header(path, check_size=False).tensors) == 399


def test_a_header_larger_than_the_first_piece_is_read_in_more_pieces(sparse):
    words = struct.pack("<IQ", 8, 200_000) + b"".join(text("w" * 50) for _ in range(200_000))
    data = gguf_file(key("words", 9, words), tensors=(tensor("t", (8,)),), data=32)
    assert len(data) > 9 << 20
    assert read_header(sparse(data, at_rest=False)) == read_header(sparse(data, at_rest=True))


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.one_of(st.integers(0, 20), st.integers(0, 70), st.integers(0, 2000)), min_size=1, max_size=40),
    repeat=st.integers(1, 600),
    cut=st.integers(0, 40),
)
def test_skipping_strings_in_blocks_ends_where_counting_them_ends(lengths, repeat, cut):
    words = [b"\x00\xff" * (n // 2) + b"x" * (n % 2) for n in lengths] * repeat
    array = b"".join(text(word) for word in words)
    for count in (len(words), len(words) - len(words) // 3):
        cursor = Cursor(array + b"tail", "f", None)
        skip_strings(cursor, count, "words")
        assert cursor.pos == sum(8 + len(word) for word in words[:count])
    if 0 < cut <= len(array):
        with pytest.raises(BadInput, match="the rest of words needs"):
            skip_strings(Cursor(array[:-cut], "f", len(array) - cut), len(words), "words")


def test_reading_a_header_imports_neither_numpy_nor_gguf(header_bytes, sparse):
    path = sparse(header_bytes["llama-3.2-1b.gguf"])
    code = (
        "import sys; from gezel_rules.gguf import read_header; read_header(sys.argv[1], check_size=False);"
        "print([m for m in ('numpy', 'gguf', 'urllib3', 'dataclasses', 'inspect') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_header_read_twice_is_equal_and_hashable_by_parts(header_bytes):
    data = header_bytes["gemma4-e4b.gguf"]
    first, again = (parse_header(data, "f", None) for _ in range(2))
    assert first == again
    assert len(set(first.tensors)) == len(first.tensors)


def test_a_file_that_shrinks_while_it_is_written_does_not_end_the_process(header_bytes, sparse):
    """A fresh file is not mapped, so cutting it can only give an error, never SIGBUS."""
    data = header_bytes["deepseek-v3.gguf"]
    path = sparse(data, at_rest=False)
    code = (
        "import sys, os, threading; from gezel_rules.gguf import read_header\n"
        "from gezel_rules.errors import BadInput\n"
        "stop = threading.Event(); size = os.path.getsize(sys.argv[1])\n"
        "def cut():\n"
        "    while not stop.is_set(): os.truncate(sys.argv[1], 100); os.truncate(sys.argv[1], size)\n"
        "thread = threading.Thread(target=cut); thread.start()\n"
        "for _ in range(200):\n"
        "    try: read_header(sys.argv[1], check_size=False)\n"
        "    except BadInput: pass\n"
        "stop.set(); thread.join(); print('alive')"
    )
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert (run.returncode, run.stdout.strip()) == (0, "alive"), run.stderr
