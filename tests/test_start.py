"""Number 15 of the edges: a signal whose exception reaches nobody ends the command all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gezel_rules.places import policies_dir

COMMAND = """
import signal, sys, time, types, weakref
from gezel_rules.start import main

class Lock:
    "Goes as a lock of an import does: a callback is told, and what it raises is only reported."

def run(args):
    lock = Lock()
    noticed = weakref.ref(lock, lambda _: signal.raise_signal({number}))
    del lock
    time.sleep({seconds})
    return 0

sys.modules["gezel_rules.cli.ls"] = types.SimpleNamespace(add_arguments=lambda parser: None, run=run)
sys.argv = ["gezel-rules", "ls"]
sys.exit(main())
"""


def ran(code: str, *modules: Path) -> subprocess.CompletedProcess[bytes]:
    """Code run to its end as a process, with the package and more folders of modules at hand."""
    paths = os.pathsep.join(map(str, (policies_dir().parent, *modules)))
    environ = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run([sys.executable, "-c", code], env=environ, timeout=120, capture_output=True)


@pytest.mark.skipif(os.name == "nt", reason="signals that end a process need POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [0, 600])
def test_15_a_signal_is_not_lost_in_a_callback(number: int, seconds: float) -> None:
    done = ran(COMMAND.format(number=int(number), seconds=seconds))
    assert (done.returncode, done.stderr) == (128 + number, b"")


LOADING = """
import signal, sys, types
from gezel_rules.start import main

def run(args):
    import loaded_for_long
    return 0

sys.modules["gezel_rules.cli.ls"] = types.SimpleNamespace(add_arguments=lambda parser: None, run=run)
sys.argv = ["gezel-rules", "ls"]
sys.exit(main())
"""


@pytest.mark.skipif(os.name == "nt", reason="signals that end a process need POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_15_a_signal_waits_until_a_module_is_loaded(number: int, tmp_path: Path) -> None:
    """A loader may make anything of what a handler raises; here it would be taken for a module that is not there."""
    module = f"import signal\ntry:\n signal.raise_signal({int(number)})\nexcept BaseException: raise ImportError\n"
    (tmp_path / "loaded_for_long.py").write_text(module)
    done = ran(LOADING, tmp_path)
    assert done.returncode in (128 + number, -number) and done.stderr == b""


def test_other_faults_of_a_callback_are_reported() -> None:
    code = COMMAND.format(number=999, seconds=0)  # there is no such signal
    done = ran(code)
    assert done.returncode == 0 and b"Exception ignored" in done.stderr and b"OSError" in done.stderr
