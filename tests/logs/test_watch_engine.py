"""The watch on what a real engine prints: starts that fail quickly, on any machine."""

from __future__ import annotations

import os
import subprocess

import pytest
from engine_at_hand import real_llama_server
from log_cases import shipped

from gezel_rules.logs.watch import Watch

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def start():
    """Runs the real llama-server to its end and returns the verdict on all it printed."""
    engine = real_llama_server()

    def run(*arguments):
        done = subprocess.run(
            [*engine.command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120
        )
        watch = Watch(shipped())
        watch.feed(done.stdout)
        return watch.verdict(done.returncode)

    return run


@pytest.mark.parametrize(
    ("arguments", "failure"),
    [
        (["-m", "/nonexistent.gguf"], "model-not-found"),
        (["-m", "/nonexistent.gguf", "--no-such-option"], "unknown-argument"),
        (["-m", "/nonexistent.gguf", "-c"], "bad-argument-value"),
        (["-m", "/nonexistent.gguf", "-c", "many"], "bad-argument-value"),
        (["-m", "/nonexistent.gguf", "--device", "CUDA77"], "device-not-found"),
        (["-m", "/nonexistent.gguf", "--slot-save-path", "/nonexistent"], "slot-path-missing"),
        (["-m", "/nonexistent.gguf", "--api-key-file", "/nonexistent"], "path-missing"),
        (["-m", "/nonexistent.gguf", "--host", "192.0.2.1"], "port-in-use"),
        (["--models-dir", "/nonexistent"], "path-missing"),
    ],
)
def test_a_start_that_fails(start, arguments, failure):
    verdict = start(*arguments)
    assert (verdict.failure, verdict.fatal) == (failure, True)
    assert verdict.line
    assert verdict.advice


@pytest.mark.parametrize("content", [b"", b"GGUF", os.urandom(4096)], ids=["empty", "magic only", "random"])
def test_a_file_that_is_no_model(start, tmp_path, content):
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    assert start("-m", str(path)).failure == "gguf-corrupt"


def test_a_version_of_gguf_that_does_not_exist(start, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + (99).to_bytes(4, "little") + bytes(64))
    assert start("-m", str(path)).failure == "gguf-version-unsupported"


def test_devices_are_named_as_they_are(start):
    verdict = start("--list-devices")
    assert (verdict.gpu in ("no-devices", "unknown"), verdict.failure) == (True, None)
