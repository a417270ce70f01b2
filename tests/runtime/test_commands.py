"""run, serve, ps and stop as people use them, on engines with faults: what is printed where, and what is left."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from shipped_rules import shipped_rules

DRIVE = Path(__file__).parent / "drive.py"
FAKE = Path(__file__).parent / "fake_engine.py"
pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def program(tmp_path):
    """Makes an executable engine with faults."""

    def make(*faults: str) -> str:
        path = tmp_path / f"engine-{'-'.join(faults)}"
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} {" ".join(faults)} "$@"\n')
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def surroundings(environ, state):
    return {**environ, "GEZEL_STATE": str(state)}


@pytest.fixture
def drive(children, surroundings):
    """Starts a command."""

    def start(*args: str, **more):
        options = {"preexec_fn": _hang_up_counts, **more}
        return children([sys.executable, str(DRIVE), *args], env=surroundings, **options)

    return start


def _hang_up_counts() -> None:
    """Also where the tests themselves were started with nohup, which every child would inherit."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def command(name: str, surroundings: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import argparse, sys; from gezel_rules.errors import GezelError\n"
        f"from gezel_rules.cli import {name} as command\n"
        "parser = argparse.ArgumentParser(); command.add_arguments(parser)\n"
        "parser.add_argument('--json', action='store_true')\n"
        "parser.set_defaults(policies=None, catalog=None, store=None, layer=None)\n"
        "try: sys.exit(command.run(parser.parse_args()))\n"
        "except GezelError as error: print(error, file=sys.stderr); sys.exit(error.exit_status)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *args], env=surroundings, capture_output=True, text=True, timeout=60
    )


def finish(child, seconds: float = 60):
    out, err = child.communicate(timeout=seconds)
    return child.returncode, out, err


def test_the_answer_alone_is_on_stdout(drive, program):
    assert finish(drive("run", program(), "model", "one two")) == (0, "one two \n", "")


def test_json(drive, program):
    status, out, _ = finish(drive("run", program(), "model", "one two", "--json", "--endpoint", "chat"))
    assert status == 0
    assert json.loads(out) == {
        "model": "hand-made", "engine": "llama-server", "endpoint": "chat", "answer": "one two ",
    }  # fmt: skip


def test_the_prompt_may_come_through_a_pipe(drive, program):
    child = drive("run", program(), "model", stdin=subprocess.PIPE)
    assert child.communicate("from a\npipe", timeout=60) == ("from a pipe \n", "") and child.returncode == 0


def test_an_empty_pipe_is_no_prompt(drive, program):
    assert finish(drive("run", program(), "model")) == (
        2,
        "",
        "gezel-rules: no prompt: give one as an argument or on stdin\n",
    )


