"""``catalog list``, and what ``pull`` and ``ls`` make of the backend at hand."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

ENTRY = """\
id: {name}
name: Small
family: small
summary: A test.
quant: Q4_K_M
files:
  - role: model
    name: small.gguf
    sha256: {model_sha256}
    sources: [{{path: {model}}}]
  - role: draft
    name: draft.gguf
    sha256: {draft_sha256}
    sources: [{{path: {draft}}}]
draft:
  file: draft.gguf
  backends: [cuda]
excluded:
  - {{backend: vulkan, reason: It answers nonsense there.}}
"""
ENGINE = """\
#!/bin/sh
case "$1" in
  --version) echo "version: 8000 (abc1234)" ;;
  --help) cat {help} ;;
  --list-devices) printf 'Available devices:\\n  CUDA0: A card (24576 MiB, 24000 MiB free)\\n' ;;
esac
"""


@pytest.fixture
def small(place) -> Path:
    """A catalog with one small model, excluded on Vulkan, whose drafter is for CUDA."""
    from tests.store.conftest import gguf

    said: dict[str, object] = {}
    for name in ("model", "draft"):
        said[name] = path = place.here / f"{name}.gguf"
        path.write_bytes(gguf(1000, seed=len(name)))
        said[f"{name}_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    models = place.here / "catalog" / "models"
    models.mkdir(parents=True)
    (models / "small.yaml").write_text(ENTRY.format(name="small", **said))
    return models.parent


def test_pull_refuses_a_model_that_is_excluded_on_the_backend(place, small) -> None:
    words = ("--catalog", str(small), "pull", "small", "--backend", "vulkan")
    said = place.call(*words)
    assert (said.status, said.out) == (1, "")
    assert "small is excluded on Vulkan: It answers nonsense there. (" in said.err and "small.yaml:19)" in said.err
    assert not (place.root / "store" / "small").exists()
    forced = place.call(*words, "--excluded")
    assert forced.status == 0 and forced.out.startswith("small: 1,000 bytes, verified, in "), forced
    assert place.call("--catalog", str(small), "pull", "small", "--backend", "cuda", "--dry-run").status == 0


def test_drift_is_judged_for_this_machines_backend(place, small, monkeypatch) -> None:
    """Installed for ROCm, without the drafter; on CUDA the entry brings it."""
    assert place.call("--catalog", str(small), "pull", "small", "--backend", "rocm").status == 0
    program = place.here / "llama-server"
    help_text = Path(__file__).parents[1] / "data" / "engine-help" / "llama-server-0.6.0-dev.help.txt"
    program.write_text(ENGINE.format(help=help_text))
    program.chmod(0o755)
    monkeypatch.setenv("GEZEL_LLAMA_SERVER", str(program))
    (listed,) = json.loads(place.call("--catalog", str(small), "ls", "--json").out)
    assert (listed["backend"], listed["drift"]) == ("rocm", "payload-changed")
    assert place.call("--catalog", str(small), "pull", "small", "--backend", "cuda").status == 0
    (listed,) = json.loads(place.call("--catalog", str(small), "ls", "--json").out)
    assert (listed["backend"], listed["drift"]) == ("cuda", "current")


def test_list_shows_what_there_is_and_what_runs(place) -> None:
    said = place.call("catalog", "list", "--host", "rtx-4090", "--json")
    assert said.status == 0, said.err
    listed = {row["model"]: row for row in json.loads(said.out)}
    assert len(listed) == 30
    assert (listed["qwen3-8b"]["runs_here"], listed["qwen3-8b"]["why"], listed["qwen3-8b"]["installed"]) == (
        True, "", False)  # fmt: skip
    assert listed["deepseek-v3"]["runs_here"] is False
    assert "have no place" in listed["deepseek-v3"]["why"]
    assert listed["deepseek-v3"]["weights_bytes"] > 300 << 30


def test_list_shows_what_is_installed(place, small) -> None:
    words = ("--catalog", str(small), "catalog", "list")
    assert place.call(*words).out.splitlines()[1].split()[:5] == ["small", "Q4_K_M", "?", "?", "-"]
    assert place.call("--catalog", str(small), "pull", "small", "--backend", "cuda").status == 0
    table = place.call(*words).out.splitlines()
    assert table[0].split() == ["MODEL", "QUANT", "WEIGHTS", "RUNS", "INSTALLED", "NAME"]
    assert table[1].split()[:5] == ["small", "Q4_K_M", "?", "no", "yes"]
    assert "has no llama.block_count" in table[1]


def test_list_says_what_is_excluded(place, copied) -> None:
    said = "quant: Q4_K_M\nexcluded: [{backend: vulkan, reason: It answers nonsense there.}]\n"
    catalog = copied("catalog", "models/qwen3-8b.yaml", "quant: Q4_K_M\n", said)
    for host, runs in (("rx-7900-xtx-vulkan", False), ("rtx-4090", True)):
        answer = place.call("--catalog", str(catalog), "catalog", "list", "qwen3-8b", "--host", host, "--json")
        (row,) = json.loads(answer.out)
        assert row["runs_here"] is runs
        assert ("It answers nonsense there." in row["why"]) is not runs


def test_list_names_a_broken_entry(place, small) -> None:
    (small / "models" / "broken.yaml").write_text("id: broken\n")
    said = place.call("--catalog", str(small), "catalog", "list", "--json")
    rows = {row["model"]: row for row in json.loads(said.out)}
    assert rows["broken"]["runs_here"] is False and "broken.yaml:" in rows["broken"]["why"]
