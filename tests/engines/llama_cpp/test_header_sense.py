"""A ``header`` block that contradicts itself is said; real headers never do. What a maintainer is shown is in
``tests/catalog/test_maintainers_walk.py``."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from gezel_rules.documents.source import Text, parse_yaml
from gezel_rules.engines.llama_cpp.described_header import checked_header_block, describe_header
from gezel_rules.gguf import read_header

HEADERS = sorted((Path(__file__).parents[2] / "data" / "headers").glob("*.gguf.head.gz"))


def said(block: str) -> list[str]:
    problems: list[Any] = []
    checked_header_block(parse_yaml(Text("case.yaml", block)).value["header"], problems)
    return [problem.message for problem in problems]


def made(tensors: str, **keys: Any) -> list[str]:
    """What is said of a block with these tensors, one a line, and these keys beside the needed ones."""
    known = {"block_count": 4, "context_length": 4096, "embedding_length": 64} | keys
    metadata = "".join(f"    x.{key.replace('__', '.')}: {value}\n" for key, value in known.items())
    lines = "".join(f"    {line}\n" for line in tensors.split("; "))
    return said(f"header:\n  origin: a case\n  metadata:\n    general.architecture: x\n{metadata}  tensors: |\n{lines}")


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.name.split(".gguf")[0])
def test_no_real_header_contradicts_itself(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(gzip.decompress(path.read_bytes()))
    assert said(describe_header(read_header(file, check_size=False), "a file")) == []


TRUNK, HEAD = "blk.0-2.attn_norm.weight F32 64", "blk.3.nextn.eh_proj.weight F16 128x64"


@pytest.mark.parametrize(
    ("tensors", "keys"),
    [
        ("blk.0-3.attn_norm.weight F32 64", {}),
        (f"{TRUNK}; {HEAD}", {"nextn_predict_layers": 1}),
        (TRUNK, {"nextn_predict_layers": 1}),
        (HEAD, {"nextn_predict_layers": 1}),
        (TRUNK, {"attention__head_count": "[1, 1, 1, 0]", "feed_forward_length": "[8, 8, 8, 0]"}),
        ("enc.blk.0-3.attn_norm.weight F32 64; dec.blk.0-1.attn_norm.weight F32 64", {}),
        ("token_embd.weight F16 64x32; blk.0-3.attn_norm.weight F32 64", {"vocab_size": 32}),
    ],
    ids=["all", "with a head", "a trunk alone", "a head alone", "a block without anything", "others", "embedding"],
)
def test_blocks_may_be_left_out_where_the_header_says_so(tensors: str, keys: dict[str, Any]) -> None:
    assert made(tensors, **keys) == []


@pytest.mark.parametrize(
    ("tensors", "keys", "have"),
    [
        (TRUNK, {}, "blocks 0-2"),
        ("blk.0-1,3.attn_norm.weight F32 64", {}, "blocks 0-1, 3"),
        ("blk.0-4.attn_norm.weight F32 64", {}, "blocks 0-4"),
        ("blk.0-1.attn_norm.weight F32 64", {"nextn_predict_layers": 1}, "blocks 0-1"),
        ("token_embd.weight F16 64x32", {}, "no block"),
    ],
)
def test_blocks_that_are_not_those_of_the_tensors(tensors: str, keys: dict[str, Any], have: str) -> None:
    (problem,) = made(tensors, **keys)
    assert problem.startswith("'x.block_count' is 4") and problem.endswith(f"'tensors' has {have}")


def test_lists_with_one_count_for_each_layer_are_held_against_the_same() -> None:
    tensors = "blk.0-3.attn_norm.weight F32 64"
    assert (
        made(tensors, attention__head_count="[8, 8, 4, 0]", attention__recurrent_layers="[true, false, true, true]")
        == []
    )
    (problem,) = made(tensors, attention__head_count="[8, 8, four, 0]")
    assert problem == "'x.attention.head_count' must be a whole number, at least 0, not text"
    (problem,) = made(tensors, feed_forward_length="true")
    assert problem == "'x.feed_forward_length' must be a whole number, at least 0, not true or false"


def test_a_block_without_tensors_describes_no_model() -> None:
    assert made("") == ["'tensors' names none"]