def test_a_talk_on_a_terminal(drive, program):
    """In a chat every question brings along what was said before: the fake engine repeats all it is sent."""
    ours, theirs = pty.openpty()
    child = drive("run", program(), "model", "--endpoint", "chat", stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    assert _screen(ours) == "> "
    os.write(ours, b"hello\n")
    assert _screen(ours) == "hello\r\nhello \r\n> "
    os.write(ours, b"\nyou\n")
    assert _screen(ours, prompts=2) == "\r\nyou\r\n> hello hello you \r\n> "
    os.write(ours, b"/bye\n")
    assert child.wait(60) == 0
    os.close(ours)


def test_13_a_question_that_was_refused_is_not_sent_again(drive, program):
    ours, theirs = pty.openpty()
    child = drive(
        "run", program("refuses=novel"), "m", "--endpoint", "chat", stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    assert _screen(ours) == "> "
    os.write(ours, b"novel\n")
    assert "the engine refused: the request exceeds the available context size" in _screen(ours)
    os.write(ours, b"hello\n")
    assert _screen(ours) == "hello\r\nhello \r\n> "
    os.write(ours, b"/bye\n")
    assert child.wait(60) == 0
    os.close(ours)


def test_13_ctrl_c_ends_the_answer_and_a_second_one_the_session(drive, program):
    ours, theirs = pty.openpty()
    child = drive("run", program("endless"), "model", "--endpoint", "chat", stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    assert _screen(ours) == "> "
    os.write(ours, b"hello\n")
    os.read(ours, 7)
    assert select.select([ours], [], [], 30)[0]
    os.read(ours, 1000)
    child.send_signal(signal.SIGINT)
    assert _screen(ours).endswith("\r\n> ")
    _wait_until_it_reads(child.pid)
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 130
    os.close(ours)


def test_loading_is_shown_on_a_terminal_and_wiped(drive, program):
    ours, theirs = pty.openpty()
    child = drive("run", program("slow=1.3"), "model", "one", stderr=theirs)
    os.close(theirs)
    assert child.communicate(timeout=60)[0] == "one \n"
    shown = os.read(ours, 1000).decode()
    assert shown == "\r\x1b[Kloading hand-made … 1 s\r\x1b[K"
    os.close(ours)


def _wait_until_it_reads(pid: int) -> None:
    """Wait until a process that shows its prompt sleeps for what is typed: Python's ``input`` misses a signal in the
    moment between the two, and hears of it with the next key."""
    process = psutil.Process(pid)
    end = time.monotonic() + 30
    while process.status() != psutil.STATUS_SLEEPING:
        assert time.monotonic() < end
        time.sleep(0.01)


def _screen(terminal: int, prompts: int = 1) -> str:
    """What a terminal shows until it has shown so many prompts."""
    shown = b""
    while shown.count(b"> ") < prompts:
        assert select.select([terminal], [], [], 30)[0], shown
        shown += os.read(terminal, 1000)
    return shown.decode()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("refuses", "gezel-rules: the engine refused: the request exceeds the available context size\n"),
        ("crash=5", "gezel-rules: the engine exited with status 5"),
        ("dies=1", "gezel-rules: the engine was ended by SIGABRT"),
    ],
)
def test_faults_are_one_line_and_status_3(drive, program, fault, said):
    status, _, err = finish(drive("run", program(fault), "model", "one two three"))
    assert status == 3 and err.startswith(said) and err.count("\n") == 1


def test_a_wrong_engine_is_status_2(drive):
    assert finish(drive("run", "/no/such/engine", "model", "hi"))[::2] == (
        2, "gezel-rules: --engine: no such file: /no/such/engine\n",
    )  # fmt: skip


def test_a_reader_that_has_enough(program, surroundings):
    line = f"{sys.executable} {DRIVE} run {program()} model '{'word ' * 2000}' | head -c 20; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], env=surroundings, capture_output=True, text=True, timeout=60)
    assert done.stdout == "word word word word 0\n" and done.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("fault", ["slow=30", "silent", "endless"])
def test_signals_while_loading_or_answering(drive, program, nothing_left, fault, number, state):
    child = drive("run", program(fault), "model", "word")
    if fault == "endless":
        assert child.stdout.read(5) == "word "
    else:
        _until(lambda: list((state / "running").glob("*.json")))
    child.send_signal(number)
    status, _, err = finish(child)
    assert (status, err) == (128 + number, "")
    nothing_left()
    assert not list((state / "running").iterdir()) and not list((state / "leases").iterdir())


def test_a_second_ctrl_c_does_not_leave_a_deaf_engine(drive, program, nothing_left):
    child = drive("run", program("endless", "deaf", "child"), "model", "word")
    assert child.stdout.read(5) == "word "
    begun = time.monotonic()
    for _ in range(3):
        child.send_signal(signal.SIGINT)
        time.sleep(0.1)
    # The third may come when nothing of ours handles signals any more: a shell says 130 to both ends.
    assert finish(child)[0] in (130, -signal.SIGINT)
    assert time.monotonic() - begun < shipped_rules().stop_grace, "the second one is for haste"
    nothing_left()


def test_nohup(drive, program):
    """Who closes the terminal on a command started with nohup wants it to go on."""
    child = drive(
        "serve", program(), "model", "--json", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    shown = json.loads(child.stdout.readline())
    child.send_signal(signal.SIGHUP)
    key = Path(shown["key_file"]).read_text().strip()
    time.sleep(0.5)
    assert child.poll() is None and _get(shown["url"], key) == 200
    child.terminate()
    assert finish(child)[0] == 0


@pytest.fixture
def served(drive, program):
    """An engine served in the foreground, ready: the command and what it announced."""
    child = drive("serve", program(), "model", "--json")
    return child, json.loads(child.stdout.readline())


def test_serve_keeps_the_key_in_a_file_of_its_owner(served, state):
    child, shown = served
    key_file = Path(shown["key_file"])
    key = key_file.read_text().strip()
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert _get(shown["url"], key) == 200 and _get(shown["url"], "wrong") == 401
    child.send_signal(signal.SIGINT)
    status, out, err = finish(child)
    assert status == 0 and key not in out + err and not key_file.exists()
    assert not [path for path in state.rglob("*") if path.is_file() and key in path.read_text()]


def test_serve_tells_people_where_and_how(drive, program):
    child = drive("serve", program(), "model")
    url = child.stdout.readline()
    assert url.startswith("http://127.0.0.1:")
    key_line = child.stderr.readline()
    assert (
        "key in " in key_line and f"{url.strip()}/v1/models" in key_line and "-key" not in key_line.replace(".key", "")
    )
    child.terminate()
    assert finish(child)[0] == 0


def test_ps_and_stop(served, surroundings):
    child, shown = served
    (entry,) = json.loads(command("ps", surroundings, "--json").stdout)
    assert entry["pid"] == shown["pid"] and entry["url"] == shown["url"] and entry["orphan"] is False
    heading, row = command("ps", surroundings).stdout.splitlines()
    assert heading.split() == ["MODEL", "ENGINE", "PID", "UP", "URL", "ID"] and shown["url"] in row
    none = command("stop", surroundings, "other-model")
    assert none.returncode == 1 and none.stderr == "no engine runs other-model; running: hand-made\n"
    done = command("stop", surroundings, "hand-made")
    assert (done.returncode, done.stdout) == (0, f"stopped hand-made (pid {shown['pid']})\n")
    assert child.wait(60) == 0
    assert command("ps", surroundings).stdout == "no engine is running\n"
    assert command("stop", surroundings, "--all").returncode == 0


def test_stop_without_a_name_needs_exactly_one(drive, program, surroundings):
    children = [drive("serve", program(), "model", "--json") for _ in range(2)]
    for child in children:
        child.stdout.readline()
    many = command("stop", surroundings)
    assert many.returncode == 2 and many.stderr == "name one model, or --all\n"
    assert command("stop", surroundings, "--all").stdout.count("stopped") == 2
    assert [child.wait(60) for child in children] == [0, 0]


def test_serve_starts_a_dead_engine_again(served, surroundings):
    child, shown = served
    os.kill(shown["pid"], signal.SIGKILL)
    again = json.loads(child.stdout.readline())
    assert again["pid"] != shown["pid"]
    assert [again[name] for name in ("model", "url", "key_file")] == [
        shown[name] for name in ("model", "url", "key_file")
    ]
    assert _get(again["url"], Path(again["key_file"]).read_text().strip()) == 200
    child.send_signal(signal.SIGINT)
    status, _, err = finish(child)
    assert status == 0 and "the engine was ended by SIGKILL: killed-from-outside" in err
    assert "starting again in 1 s" in err


def test_kill_9_of_serve_leaves_no_engine_and_the_next_start_tidies_up(served, drive, program, state, nothing_left):
    child, _ = served
    child.kill()
    child.wait()
    nothing_left()
    assert finish(drive("run", program(), "model", "one"))[0] == 0
    assert [list((state / folder).iterdir()) for folder in ("running", "leases", "keys")] == [[], [], []]


def _get(url: str, key: str) -> int | None:
    from gezel_rules.engines.openai_http import Address, status

    host, _, port = url.removeprefix("http://").rpartition(":")
    return status(Address(host, int(port)), "/v1/models", key, 5)


def _until(condition) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)
