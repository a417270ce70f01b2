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
        "unknown", "pools", "buffers",
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


def test_the_processor_decides_the_buffers(model, capsys):
    path = model("llama-3.1-8b.gguf")
    found = {p: ask(capsys, path, "--ctx", "8192", "--processor", p) for p in ("plain", "avx2", "amx")}
    mib = {p: {name: size >> 20 for name, size in answer["buffers"].items()} for p, answer in found.items()}
    assert mib == {
        "plain": {"Host": 4685, "CPU_REPACK": 0, "AMX": 0},
        "avx2": {"Host": 1481, "CPU_REPACK": 3204, "AMX": 0},
        "amx": {"Host": 282, "CPU_REPACK": 0, "AMX": 4491},
    }
    assert all(sum(answer["buffers"].values()) == answer["weights_bytes"] for answer in found.values())
    assert main(["memory", path, "--processor", "amx"]) == 0
    assert "weights on the CPU: Host 282.8 MiB, AMX 4.39 GiB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("says", "buffer"),
    [
        ("system_info: n_threads = 2 | CPU : SSE3 = 1 | AVX2 = 1 | AVX512 = 1 | AMX_INT8 = 1 | REPACK = 1 | ", "AMX"),
        ("system_info: n_threads = 2 | CPU : SSE3 = 1 | AVX2 = 1 | REPACK = 1 | ", "CPU_REPACK"),
        ("error: invalid argument: -lv", "CPU_REPACK"),
    ],
)
def test_without_a_processor_the_engine_at_hand_decides(model, capsys, tmp_path, monkeypatch, says, buffer):
    engine = tmp_path / "fake-llama-server"
    engine.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 1\n")
    engine.chmod(0o755)
    monkeypatch.setenv("GEZEL_LLAMA_SERVER", str(engine))
    path = model("llama-3.1-8b.gguf")
    found = ask(capsys, path, "--ctx", "8192")["buffers"]
    assert {name for name, size in found.items() if size} == {"Host", buffer}
    plain = ask(capsys, path, "--ctx", "8192", "--processor", "plain")
    assert plain["buffers"]["Host"] == plain["weights_bytes"], "the option comes first"


def test_no_engine_is_no_fault(model, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("GEZEL_LLAMA_SERVER", str(tmp_path / "nowhere"))
    assert ask(capsys, model("llama-3.1-8b.gguf"), "--ctx", "8192")["buffers"]["AMX"] == 0


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
        (["--processor", "sse"], "processor 'sse' is none of: plain, avx2"),
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


def test_a_catalog_id_is_taken_as_plan_takes_it(model, capsys):
    described = ask(capsys, "llama-3.2-1b", "--ctx", "32k")
    read = ask(capsys, model("llama-3.2-1b.gguf", whole=False), "--ctx", "32768")
    assert described["ctx"] == 32768
    assert {**described, "unknown": []} == {**read, "unknown": []}


def test_tokens_may_be_said_in_k(capsys):
    assert ask(capsys, "llama-3.2-1b", "--ctx", "64k", "--ubatch", "1k")["ctx"] == 65536
    with pytest.raises(SystemExit):
        main(["memory", "llama-3.2-1b", "--ctx", "32x"])
    assert "invalid count of tokens value: '32x'" in capsys.readouterr().err


def test_a_model_that_is_none_is_said(capsys):
    assert main(["memory", "llama-3.2-1"]) == 2
    assert "did you mean 'llama-3.2-1b'?" in capsys.readouterr().err
