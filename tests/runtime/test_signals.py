"""Signals at random moments of every command: each ends by it, without a traceback, an engine or a temporary file left.

A moment is counted from our first line on: what the interpreter does before is not ours.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from gguf_files import write_gguf
from test_run_hub import HEADER, NAME, REPO

from tests.fuzz.fuzz_meter import rounds
from tests.store.hub_server import Server

SHARE, FULL = 24, 200
SEED = 12
LONGEST = 0.6  # seconds after which no signal is sent
RATE = 400_000.0  # bytes a second: a pull takes longer than that
START = """
import os, sys
import gezel_rules.start as start
os.write({begun}, b".")
os.close({begun})
sys.exit(start.main())
"""


class Ended(NamedTuple):
    """How a command ended that was sent a signal: ``late``: it had ended before."""

    status: int
    out: str
    err: str
    late: bool


@pytest.fixture
def commands(answering, model: str, tmp_path: Path, environ: dict[str, str]) -> Iterator[dict[str, list[str]]]:
    """What is interrupted: two that ask an engine, a pull from a server here, two that run an engine."""
    engine, served = ["--engine", answering("slow=0.1")], tmp_path / NAME
    write_gguf(served, HEADER)
    with Server() as server:
        server.hub(REPO, {NAME: served.read_bytes()})
        for file in server.files.values():
            file.rate = RATE
        environ["HF_ENDPOINT"] = server.base
        yield {
            "plan": ["plan", model, *engine], "devices": ["devices", *engine], "pull": ["pull", f"{REPO}:Q4_K_M"],
            "run": ["run", model, "Hello there", *engine], "serve": ["serve", model, *engine],
        }  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="signals that end a process need POSIX")
def test_a_signal_ends_every_command_and_leaves_nothing(commands, children, environ, tmp_path, nothing_left) -> None:
    chance, counts = random.Random(SEED), Counter[str]()
    for number in range(rounds(SHARE, FULL)):
        name, sent = list(commands)[number % len(commands)], chance.choice((signal.SIGINT, signal.SIGTERM))
        moment, place = chance.uniform(0, LONGEST), tmp_path / f"trial-{number}"
        ended = interrupted(children, commands[name], sent, moment, {**environ, **directories(place)})
        judge(name, sent, ended, f"{number}: {name}, {sent.name} after {moment:.3f} s: {ended}")
        assert not leftovers(place), f"{number}: {name}, {sent.name} after {moment:.3f} s: {leftovers(place)}"
        nothing_left()
        counts[f"{name}, {'late' if ended.late else ended.status}"] += 1
    print(dict(counts))
    assert any(status.endswith("130") for status in counts) and any(status.endswith("143") for status in counts)


def directories(place: Path) -> dict[str, str]:
    """A user's own for one trial."""
    (place / "tmp").mkdir(parents=True)
    ours = {f"GEZEL_{name.upper()}": str(place / name) for name in ("store", "state", "cache", "config")}
    return {**ours, "TMPDIR": str(place / "tmp"), "PYTHONPATH": str(Path(__file__).parents[2])}


def interrupted(
    children: Callable[..., Any], argv: list[str], number: int, moment: float, environ: dict[str, str]
) -> Ended:
    """Start a command, send it a signal so long after its first line, and wait for its end."""
    ready, begun = os.pipe()
    child = children([sys.executable, "-c", START.format(begun=begun), *argv], env=environ, pass_fds=(begun,))
    os.close(begun)
    assert os.read(ready, 1)
    os.close(ready)
    time.sleep(moment)
    late = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    child.send_signal(number)
    out, err = child.communicate(timeout=120)
    return Ended(child.returncode, out, err, late)


def judge(name: str, number: int, ended: Ended, what: str) -> None:
    """It ended by the signal, and says nothing of it. ``serve`` is ended by one: that is 0 once it has begun."""
    allowed = (128 + number, -number, *((0,) if name == "serve" or ended.late else ()))
    assert ended.status in allowed, what
    assert "Traceback" not in ended.err and "Exception" not in ended.err, what


def leftovers(place: Path) -> list[str]:
    """Files that nobody will look for again: half-written ones, and what is true of a running engine alone. A download
    that can go on, with what is known of it, is kept."""
    found = [path for path in place.rglob("*") if path.is_file()]
    temporary = [p for p in found if p.suffix == ".new" or (p.name[0] == "." and p.suffix[1:].isdigit())]
    of_engines = [p for p in found if p.parent.name in ("running", "keys", "leases")]
    return sorted(str(p) for p in {*temporary, *of_engines, *(place / "tmp").iterdir()})
