"""An engine that is served and dies: what its clients know holds over restarts, and what recovery learnt does too."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from shipped_rules import shipped_judge

from gezel_rules.engines.family import DEGRADATION, Program
from gezel_rules.engines.llama_cpp.contract import CONTRACT
from gezel_rules.errors import EngineFailed
from gezel_rules.places import catalog_dir, policies_dir
from gezel_rules.runtime import recover
from gezel_rules.runtime.interrupts import Interrupted, Interrupts
from gezel_rules.runtime.order import Guide, Order
from gezel_rules.session import Prepared, Session
from gezel_rules.session.serving import serve
from gezel_rules.store.shelf import installed
from tests.store.test_shelf import put

FAKE = Path(__file__).parent / "fake_engine.py"
pytestmark = pytest.mark.usefixtures("nothing_left")


class Seen(NamedTuple):
    """What a client sees of one engine, and how it was started."""

    url: str
    key: str
    key_file: Path
    argv: tuple[str, ...]


@pytest.fixture
def serving(rules, state, environ, tmp_path):
    """Serves an order: each engine that is ready dies of the next of ``deaths``, and after the last we are interrupted.
    Returns what clients saw of each engine; what people were told is in ``serving.said``."""
    session = Session(policies_dir(), catalog_dir(), tmp_path / "store", state, tmp_path / "cache", environ, ())

    def run(order, deaths, again=lambda step: None, can=(), say=lambda line: None, files=()):
        seen, left = [], list(deaths)

        def announce(engine, key_file):
            url, argv = engine.running.address.url, engine.running.argv
            seen.append(Seen(url, key_file.read_text(), key_file, argv))
            if not left:
                raise Interrupted(signal.SIGINT)
            left.pop(0)(engine.running.pid)

        def told(line):
            run.said.append(line)
            say(line)

        guide = Guide(shipped_judge("cuda"), again, frozenset(can), told)
        quick = rules._replace(restart_pauses=(0.0, 0.0, 0.0))
        with Interrupts() as interrupts, contextlib.suppress(Interrupted):
            serve(session, Prepared(order, "completion", guide, quick, files), interrupts, announce)
        return seen

    run.said = []
    return run


def by(number):
    """Dies of this signal."""
    return lambda pid: os.kill(pid, number)


KILLED = by(signal.SIGKILL)


def order_of(engine, *argv, **more):
    return Order(engine, CONTRACT, argv, {}, "m", build="b1", **more)


@pytest.mark.parametrize("argv", [(), ("--port", "0"), ("--port=0", "-c", "512")])
def test_port_key_and_order_stay_over_restarts(serving, fake, argv):
    first, *others = serving(order_of(fake(), *argv), [KILLED, KILLED])
    assert len(others) == 2 and not first.url.endswith(":0")
    port = first.url.rpartition(":")[2]
    rest = tuple(word for word in argv if not word.startswith("--port") and word != "0")
    for other in others:
        assert other[:3] == first[:3]
        assert other.argv == (*rest, "--port", port)


def test_the_drafter_that_killed_it_is_left_out(serving, fake, state):
    plain = order_of(fake(), "-c", "512")
    drafting = order_of(fake(), "-c", "512", "-md", "d.gguf", parts={recover.DRAFTER: "d"})
    steps = []

    def again(step):
        steps.append(step.step)
        return plain

    seen = serving(drafting, [by(signal.SIGABRT), by(signal.SIGABRT)], again)
    assert [("-md" in one.argv) for one in seen] == [True, False, False]
    assert steps == ["drop-drafter"] and len({one[:3] for one in seen}) == 1
    assert "trying again: drop-drafter" in serving.said[0] and recover.is_broken(state, "b1", "d")


def test_a_kill_from_outside_is_held_against_nothing(serving, fake, state):
    drafting = order_of(fake(), "-md", "d.gguf", parts={recover.DRAFTER: "d"})
    seen = serving(drafting, [KILLED], lambda step: order_of(fake()))
    assert ["-md" in one.argv for one in seen] == [True, True]
    assert not recover.is_broken(state, "b1", "d")


def test_what_a_failed_start_taught_holds_after_a_death(serving, fake):
    """65,536 runs out of memory, 51,456 runs and dies: 51,456 again."""
    large, small = order_of(fake("oom"), "-c", "65536"), order_of(fake(), "-c", "51456")
    seen = serving(large, [KILLED, KILLED], lambda step: small, {DEGRADATION})
    assert [one.argv[1] for one in seen] == ["51456"] * 3
    assert len([line for line in serving.said if "degrade" in line]) == 1


def test_the_slot_directory_is_made_again(serving, fake, tmp_path):
    slots = tmp_path / "deep" / "slots"

    def lost(pid):
        assert slots.is_dir()
        slots.rmdir()
        KILLED(pid)

    seen = serving(order_of(fake(), folders={"slot_save_path": str(slots)}), [lost])
    assert len(seen) == 2 and slots.is_dir()


@pytest.fixture
def failing(tmp_path):
    """A fake engine whose next starts fail, as many as ``failing(number)`` says."""
    script, left = tmp_path / "engine", tmp_path / "left"
    script.write_text(
        "#!/bin/sh\n"
        f"if [ -s {left} ]; then sed -i 1d {left}; exit 9; fi\n"
        f'exec {sys.executable} {FAKE} "$@"\n'
    )  # fmt: skip
    program = Program("llama-server", ("/bin/sh", str(script)), script)
    return program, lambda number: left.write_text("fail\n" * number)


@pytest.mark.parametrize("times", [1, 2])
def test_a_restart_that_fails_is_not_the_end_while_restarts_are_left(serving, failing, times):
    program, fail = failing

    def killed(pid):
        fail(times)
        KILLED(pid)

    first, second = serving(order_of(program), [killed])
    assert first[:3] == second[:3]
    assert len([line for line in serving.said if "exited with status 9" in line]) == times


def test_a_model_that_is_damaged_for_a_while(serving, fake, tmp_path):
    """A restart on a damaged file is refused, and is not the end while restarts are left."""
    put(tmp_path / "store", tmp_path, "m")
    files = installed(tmp_path / "store")[0].files
    path, good = Path(files[0].path), Path(files[0].path).read_bytes()

    def damaged(pid):
        path.write_bytes(good[:-8] + b"8 bytes!")
        KILLED(pid)

    def say(line):
        if "has sha256" in line:
            path.write_bytes(good)

    first, second = serving(order_of(fake(), "-m", files[0].path), [damaged], say=say, files=files)
    assert first[:3] == second[:3]
    assert [("SIGKILL" in line, "has sha256" in line, "hashing it again" in line) for line in serving.said] == [
        (True, False, False), (False, False, True), (False, True, False), (False, False, True)
    ]  # fmt: skip


def test_when_no_restart_is_left_the_last_failure_is_raised(serving, failing):
    program, fail = failing

    def killed(pid):
        fail(3)
        KILLED(pid)

    with pytest.raises(EngineFailed, match="exited with status 9"):
        serving(order_of(program), [killed])


def test_a_first_start_that_fails_is_not_tried_again(serving, fake):
    with pytest.raises(EngineFailed, match="exited with status 9"):
        serving(order_of(fake("crash=9")), [])
    assert serving.said == []


def test_a_stranger_on_the_port_for_a_while(serving, fake):
    strangers, port = [], _free_port()

    def say(line):
        if strangers:
            strangers.pop().close()
        elif "SIGKILL" in line:
            strangers.append(socket.create_server(("127.0.0.1", int(port))))

    first, second = serving(order_of(fake(), "--port", port), [KILLED], say=say)
    assert first[:3] == second[:3] and "address already in use" in serving.said[1]


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])
