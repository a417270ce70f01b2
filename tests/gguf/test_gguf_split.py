"""Models in several files: every part's tensors under the first one's keys, or an error naming the part at fault."""

from __future__ import annotations

import struct

import gguf
import numpy as np
import pytest
from gguf_oracle import gguf_file, key, oracle, text

from gezel_rules.errors import BadInput
from gezel_rules.gguf import read_header


@pytest.fixture
def split_model(tmp_path):
    """Three parts with seven tensors, written by the gguf package."""
    path = tmp_path / "some-model.gguf"
    writer = gguf.GGUFWriter(path, "llama", split_max_tensors=3)
    writer.add_block_count(7)
    for number in range(7):
        writer.add_tensor(f"blk.{number}.ffn_up.weight", np.zeros((number + 1, 32), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    parts = sorted(tmp_path.glob("*.gguf"))
    assert [part.name for part in parts] == [f"some-model-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
    return parts


def part(number, count, *keys):
    """A file of no tensors that says it is part ``number`` (from 0) of ``count``."""
    numbers = key("split.no", 2, struct.pack("<H", number)), key("split.count", 2, struct.pack("<H", count))
    return gguf_file(*numbers, *keys)


def test_all_parts_are_read(split_model):
    header = read_header(split_model[0])
    parts = [oracle(path) for path in split_model]
    assert header.tensors == tuple(tensor for read in parts for tensor in read.tensors)
    assert header.file_bytes == sum(path.stat().st_size for path in split_model)
    assert header.data_offset == parts[0].data_offset
    assert header.arch == "llama" and header.get("block_count") == 7


def test_kept_headers_of_parts_are_joined_as_well(split_model, tmp_path):
    import os

    for path in split_model:
        os.utime(path, (1_000_000_000, 1_000_000_000))
    first, again = (read_header(split_model[0], cache_dir=tmp_path / "c") for _ in range(2))
    assert first == again
    assert len(list((tmp_path / "c").iterdir())) == 3
    split_model[2].unlink()
    with pytest.raises(BadInput, match="No such file"):
        read_header(split_model[0], cache_dir=tmp_path / "c")


def test_a_missing_part_is_named(split_model):
    split_model[1].unlink()
    with pytest.raises(BadInput, match=r"some-model-00002-of-00003\.gguf: cannot be read: No such file"):
        read_header(split_model[0])


def test_a_truncated_part_is_named(split_model):
    size = split_model[2].stat().st_size
    split_model[2].write_bytes(split_model[2].read_bytes()[: size - 64])
    with pytest.raises(BadInput, match=r"some-model-00003-of-00003\.gguf: truncated"):
        read_header(split_model[0])


def test_another_part_than_the_first_names_the_first(split_model):
    with pytest.raises(BadInput, match=r"00002-of-00003\.gguf: not the first part .* name .*00001-of-00003\.gguf"):
        read_header(split_model[1])


def test_a_renamed_part_is_refused_as_the_engine_refuses_it(split_model, tmp_path):
    renamed = split_model[0].rename(tmp_path / "renamed.gguf")
    with pytest.raises(BadInput, match=r"its name does not end in -00001-of-00003\.gguf"):
        read_header(renamed)


def test_parts_in_the_wrong_order_are_refused(split_model):
    second, third = split_model[1].read_bytes(), split_model[2].read_bytes()
    split_model[1].write_bytes(third)
    split_model[2].write_bytes(second)
    with pytest.raises(BadInput, match=r"00002-of-00003\.gguf: says it is part 2 \(from 0\), expected 1"):
        read_header(split_model[0])


def test_a_tensor_in_two_parts_or_too_few_tensors_are_refused(split_model, tmp_path):
    def doctored(path, old, new):
        path.write_bytes(path.read_bytes().replace(old, new))

    doctored(split_model[1], b"blk.3.", b"blk.0.")
    with pytest.raises(BadInput, match=r"duplicate tensor 'blk\.0\.ffn_up\.weight'"):
        read_header(split_model[0])
    doctored(split_model[1], b"blk.0.", b"blk.3.")
    count = text("split.tensors.count") + struct.pack("<I", 5)
    doctored(split_model[0], count + struct.pack("<i", 7), count + struct.pack("<i", 9))
    with pytest.raises(BadInput, match="9 tensors expected in all parts, 7 found"):
        read_header(split_model[0])


def test_a_lying_part_count_reads_no_more_than_the_first_missing_part(tmp_path):
    path = tmp_path / "m-00001-of-65535.gguf"
    path.write_bytes(part(0, 65535))
    with pytest.raises(BadInput, match="m-00002-of-65535"):
        read_header(path)


def test_split_keys_of_the_wrong_type(tmp_path):
    path = tmp_path / "m-00001-of-00002.gguf"
    path.write_bytes(part(0, 2))
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(gguf_file(key("split.no", 8, text("one"))))
    with pytest.raises(BadInput, match=r"says it is part 'one' \(from 0\), expected 1"):
        read_header(path)


def test_one_part_of_one_is_a_file_like_any_other(tmp_path):
    path = tmp_path / "any-name.gguf"
    path.write_bytes(part(0, 1))
    assert read_header(path).metadata["split.count"] == 1
