"""Number 12 of the edges: whoever asks an engine and is ended leaves no engine running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gezel_rules.places import policies_dir
from gezel_rules.runtime.process import started

FAKE_SLOW_ENGINE = '#!/bin/sh\necho $$ >> "{pids}"\nexec sleep 600\n'
FAKE_WRAPPER = '#!/bin/sh\nsleep 600 &\necho $! >> "{pids}"\nwait\n'
COMMANDS = (("plan", "qwen3-8b"), ("devices",), ("doctor",))


def until(holds: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def ended_while_it_asks(command: tuple[str, ...], number: int, engine: str, folder: Path) -> tuple[int, str, list[int]]:
    """How a command ends that gets a signal while the engine does not answer; what it said; the engine's processes."""
    pids, program = folder / "pids", folder / "llama-server"
    program.write_text(engine.format(pids=pids))
    program.chmod(0o755)
    asking = subprocess.Popen(
        [sys.executable, "-m", "gezel_rules.cli", *command, "--engine", str(program)], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(policies_dir().parent)},
    )  # fmt: skip
    until(lambda: pids.exists() and pids.read_text().endswith("\n"), "the engine was never asked")
    asking.send_signal(number)
    said = asking.communicate(timeout=60)[1]
    return asking.returncode, said, list(map(int, pids.read_text().split()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("command", COMMANDS)
def test_12_a_probe_dies_with_who_asks(command: tuple[str, ...], number: int, tmp_path: Path) -> None:
    status, said, pids = ended_while_it_asks(command, number, FAKE_SLOW_ENGINE, tmp_path)
    assert (status, said) == (-number if number == signal.SIGKILL else 128 + number, "")
    until(lambda: not any(map(started, pids)), "the engine runs on")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_12_what_a_wrapper_started_dies_too(number: int, tmp_path: Path) -> None:
    status, said, pids = ended_while_it_asks(("devices",), number, FAKE_WRAPPER, tmp_path)
    assert (status, said) == (128 + number, "")
    until(lambda: not any(map(started, pids)), "what the wrapper started runs on")
