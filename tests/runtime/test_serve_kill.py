"""kill -9 of a serve at random moments: no engine stays, no model is harmed, nothing is remembered as running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MOMENTS = int(os.environ.get("SERVE_KILL_MOMENTS", "200"))
SEED = int(os.environ.get("KILL_SEED", "20261201"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere an engine outlives a killed serve until the next start")
def test_kill_at_random_moments(environ, tmp_path, nothing_left):
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("serve_kill_driver.py")], capture_output=True, text=True,
        input=json.dumps({"root": str(tmp_path), "seed": SEED, "count": MOMENTS}), timeout=60 + 6 * MOMENTS,
        env={**environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    results = [json.loads(line) for line in done.stdout.splitlines()]
    for number, result in enumerate(results):
        where = f"trial {number} of seed {SEED}: {result}; {done.stderr[-1000:]}"
        assert not any(result[name] for name in ("orphans", "bad", "held", "known", "keys", "left", "leases")), where
    assert sum(result["killed"] for result in results) == MOMENTS
    ready = {kind: sum(r["ready"] for r in results if r["kind"] == kind) for kind in ("start", "restart", "update")}
    print(f"{MOMENTS} kills; ready before it: {ready}")
    assert MOMENTS < 30 or all(ready.values())
