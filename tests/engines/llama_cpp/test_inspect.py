"""The header summary: complete JSON, a table for people, nothing a file could do to a terminal."""

from __future__ import annotations

import gzip
import json
import os
import struct
from pathlib import Path

import pytest

from gezel_rules.cli.shown import show
from gezel_rules.engines.llama_cpp.inspect import inspect as inspected
from gezel_rules.errors import BadInput

HEADERS = Path(__file__).parents[2] / "data" / "headers"


def inspect(path, as_json, **kinds):
    """What the command does with a file, by policy tables of these kinds."""
    return show(inspected(path, {f"{name[:-1]}_architectures": words for name, words in kinds.items()}), as_json)


@pytest.fixture
def model(tmp_path):
    """A real shape as a sparse file."""

    def make(name):
        path = tmp_path / name
        path.write_bytes(gzip.decompress((HEADERS / f"{name}.head.gz").read_bytes()))
        os.truncate(path, json.loads((HEADERS / "index.json").read_text())[name]["file_bytes"])
        return str(path)

    return make


def text(value):
    return struct.pack("<Q", len(value)) + value


def test_json_of_a_model_with_an_mtp_head(model, capsys):
    assert inspect(model("glm-4.5-air.gguf"), True, drafters=["eagle3"], projectors=["clip"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["geometry"].pop("glm4moe.rope.freq_base") == 1_000_000.0
    assert summary["geometry"]["glm4moe.block_count"] == 47
    assert sum(summary["bytes_by_type"].values()) == summary["weights_bytes"] == 72_848_161_792
    assert list(summary["bytes_by_type"].values()) == sorted(summary["bytes_by_type"].values(), reverse=True)
    assert {key: summary[key] for key in ("version", "arch", "name", "kind", "file_type", "tensors", "mtp_layers")} == {
        "version": 3,
        "arch": "glm4moe",
        "name": "glm-4.5-air",
        "kind": "model",
        "file_type": "Q4_K_M",
        "tensors": 803,
        "mtp_layers": 1,
    }
    assert summary["parameters"] == 110_468_824_832
    assert summary["tied_embeddings"] is False and summary["has_chat_template"] is False


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        ({}, None),
        ({"drafters": ["lfm2"], "projectors": []}, "drafter"),
        ({"drafters": [], "projectors": ["lfm2"]}, "projector"),
    ],
)
def test_kind_comes_from_policy(model, capsys, kinds, kind):
    inspect(model("lfm2-1.2b.gguf"), True, **kinds)
    assert json.loads(capsys.readouterr().out)["kind"] == kind


def test_table_for_people(model, capsys):
    inspect(model("lfm2-1.2b.gguf"), False)
    lines = dict(line.strip().split("  ", 1) for line in capsys.readouterr().out.splitlines()[1:])
    lines = {label: value.strip() for label, value in lines.items()}
    assert lines["format"] == "GGUF v3, little-endian"
    assert lines["parameters"] == "1,170,340,608 in 148 tensors"
    assert lines["kind"] == "unknown"
    assert lines["tied embeddings"] == "yes"
    assert lines["lfm2.attention.head_count_kv"] == "2×0 8 2×0 8 2×0 8 0 8 0 8 0 8 0"
    assert lines["Q4_K"].endswith("%")


def test_a_file_cannot_paint_the_terminal_or_break_the_json(tmp_path, capsys):
    keys = {
        b"general.architecture": (8, text(b"a")),
        b"general.name": (8, text(b"\x1b[2J\nfake: line" + b"x" * 200)),
        b"a.\x1b]0;title\x07": (6, struct.pack("<f", float("nan"))),
        b"a.list": (9, struct.pack("<IQff", 6, 2, float("inf"), 1)),
    }
    body = b"".join(text(key) + struct.pack("<I", kind) + value for key, (kind, value) in keys.items())
    path = tmp_path / "odd.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + body)
    inspect(str(path), False)
    out = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in out)
    assert max(map(len, out.splitlines()[1:])) < 160
    inspect(str(path), True)

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    geometry = json.loads(capsys.readouterr().out, parse_constant=refuse)["geometry"]
    assert geometry == {"a.\x1b]0;title\x07": "nan", "a.list": ["inf", 1.0]}


def test_a_broken_file_prints_nothing(tmp_path, capsys):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + bytes(3))
    with pytest.raises(BadInput):
        inspect(str(path), True)
    assert capsys.readouterr().out == ""
