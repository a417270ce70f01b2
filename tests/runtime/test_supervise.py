"""One engine process: readiness, ports, keys, logs, and the end of it and of all it started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gezel_rules.engines.llama_cpp.contract import CONTRACT
from gezel_rules.engines.openai_http import Address
from gezel_rules.errors import BadInput, EngineFailed
from gezel_rules.runtime import process, supervise

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def begin(fake, environ, state, rules):
    """Starts a fake engine; whatever was started is stopped at the end."""
    begun = []

    def start(*faults: str, argv=("--port", "0"), label="model", rules=rules):
        running = supervise.start(
            fake(*faults), CONTRACT, argv, {}, environ=environ, state_dir=state, rules=rules, label=label
        )
        begun.append(running)
        return running

    yield start
    for running in begun:
        supervise.stop(running, 0.2)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_ready_after_loading_with_the_port_from_the_log(begin, rules):
    running = begin("slow=0.4")
    result = supervise.wait_ready(running, 20, rules)
    assert result.ready and result.exit_status is None and result.seconds >= 0.4
    assert running.address.port > 0


def test_a_port_of_the_argv_is_polled_while_loading(begin, rules):
    port, told = free_port(), []
    running = begin("slow=0.4", argv=("--port", str(port)))
    assert supervise.wait_ready(running, 20, rules, told.append).ready
    assert running.address == Address("127.0.0.1", port) and len(told) > 1


def test_no_port_in_the_argv_means_any_free_one(begin, rules):
    running = begin(argv=())
    assert supervise.wait_ready(running, 20, rules).ready and running.address.port > 0


def test_exit_while_loading(begin, rules):
    result = supervise.wait_ready(begin("crash=7"), 20, rules)
    assert (result.ready, result.exit_status) == (False, 7)


def test_time_out(begin, rules):
    result = supervise.wait_ready(begin("silent"), 0.5, rules)
    assert (result.ready, result.exit_status) == (False, None) and result.seconds >= 0.5


def test_a_stranger_on_the_port_is_not_our_engine(begin, rules):
    """A server that takes any key answers health checks too: it must not be taken for ours."""
    running = begin("stranger", argv=("--port", str(free_port())))
    assert not supervise.wait_ready(running, 1.5, rules).ready


@pytest.fixture
def listener():
    """Somebody else's server: it takes connections and keeps what is sent."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.05)
    heard = []

    def port_and_heard():
        while True:
            try:
                connection, _ = server.accept()
            except TimeoutError:
                return server.getsockname()[1], heard
            heard.append(connection)

    yield port_and_heard
    server.close()
    for connection in heard:
        connection.close()


def test_a_line_of_the_log_that_lies_about_the_port(begin, rules, listener):
    """Model files put lines into a log: our key must not go where they point."""
    port, _ = listener()
    running = begin(f"lies={port}", argv=("--port", "0"))
    assert supervise.wait_ready(running, 20, rules).ready
    assert running.address.port not in (0, port) and listener()[1] == []


def test_who_listens(begin, rules, listener):
    port, _ = listener()
    running = begin()
    assert supervise.wait_ready(running, 20, rules).ready
    assert process.listens(running.pid, running.address.port) is True
    assert process.listens(running.pid, port) is False and process.listens(os.getpid(), port) is True
    supervise.stop(running, 5)
    assert process.listens(running.pid, port) is False


def test_a_taken_port_is_refused_before_anything_starts(fake, environ, state, rules):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        with pytest.raises(BadInput, match=f"cannot listen on 127.0.0.1 port {port}: address already in use"):
            supervise.start(
                fake(), CONTRACT, ("--port", port), {}, environ=environ, state_dir=state, rules=rules, label="x"
            )
    assert not state.exists()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--port", "eighty"), "not a port"),
        (("--port", "70000"), "not a port"),
        (("--port=-1",), "not a port"),
        (("--host", "/tmp/x.sock"), "unix sockets"),
        (("--host", "203.0.113.9", "--port", "9"), "cannot listen on 203.0.113.9"),
    ],
)
def test_addresses_that_cannot_be(argv, said, rules):
    with pytest.raises(BadInput, match=said):
        supervise.wanted_address(argv, rules)


def test_listening_everywhere_is_reached_here(rules):
    assert supervise.wanted_address(("--host", "0.0.0.0", "--port", "0"), rules).host == "127.0.0.1"


