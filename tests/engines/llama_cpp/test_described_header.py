"""The ``header`` block: run-length lines give back every tensor; describing a header is the inverse."""

from __future__ import annotations

import struct
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.documents.source import Text, parse_yaml
from gezel_rules.engines.llama_cpp.described_header import describe_header, read_header_block
from gezel_rules.errors import Problem
from gezel_rules.gguf import Array, Header, Tensor
from gezel_rules.gguf.quants import QUANTS

SIZES = {name: (block, size) for name, block, size in QUANTS.values()}


def read(block: str) -> tuple[Header, list[Problem]]:
    problems: list[Problem] = []
    header = read_header_block(parse_yaml(Text("case.yaml", block)).value["header"], problems)
    return header, problems


def lines(*tensors: str) -> Header:
    body = "".join(f"    {line}\n" for line in tensors)
    header, problems = read(
        f"header:\n  origin: a case\n  metadata: {{general.architecture: llama}}\n  tensors: |\n{body}"
    )
    assert problems == []
    return header


def test_a_list_of_layers_stands_for_as_many_tensors() -> None:
    header = lines("blk.0-2,7.attn_q.weight Q4_K 4096x4096", "output_norm.weight F32 4096", "blk.31.x.bias BF16 3")
    q = [(f"blk.{layer}.attn_q.weight", (4096, 4096), "Q4_K", 4096 * 4096 // 256 * 144) for layer in (0, 1, 2, 7)]
    rest = [("output_norm.weight", (4096,), "F32", 16384), ("blk.31.x.bias", (3,), "BF16", 6)]
    assert [tensor[:4] for tensor in header.tensors] == q + rest


def test_lines_may_be_spaced_and_commented() -> None:
    header = lines("# attention", "", "blk.0.attn_q.weight   F16   64x64")
    assert header.tensors == (Tensor("blk.0.attn_q.weight", (64, 64), "F16", 8192),)


def test_numbers_with_a_point_are_float32_and_arrays_may_stay_unwritten() -> None:
    header, problems = read(
        "header:\n  origin: a case\n  metadata:\n    general.architecture: llama\n    llama.eps: 1e-06\n"
        "    llama.pattern: [true, false]\n    tokenizer.ggml.tokens: {array: STRING, length: 262144}\n  tensors: |\n"
    )
    assert problems == []
    assert header.get("eps") == struct.unpack("<f", struct.pack("<f", 1e-06))[0] != 1e-06
    assert header.get("pattern") == (True, False)
    assert header.metadata["tokenizer.ggml.tokens"] == Array("STRING", 262144)


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("blk.0.attn_q.weight Q4K 256x1", 25, "unknown tensor type 'Q4K'; did you mean 'Q4_K'?"),
        ("blk.0.attn_q.weight Q4_K 255x1", 30, "a row of 255 is not a multiple of 256, the block of Q4_K"),
        ("blk.1,0.attn_q.weight F32 1", 5, "not a tensor name with a rising list of layers"),
        ("blk.0-1-2.attn_q.weight F32 1", 5, "not a tensor name with a rising list of layers"),
        ("blk.0-9999.attn_q.weight F32 1x1x1x1x1", 5, "expected: NAME TYPE DIMxDIM…"),
    ],
)
def test_a_faulty_line_is_named_to_the_character(line: str, column: int, message: str) -> None:
    block = "header:\n  origin: a case\n  metadata: {general.architecture: llama}\n  tensors: |\n    a.b F32 1\n    "
    _, problems = read(f"{block}{line}\n")
    assert [str(problem) for problem in problems] == [f"case.yaml:6:{column}: {message}"]


def test_a_few_characters_cannot_ask_for_endless_tensors() -> None:
    many = "".join(f"    {chr(97 + i)}.0-9999.x F32 1\n" for i in range(20))
    header, problems = read(
        f"header:\n  origin: a case\n  metadata: {{general.architecture: llama}}\n  tensors: |\n{many}"
    )
    assert "more than 32768 tensors" in str(problems[0])
    assert len(header.tensors) < 50_000


PARTS = [
    "attn_q.weight",
    "attn_norm.weight",
    "ffn_gate_exps.weight",
    "ssm_a",
    "nextn.eh_proj.weight",
    "exp_probs_b.bias",
]
TOP = ["token_embd.weight", "output.weight", "output_norm.weight", "rope_freqs.weight"]


@st.composite
def tensors(draw: st.DrawFn) -> tuple[Tensor, ...]:
    names = draw(
        st.lists(
            st.one_of(st.sampled_from(TOP), st.builds("blk.{}.{}".format, st.integers(0, 200), st.sampled_from(PARTS))),
            unique=True,
            max_size=60,
        )
    )
    return tuple(draw(tensor(name)) for name in names)


@st.composite
def tensor(draw: st.DrawFn, name: str) -> Tensor:
    kind = draw(st.sampled_from(sorted(SIZES)))
    block, size = SIZES[kind]
    dims = (block * draw(st.integers(1, 50)), *draw(st.lists(st.integers(1, 9), max_size=3)))
    return Tensor(name, dims, kind, prod(dims) // block * size)


words = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.sampled_from(["true", "no", "1.5"])
)
single = st.one_of(
    st.integers(-(2**63), 2**64 - 1), st.booleans(), st.floats(width=32, allow_nan=False, allow_infinity=False)
)
values = st.one_of(
    single,
    words,
    st.lists(st.integers(0, 99), min_size=1, max_size=80).map(tuple),
    st.lists(st.booleans(), min_size=1, max_size=80).map(tuple),
    st.builds(Array, st.sampled_from(["STRING", "FLOAT32"]), st.integers(0, 2**40)),
)


@given(tensors(), st.dictionaries(st.from_regex(r"llama\.[a-z_]{1,20}", fullmatch=True), values, max_size=8), words)
def test_a_described_header_reads_back_the_same(
    all_tensors: tuple[Tensor, ...], metadata: dict[str, Any], origin: str
) -> None:
    kept: dict[str, Any] = {"general.architecture": "llama", **metadata}
    real = Header(3, {**kept, "general.name": "dropped", "tokenizer.ggml.bos_token_id": 1}, all_tensors, 0, None)
    header, problems = read(describe_header(real, origin))
    assert problems == []
    assert header.metadata == kept
    assert [type(value) for value in header.metadata.values()] == [type(value) for value in kept.values()]
    assert sorted(header.tensors) == sorted(all_tensors)


def test_a_long_text_is_described_by_its_length(tmp_path: Path) -> None:
    template = "{% for message in messages %}…" * 20
    real = Header(3, {"general.architecture": "llama", "tokenizer.chat_template": template}, (), 0, None)
    header, problems = read(describe_header(real, "a file"))
    assert problems == []
    assert header.metadata["tokenizer.chat_template"] == Array("TEXT", len(template.encode()))
