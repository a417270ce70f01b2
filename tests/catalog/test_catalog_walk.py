"""A maintainer makes one mistake after the other in the catalog: each gives one problem, in the right file, with a
caret under what is wrong; and whoever uses the entry or the host hears of the same problem."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from walk import Mistake, make, shown

from gezel_rules.cli import main
from gezel_rules.places import catalog_dir

QWEN, DENSE, MOE = "models/qwen3-8b.yaml", "models/llama-3.1-8b-q8_0.yaml", "models/qwen3-30b-a3b.yaml"
GEMMA, MISTRAL = "models/gemma-3-4b.yaml", "models/mistral-small-24b.yaml"
CARD, PAIR, MAC = "hosts/rtx-4090.yaml", "hosts/rtx-4090-pair.yaml", "hosts/mac-96g.yaml"
FIRST, SECOND = "  - name: CUDA0\n", "  - name: CUDA1\n"

WALK = {
    "a key misspelt": Mistake(
        QWEN, "\nquant: ", "\nqant: ", "qant", "has no key 'qant'; did you mean 'quant'?"),
    "the key of the files misspelt": Mistake(
        QWEN, "\nfiles:", "\nflies:", "flies", "did you mean 'files'?"),
    "a role misspelt": Mistake(
        QWEN, "role: draft", "role: drafft", "drafft", "did you mean 'draft'?"),
    "a file that is named otherwise": Mistake(
        QWEN, "\nid: qwen3-8b", "\nid: qwen-8b", "qwen-8b", "the file is named 'qwen3-8b.yaml'"),
    "a drafter limited to a backend that is none": Mistake(
        QWEN, "  backends: [cuda]", "  backends: [cudda]", "cudda", "unknown backend 'cudda'; did you mean 'cuda'?"),
    "an overlay for a backend that is none": Mistake(
        QWEN, "      cuda:\n", "      cudda:\n", "cudda", "unknown backend 'cudda'; did you mean 'cuda'?"),
    "an exclusion of a backend that is none": Mistake(
        QWEN, "\ntuning:", "\nexcluded:\n  - {backend: vulcan, reason: wrong answers}\ntuning:", "vulcan",
        "unknown backend 'vulcan'; did you mean 'vulkan'?"),
    "a speculative type by half its name": Mistake(
        QWEN, "type: draft-dflash", "type: dflash", "dflash",
        "unknown speculative type 'dflash'; did you mean 'draft-dflash'?"),
    "a sampling of drafts that is none": Mistake(
        QWEN, "n_max: 15", "sampling: probablistic", "probablistic", "did you mean 'probabilistic'?"),
    "a KV type that is none": Mistake(
        QWEN, "  top_k: 20", "  kv_type: q8", "q8", "unknown KV type 'q8'; did you mean 'q8_0'?"),
    "a reasoning format that is none": Mistake(
        QWEN, "  top_k: 20", "  reasoning: {format: deepsek}", "deepsek", "did you mean 'deepseek'?"),
    "a key of the tuning misspelt": Mistake(
        QWEN, "  top_k: 20", "  topk: 20", "topk", "did you mean 'top_k'?"),
    "a probability above 1": Mistake(
        QWEN, "  top_p: 0.95", "  top_p: 95", "95", "'top_p' must be"),
    "an engine family that is none": Mistake(
        QWEN, "\nquant: ", "\nengine: llama-cp\nquant: ", "llama-cp", "did you mean 'llama-cpp'?"),
    "another model that is in no catalog": Mistake(
        DENSE, "  id: llama-3.2-1b", "  id: llama-3.2-1", "llama-3.2-1", "did you mean 'llama-3.2-1b'?"),
    "more blocks than tensors are for": Mistake(
        QWEN, "qwen3.block_count: 36", "qwen3.block_count: 40", "40",
        "'qwen3.block_count' is 40, which is blocks 0-39, but 'tensors' has blocks 0-35"),
    "fewer blocks than tensors are for": Mistake(
        QWEN, "qwen3.block_count: 36", "qwen3.block_count: 35", "35", "'tensors' has blocks 0-35"),
    "a drafter with more blocks than tensors are for": Mistake(
        QWEN, "dflash.block_count: 5", "dflash.block_count: 6", "6", "'tensors' has blocks 0-4"),
    "a count in words": Mistake(
        QWEN, "qwen3.block_count: 36", "qwen3.block_count: forty", "forty",
        "'qwen3.block_count' must be a whole number, at least 0, not text"),
    "a count below nought": Mistake(
        QWEN, "qwen3.context_length: 40960", "qwen3.context_length: -1", "-1", "at least 0, not -1"),
    "a count that is half": Mistake(
        QWEN, "qwen3.embedding_length: 4096", "qwen3.embedding_length: 4096.5", "4096.5", "not 4096.5"),
    "a needed key of the header misspelt": Mistake(
        QWEN, "qwen3.block_count:", "qwen3.blok_count:", "qwen3.blok_count", "did you mean 'qwen3.block_count'?"),
    "a needed key of the header left out": Mistake(
        QWEN, "    qwen3.context_length: 40960\n", "", "general", "has no 'qwen3.context_length'"),
    "an architecture misspelt": Mistake(
        QWEN, "general.architecture: qwen3", "general.architecture: qwn3", "qwn3", "did you mean 'qwen3'?"),
    "a width that is not that of the tensors": Mistake(
        MISTRAL, "llama.embedding_length: 5120", "llama.embedding_length: 4096", "4096",
        "rows of token_embd.weight have 5120"),
    "a vocabulary that is not that of the tensors": Mistake(
        GEMMA, "vocab_size: 262", "vocab_size: 263", "263", "rows in token_embd.weight are 262"),
    "experts that are not as many as the tensors say": Mistake(
        MOE, "expert_count: 128", "expert_count: 64", "64", "experts in 'tensors' are 128"),
    "a tensor type that is none": Mistake(
        QWEN, "token_embd.weight Q4_K", "token_embd.weight Q4_X", "Q4_X", "unknown tensor type 'Q4_X'"),
    "a backend of a host that is none": Mistake(
        CARD, "backend: cuda", "backend: cudda", "cudda", "unknown backend 'cudda'; did you mean 'cuda'?"),
    "a card of another backend": Mistake(
        CARD, FIRST, "  - name: Vulkan1\n", "Vulkan1", "'Vulkan1' is a device of vulkan, but 'engine.backend' is cuda"),
    "a card of another backend beside one that fits": Mistake(
        PAIR, SECOND, "  - name: Vulkan1\n", "Vulkan1", "'Vulkan1' is a device of vulkan"),
    "another backend than that of all cards": Mistake(
        PAIR, "backend: cuda", "backend: vulkan", "vulkan", "'engine.backend' is vulkan, but its devices are of cuda"),
    "a card that no engine calls so": Mistake(
        CARD, FIRST, "  - name: CUDDA0\n", "CUDDA", "did you mean 'CUDA'?"),
    "a family of a host that is none": Mistake(
        CARD, "  kind: llama-server", "  family: lama-cpp\n  kind: llama-server", "lama-cpp",
        "did you mean 'llama-cpp'?"),
    "a processor that is none": Mistake(
        CARD, "  backend: cuda", "  processor: avx51\n  backend: cuda", "avx51", "unknown processor 'avx51'"),
    "a size without a unit that is one": Mistake(
        MAC, "total: 72 GiB", "total: 72 Gib", "72 Gib", "a size such as 24 GiB"),
    "a system that is none": Mistake(
        MAC, "os: macos", "os: macOS", "macOS", "did you mean 'macos'?"),
}  # fmt: skip
ONE_PROBLEM = "checked 30 entries and 8 hosts: 1 problem\n"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped catalog."""
    monkeypatch.setenv("GEZEL_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("GEZEL_CACHE", str(tmp_path / "cache"))
    return Path(shutil.copytree(catalog_dir(), tmp_path / "catalog"))


@pytest.mark.parametrize("name", WALK)
def test_each_mistake_gives_one_problem_where_it_is(
    name: str, catalog: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mistake = WALK[name]
    make(mistake, catalog)
    assert main(["catalog", "check", str(catalog)]) == 2
    said = capsys.readouterr()
    assert said.err == ""
    assert shown(mistake, said.out, str(catalog / mistake.file)) == ONE_PROBLEM


@pytest.mark.parametrize("name", WALK)
def test_whoever_uses_it_hears_of_the_same(name: str, catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mistake = WALK[name]
    make(mistake, catalog)
    where, file = mistake.file.split("/")
    model, host = (Path(file).stem, "rtx-4090") if where == "models" else ("qwen3-8b", Path(file).stem)
    assert main(["--catalog", str(catalog), "plan", model, "--host", host]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert said.err.startswith(f"gezel-rules: {catalog / mistake.file}:")
    assert mistake.said in said.err and "more)" not in said.err


def test_several_mistakes_are_all_shown_what_is_no_key_first(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a drafter limited to a backend that is none", "more blocks than tensors are for", "a key misspelt",
                 "a drafter with more blocks than tensors are for"):  # fmt: skip
        make(WALK[name], catalog)
    assert main(["catalog", "check", str(catalog)]) == 2
    out = capsys.readouterr().out
    order = [out.index(said) for said in ("'qant'", "'cudda'", "'dflash.block_count'", "'qwen3.block_count'")]
    assert order == sorted(order) and out.endswith(": 4 problems\n")
    assert main(["--catalog", str(catalog), "plan", "qwen3-8b", "--host", "rtx-4090"]) == 2
    said = capsys.readouterr().err
    assert "'qant'" in said and "(and 3 more)" in said


def test_a_host_and_a_header_are_judged_to_their_ends(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong in one place does not hide what is wrong in another."""
    for name in ("a card of another backend", "a processor that is none", "a tensor type that is none",
                 "a count below nought", "a needed key of the header misspelt"):  # fmt: skip
        make(WALK[name], catalog)
    assert main(["catalog", "check", str(catalog)]) == 2
    out = capsys.readouterr().out
    assert out.endswith(": 5 problems\n"), out
    for said in ("'Vulkan1'", "'avx51'", "'Q4_X'", "not -1", "'qwen3.blok_count'"):
        assert said in out


def test_both_headers_of_an_entry_are_judged_at_once(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("more blocks than tensors are for", "a drafter with more blocks than tensors are for"):
        make(WALK[name], catalog)
    assert main(["--catalog", str(catalog), "plan", "qwen3-8b", "--host", "rtx-4090"]) == 2
    assert "(and 1 more)" in capsys.readouterr().err
