"""The embedded engine against llama-server: the same argv makes the same memory, on real shapes of models.

Both print what a launch takes before they read a weight, so that headers of big models are enough.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from engine_at_hand import real_embedded, real_llama_server
from engine_processor import processor

from gezel_rules.engines.family import Program

HEADERS = Path(__file__).parents[2] / "data" / "headers"
ROW = re.compile(r"\|\s+- (?P<name>\S+)[^=]*=\s+(?P<model>\d+) \+\s+(?P<context>\d+) \+\s+(?P<compute>\d+)")
COMPUTE_MIB = 1  # the builds differ: 11434 and whatever the wheel was made of
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def engines() -> tuple[Program, Program]:
    """llama-server and the embedded engine; skips unless both are here."""
    return real_llama_server(), real_embedded()


@pytest.fixture(scope="module")
def shape(tmp_path_factory):
    """A model of a real shape without weights: the header in a sparse file of the true size."""
    index, folder = json.loads((HEADERS / "index.json").read_text()), tmp_path_factory.mktemp("shapes")

    def make(name: str) -> Path:
        path = folder / name
        if not path.exists():
            path.write_bytes(gzip.decompress((HEADERS / f"{name}.head.gz").read_bytes()))
            os.truncate(path, index[name]["file_bytes"])
        return path

    return make


def projected(engine: Program, argv: list[str]) -> dict[str, tuple[int, int, int]]:
    """MiB of model, context and compute per place, as the engine projects them; empty when it refuses first."""
    command = [*engine.command, "-lv", "4", *argv, "-fit", "on", "--port", "0", "--no-warmup"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    rows: dict[str, tuple[int, int, int]] = {}
    try:
        for line in child.stderr:
            if match := ROW.search(line):
                rows[match["name"]] = (int(match["model"]), int(match["context"]), int(match["compute"]))
            elif rows and "memory breakdown" not in line:
                break
        return rows
    finally:
        child.kill()
        child.wait()
        child.stderr.close()


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("qwen3-8b", "-c 8192"),
        ("qwen3-8b", "-c 8192 -np 1 -ub 256 -b 1024"),
        ("qwen3-8b", "-c 8192 -np 3 -ctk q8_0 -ctv q4_0 -fa on"),
        ("qwen3-8b", "-c 8192 -np 4 -kvu -fa off"),
        ("qwen3-8b", "-c 8192 -np 2 --spec-type ngram-mod --spec-ngram-mod-n-max 96"),
        ("gemma3-4b", "-c 32768 -np 2"),
        ("gemma3-4b", "-c 32768 -np 2 --swa-full"),
        ("qwen3-30b-a3b", "-c 4096 -ncmoe 12 --no-repack"),
        ("qwen3.5-9b-mtp", "-c 16384 -np 2"),
        ("qwen3.5-9b-mtp", "-c 16384 -np 2 --spec-type draft-mtp --spec-draft-n-max 2"),
    ],
)
def test_the_same_argv_takes_the_same_memory(name, flags, engines, shape):
    argv = ["-m", str(shape(f"{name}.gguf")), *flags.split()]
    if len({processor(engine.command) for engine in engines}) > 1:
        argv.append("--no-repack")  # built for different instructions, they pack the same weights differently
    real, embedded = (projected(engine, argv) for engine in engines)
    assert real.keys() == embedded.keys() != set()
    for place, (model, context, compute) in real.items():
        assert embedded[place][:2] == (model, context), place
        assert abs(embedded[place][2] - compute) <= COMPUTE_MIB, place