def test_a_program_that_cannot_run(fake, environ, state, rules, tmp_path):
    broken = tmp_path / "llama-server"
    broken.write_text("not a program")
    broken.chmod(0o755)
    engine = fake()._replace(command=(str(broken),))
    try:
        running = supervise.start(engine, CONTRACT, (), {}, environ=environ, state_dir=state, rules=rules, label="x")
    except EngineFailed as error:
        assert "cannot start" in str(error)
        return
    assert supervise.wait_ready(running, 20, rules).exit_status == 127
    assert any("cannot run" in line for line in running.log.lines())


def test_the_key_is_random_and_only_in_the_environment(begin, state, rules):
    first, second = begin("blabs"), begin("blabs")
    assert first.key != second.key and len(first.key) > 30
    for running in (first, second):
        assert supervise.wait_ready(running, 20, rules).ready
        assert running.key not in Path(f"/proc/{running.pid}/cmdline").read_text()
        assert running.key not in running.log.path.read_text()
        assert "api key: ***" in running.log.lines()
    assert not [p for p in state.rglob("*") if p.is_file() and first.key in p.read_text()]


def test_a_key_of_the_caller_is_kept(fake, environ, state, rules):
    running = supervise.start(
        fake(),
        CONTRACT,
        (),
        {},
        environ={**environ, "LLAMA_API_KEY": "mine,other"},
        state_dir=state,
        rules=rules,
        label="x",
    )
    supervise.stop(running, 0.2)
    assert running.key == "mine"


def test_polite_stop(begin, rules):
    running = begin()
    assert supervise.wait_ready(running, 20, rules).ready
    assert supervise.stop(running, 10) == 0


def test_a_deaf_engine_and_its_deaf_child_are_killed(begin, rules, nothing_left):
    running = begin("deaf", "child")
    assert supervise.wait_ready(running, 20, rules).ready
    assert supervise.stop(running, 0.2) == -signal.SIGKILL
    nothing_left()


def test_children_go_with_an_engine_that_died_on_its_own(begin, rules, nothing_left):
    running = begin("child")
    assert supervise.wait_ready(running, 20, rules).ready
    os.kill(running.pid, signal.SIGKILL)
    running.process.wait()
    assert supervise.stop(running, 5) == -signal.SIGKILL
    nothing_left()


def test_old_logs_of_the_same_label_are_removed(begin, state, rules):
    for _ in range(rules.logs.launches + 4):
        supervise.stop(begin(label="some/model: x"), 0.1)
    begin(label="some")
    names = sorted(path.name for path in (state / "logs").iterdir())
    assert sum(name.startswith("some-model-x-") for name in names) == rules.logs.launches
    assert len(names) == rules.logs.launches + 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child's life to its parent's")
@pytest.mark.parametrize("faults", ["slow=30", "", "deaf"], ids=["loading", "ready", "deaf"])
def test_no_engine_survives_kill_9_of_its_parent(faults, environ, state, nothing_left):
    code = f"""
import os, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
FAKE = Path({str(Path(__file__).parent / "fake_engine.py")!r})
from gezel_rules.engines.family import Program
from gezel_rules.engines.llama_cpp.contract import CONTRACT
from gezel_rules.runtime import supervise
from shipped_rules import shipped_rules
engine = Program("llama-server", (sys.executable, str(FAKE), *{faults.split()!r}), FAKE)
rules = shipped_rules()
state = Path({str(state)!r})
running = supervise.start(engine, CONTRACT, (), {{}}, environ=os.environ, state_dir=state, rules=rules, label="x")
ready = supervise.wait_ready(running, 1.0, rules).ready
print(running.pid, running.token, ready, flush=True)
sys.stdin.read()
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    pid, token, ready = parent.stdout.readline().split()
    assert ready == str("slow" not in faults) and process.alive(int(pid), token)
    parent.kill()
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
    nothing_left()


def test_a_health_answer_that_drips_is_not_waited_for(begin, rules):
    """A byte of it now and then: a question has its time as a whole, and so has the waiting."""
    begun = time.monotonic()
    running = begin("drips")
    assert not supervise.wait_ready(running, 3, rules._replace(probe=1)).ready
    assert time.monotonic() - begun < 20  # the answer would take 60 s


def test_listening_is_heard_after_any_number_of_lines(begin, rules):
    """More of them than are remembered, and with no end of the log to look at."""
    few = rules.logs._replace(first_lines=100, last_lines=10)
    running = begin("chatty=30000", argv=("--port", "0"), rules=rules._replace(logs=few))
    assert supervise.wait_ready(running, 60, rules).ready
    assert len(running.log.lines()) == 110
