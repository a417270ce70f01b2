"""Runs installs and kills them: started by test_kill.py, one process, so that an install costs a fork, not a start.

Reads a JSON job from stdin, prints one JSON line a trial.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from gezel_rules.store import spread, stream, transfer
from gezel_rules.store.install import InstallPlan, Source, Wanted, install, installed, verify

stream.CHECKPOINT_SECONDS = 0.01
transfer.BACKOFF_SECONDS = 0.01
spread.PROBE_SECONDS, spread.LEAST_BYTES, spread.PIECE = 0.02, 300_000, 100_000


def plan_for(base: str, files: dict[str, Any], known: bool) -> InstallPlan:
    wanted = tuple(
        Wanted(
            "model" if number == 0 else "projector",
            name,
            about["size"] if known else None,
            about["sha256"] if known else None,
            (Source("url", f"{base}/{about['path']}"),),
        )
        for number, (name, about) in enumerate(files.items())
    )
    return InstallPlan("m", "m", wanted, fingerprint="f", entry_digest="e")


def in_child(work: Any) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print(f"child: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return pid


def kill_at(pid: int, seconds: float) -> bool:
    """Kill after that long; False when the process was done before."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return False
        time.sleep(min(0.002, max(0, until - time.monotonic())))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return True


def trial(number: int, job: dict[str, Any], seconds: float, chance: random.Random) -> dict[str, Any]:
    store = Path(job["root"]) / f"store-{number}"
    known, update = chance.random() < 0.7, number % 3 == 0
    new = plan_for(f"{job['base']}/t{number}", job["new"], known)
    if update:
        install(plan_for(f"{job['base']}/old", job["old"], True), store)
    killed = kill_at(in_child(lambda: install(new, store)), chance.uniform(0, seconds))
    listed = installed(store, lambda text: warned.append(text))
    states = [file.sha256 for model in listed for file in model.files]
    bad = [str(verdict) for model in listed for verdict in verify(store, model.model_id) if verdict.problem]
    result = {"killed": killed, "update": update, "known": known, "listed": states, "bad": bad}
    after = install(new, store)
    result["final"] = [file.sha256 for file in after.files]
    result["good"] = not any(verdict.problem for verdict in verify(store, "m"))
    result["left"] = sorted(str(path.relative_to(store)) for path in store.rglob("*") if path.is_file())
    shutil.rmtree(store)
    return result


warned: list[str] = []


def whole_install(job: dict[str, Any], number: int) -> float:
    """Seconds of an undisturbed install; the first also pays for imports that every fork inherits."""
    began = time.monotonic()
    install(plan_for(f"{job['base']}/whole", job["new"], True), Path(job["root"]) / f"whole-{number}")
    return time.monotonic() - began


def main() -> None:
    job = json.load(sys.stdin)
    chance = random.Random(job["seed"])
    seconds = [whole_install(job, number) for number in range(4)]
    killed = number = 0
    while killed < job["count"] and number < job["most"]:
        warned.clear()
        result = trial(number, job, min(seconds[1:]), chance)
        print(json.dumps({**result, "warned": list(warned)}), flush=True)
        killed, number = killed + result["killed"], number + 1


if __name__ == "__main__":
    main()
