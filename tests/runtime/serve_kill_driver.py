"""Serves a model and is killed: started by test_serve_kill.py, one process, so that a serve costs a fork, not a start.

Reads a JSON job from stdin, prints one JSON line a trial. In a third of them an engine that becomes ready is killed
first, so that the kill meets a restart; in another third the model is updated under it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from shipped_rules import shipped_judge, shipped_rules

from gezel_rules.engines.family import Program
from gezel_rules.engines.llama_cpp.contract import CONTRACT
from gezel_rules.places import catalog_dir, policies_dir
from gezel_rules.runtime import leases, registry
from gezel_rules.runtime.interrupts import Interrupted, Interrupts
from gezel_rules.runtime.order import Guide, Order
from gezel_rules.session import Prepared, Session
from gezel_rules.session.serving import serve
from gezel_rules.store.holds import in_use
from gezel_rules.store.install import InstallPlan, Source, Wanted, install, installed, verify
from gezel_rules.store.leftovers import leftovers, repair
from tests.store.conftest import gguf
from tests.store.kill_driver import in_child, kill_at

FAKE = Path(__file__).with_name("fake_engine.py")
ENGINE = Program("llama-server", (sys.executable, str(FAKE)), FAKE)
KINDS = ("start", "restart", "update")


class Trials:
    """A store and a state directory that every trial shares: what one leaves, the next meets."""

    def __init__(self, root: Path, mark: str) -> None:
        self.root, self.mark, self.store, self.state = root, mark, root / "store", root / "state"
        self.rules = shipped_rules()._replace(stop_grace=0.5, restart_pauses=(0.0, 0.0, 0.0))
        self.judge, self.ready = shipped_judge("cuda"), root / "ready"

    def put(self, version: int) -> None:
        """Install a version of the model."""
        path = self.root / f"{version}.src"
        path.write_bytes(gguf(300_000, seed=version))
        wanted = Wanted("model", "a.gguf", None, None, (Source("path", str(path)),))
        install(InstallPlan("m", "m", (wanted,)), self.store)

    def serve(self, kind: str, version: int) -> None:
        """In a child: serve until killed; what the kind asks for happens at the first engine that is ready."""
        places = (policies_dir(), catalog_dir(), self.store, self.state, self.root / "cache")
        files = installed(self.store)[0].files
        order = Order(ENGINE, CONTRACT, ("-m", files[0].path), {}, "m", pools={"GPU0": 700}, build="b1")
        prepared = Prepared(order, "completion", Guide(self.judge), self.rules, files)

        def announce(engine: Any, key_file: Path) -> None:
            if not self.ready.exists():
                self.ready.touch()
                if kind == "restart":
                    os.kill(engine.running.pid, signal.SIGKILL)
                elif kind == "update":
                    self.put(version)

        with Interrupts() as interrupts:
            try:
                serve(Session(*places, os.environ, ()), prepared, interrupts, announce)
            except Interrupted:
                return

    def seconds_to_ready(self) -> float:
        """How long an undisturbed start takes."""
        pid, began = in_child(lambda: self.serve("start", 0)), time.monotonic()
        while not self.ready.exists():
            time.sleep(0.005)
        seconds = time.monotonic() - began
        os.kill(pid, signal.SIGTERM)
        assert os.waitpid(pid, 0)[1] == 0
        self.ready.unlink()
        return seconds

    def trial(self, number: int, seconds: float, chance: random.Random) -> dict[str, Any]:
        kind = KINDS[number % len(KINDS)]
        child = in_child(lambda: self.serve(kind, number))
        killed = kill_at(child, chance.uniform(0, seconds if kind == "start" else 2 * seconds))
        result: dict[str, Any] = {"killed": killed, "kind": kind, "ready": self.ready.exists()}
        self.ready.unlink(missing_ok=True)
        return {**result, **self.found()}

    def found(self) -> dict[str, Any]:
        """What a kill left behind. An engine takes a moment to die, and shows no variables any more before it is dead:
        only the registry knows when it is."""
        orphans, known = _lasting(self._marked), _lasting(self._known)
        bad = [verdict.problem for verdict in verify(self.store, "m") if verdict.problem]
        held = [str(path) for path in (self.store / "m").iterdir() if in_use(path)]
        keys = [path.name for path in (self.state / registry.KEYS).glob("*")]
        repair(self.store)
        left = [item.what for item in leftovers(self.store) if "unfinished install" not in item.what]
        return {
            "orphans": orphans, "bad": bad, "held": held, "known": known, "keys": keys, "left": left,
            "leases": leases.held(self.state),
        }  # fmt: skip

    def _known(self) -> list[int]:
        return [entry.pid for entry in registry.running(self.state)]

    def _marked(self) -> list[int]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid != os.getpid() and process.environ().get("GEZEL_TEST_MARK") == self.mark:
                    found.append(process.pid)
            except psutil.Error:
                continue  # gone, a zombie, or another user's
        return found


def _lasting(look: Callable[[], list[int]]) -> list[int]:
    """What is there still after two seconds."""
    until = time.monotonic() + 2
    while (found := look()) and time.monotonic() < until:
        time.sleep(0.01)
    return found


def main() -> None:
    job = json.load(sys.stdin)
    trials, chance = Trials(Path(job["root"]), os.environ["GEZEL_TEST_MARK"]), random.Random(job["seed"])
    trials.put(0)
    seconds = max(trials.seconds_to_ready() for _ in range(3))
    killed = number = 0
    while killed < job["count"] and number < 2 * job["count"]:
        result = trials.trial(number, 1.2 * seconds, chance)
        print(json.dumps(result), flush=True)
        killed, number = killed + result["killed"], number + 1
    trials.seconds_to_ready()  # and it still starts and stops


if __name__ == "__main__":
    main()
