"""``gezel-rules memory``: the JSON shape, the bars, flags as the engine spells them, faults in one line."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from gezel_rules.cli import main
from gezel_rules.places import policies_dir

HEADERS = Path(__file__).parents[1] / "data" / "headers"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEZEL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def model(tmp_path):
    """A real shape, as a sparse file of its true size or as the bare header."""

    def make(name, whole=True):
        path = tmp_path / name
        path.write_bytes(gzip.decompress((HEADERS / f"{name}.head.gz").read_bytes()))
        if whole:
            os.truncate(path, json.loads((HEADERS / "index.json").read_text())[name]["file_bytes"])
        return str(path)

    return make


def ask(capsys, *arguments):
    assert main(["memory", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_json_shape(model, capsys):
    found = ask(capsys, model("llama-3.1-8b.gguf"), "--ctx", "32768", "--parallel", "4")
    assert set(found) >= {
        "arch", "ctx", "weights_bytes", "kv", "recurrent_bytes", "compute_bytes", "output_bytes", "total_bytes",
        "unknown", "pools",
    }  # fmt: skip
    assert (found["arch"], found["ctx"], found["unknown"]) == ("llama", 32768, [])
    (cache,) = found["kv"]["caches"]
    assert {k: cache[k] for k in ("name", "cells", "layers", "bytes")} == {
        "name": "full", "cells": 8192, "layers": 32, "bytes": 4294967296,
    }  # fmt: skip
    assert found["kv"]["total_bytes"] == 4294967296
    assert [set(pool) for pool in found["pools"]] == [{"name", "model_bytes", "context_bytes", "compute_bytes"}]
    assert found["pools"][0]["name"] == "host"


def test_a_bare_header_says_the_same_as_a_whole_file(model, capsys):
    whole = ask(capsys, model("gemma3-4b.gguf"), "--ctx", "8192")
    assert ask(capsys, model("gemma3-4b.gguf", whole=False), "--ctx", "8192") == whole


def test_no_slots_given_is_the_engines_own_default(model, capsys):
    found = ask(capsys, model("gemma3-4b.gguf"), "--ctx", "32768")
    assert [(c["name"], c["cells"], c["streams"]) for c in found["kv"]["caches"]] == [
        ("base", 32768, 1),
        ("swa", 4608, 1),
    ]
    one = ask(capsys, model("gemma3-4b.gguf"), "--ctx", "32768", "--parallel", "1")
    assert [c["cells"] for c in one["kv"]["caches"]] == [32768, 1536]
    assert ask(capsys, model("gemma3-4b.gguf"))["ctx"] == 131072


def test_every_flag_reaches_the_arithmetic(model, capsys):
    path = model("qwen3.5-9b-mtp.gguf")
    base = ask(capsys, path, "--ctx", "65536", "--parallel", "4")
    for flags in (
        ["--kv-unified"],
        ["--cache-type-k", "q8_0", "--cache-type-v", "q8_0"],
        ["--ubatch", "64"],
        ["--flash-attn", "off"],
        ["--spec-type", "draft-mtp"],
        ["--devices", "1"],
        ["--devices", "2", "--tensor-split", "3,1"],
        ["--devices", "1", "--n-gpu-layers", "9"],
        ["--devices", "1", "--no-kv-offload"],
        ["--devices", "1", "--override-tensor", r"blk\.1\.ffn_.*=CPU"],
    ):
        assert ask(capsys, path, "--ctx", "65536", "--parallel", "4", *flags) != base, flags
    windows = model("gemma3-4b.gguf")
    assert ask(capsys, windows, "--swa-full") != ask(capsys, windows)
    mixture, device = model("qwen3-30b-a3b.gguf"), ("--devices", "1")
    assert ask(capsys, mixture, *device, "--cpu-moe") == ask(capsys, mixture, *device, "--n-cpu-moe", "48")
    assert ask(capsys, mixture, *device, "--cpu-moe") != ask(capsys, mixture, *device)


def test_devices_are_pools_of_their_own(model, capsys):
    found = ask(capsys, model("llama-3.1-8b.gguf"), "--ctx", "8192", "--devices", "2", "--tensor-split", "3,1")
    assert [pool["name"] for pool in found["pools"]] == ["GPU0", "GPU1", "host"]
    assert found["pools"][0]["context_bytes"] > 2 * found["pools"][1]["context_bytes"] > 0
    assert sum(pool["context_bytes"] for pool in found["pools"]) == found["kv"]["total_bytes"]


def test_the_bars_are_to_scale(model, capsys):
    assert main(["memory", model("qwen3-30b-a3b.gguf"), "--ctx", "8192", "--devices", "2", "--n-cpu-moe", "10"]) == 0
    text = capsys.readouterr().out
    bars = dict(re.findall(r"^(GPU0|GPU1|host) +[\d.]+ GiB +([█▓░]+)", text, re.MULTILINE))
    assert len(bars["GPU1"]) in range(39, 42)
    assert len(bars["host"]) < len(bars["GPU0"]) < len(bars["GPU1"])
    assert "weights" in text
    assert "in all: " in text


def test_doubts_and_refusals_are_told(model, capsys):
    assert main(["memory", model("deepseek-v2-lite.gguf"), "--ctx", "4096", "--cache-type-k", "q8_0"]) == 0
    assert "would not start: deepseek2 caches keys and values in one row" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--cache-type-k", "q9"], "cache type 'q9' is not one the engine knows"),
        (["--override-tensor", "(=CPU", "--devices", "1"], "'(' is not a regular expression"),
        (["--override-tensor", "ffn"], "--override-tensor takes REGEX=BUFFER"),
        (["--override-tensor", "ffn=CUDA3", "--devices", "1"], "no buffer 'CUDA3' among 1 devices"),
    ],
)
def test_faults_are_one_line(model, capsys, flags, says):
    assert main(["memory", model("llama-3.2-1b.gguf"), *flags]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "flags", [["--ctx", "many"], ["--parallel", "0"], ["--tensor-split", "a"], ["--flash-attn", "x"]]
)
def test_usage_is_exit_2(model, capsys, flags):
    with pytest.raises(SystemExit) as stop:
        main(["memory", model("llama-3.2-1b.gguf"), *flags])
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_missing_file_and_missing_policies(model, tmp_path, capsys):
    assert main(["memory", str(tmp_path / "none.gguf")]) == 2
    assert "none.gguf" in capsys.readouterr().err
    assert main(["memory", model("llama-3.2-1b.gguf"), "--policies", str(tmp_path)]) == 2
    assert "no policy files" in capsys.readouterr().err


def test_other_tables_are_another_answer(model, tmp_path, capsys):
    own = tmp_path / "own"
    shutil.copytree(policies_dir(), own)
    file = own / "llama-cpp" / "architectures.yaml"
    file.write_text(file.read_text().replace(" gemma3: {window_every: 6,", " gemma3: {window_every: 2,"))
    path = model("gemma3-4b.gguf")
    assert ask(capsys, path) != ask(capsys, path, "--policies", str(own))


def test_a_misspelt_column_is_no_answer(model, tmp_path, capsys):
    """Read as no column at all, it would be 17 GiB of cache instead of 2.8."""
    own = tmp_path / "own"
    shutil.copytree(policies_dir(), own)
    file = own / "llama-cpp" / "architectures.yaml"
    file.write_text(file.read_text().replace(" gemma3: {window_every: 6,", " gemma3: {window_evry: 6,"))
    assert main(["memory", model("gemma3-4b.gguf"), "--policies", str(own)]) == 2
    assert "has no column 'window_evry'; did you mean 'window_every'?" in capsys.readouterr().err
