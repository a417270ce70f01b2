"""A launch from order to ready engine: records, leases, recovery in order, and nothing left whatever happens."""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager

import pytest
from shipped_rules import shipped_judge

from gezel_rules.engines.llama_cpp.contract import CONTRACT
from gezel_rules.engines.openai_http import Call, chat, complete
from gezel_rules.errors import EngineFailed
from gezel_rules.logs.watch import Verdict
from gezel_rules.runtime import journal, leases, recover, registry
from gezel_rules.runtime.interrupts import Interrupts
from gezel_rules.runtime.launch import death_of, exit_words, launched
from gezel_rules.runtime.order import Guide, Order

pytestmark = pytest.mark.usefixtures("nothing_left")
PORT = ("--port", "0")


@pytest.fixture(scope="session")
def judge():
    """The shipped log policy's verdict, as for a CUDA build."""
    return shipped_judge("cuda")


@pytest.fixture
def go(judge, rules, state, environ):
    """Launches an order: ``with go(order, again=…) as engine``; what was said to the person is in ``go.said``."""

    @contextmanager
    def launch(order, again=lambda step: None, can=frozenset()):
        guide = Guide(judge, again, frozenset(can), launch.said.append)
        with Interrupts() as interrupts, launched(order, guide, rules, state, environ, interrupts) as engine:
            launch.guide = guide
            yield engine

    launch.said = []
    return launch


def call(engine, max_tokens):
    """A request for an answer to three words."""
    messages = [{"role": "user", "content": "one two three"}]
    return Call(engine.running.address, engine.running.key, messages, max_tokens, 10)


def files(state, folder):
    return sorted((state / folder).glob("*.json"))


def test_a_ready_engine_is_registered_and_holds_its_lease_until_the_end(fake, go, state):
    order = Order(fake(), CONTRACT, PORT, {}, "some-model", pools={"GPU0": 700, "host": 30}, record={"facts": {"a": 1}})
    with go(order) as engine:
        (entry,) = registry.running(state)
        assert entry.url == engine.running.address.url and entry.pid == engine.running.pid and not entry.orphan
        assert (entry.model, entry.engine, entry.owner) == ("some-model", "llama-server", os.getpid())
        assert leases.held(state) == {"GPU0": 700, "host": 30}
        pieces = complete(call(engine, 5))
        assert "".join(piece.text for piece in pieces) == "one two three "
    assert registry.running(state) == [] and leases.held(state) == {}
    assert not files(state, "running") and not files(state, "leases") and not (state / "incidents").exists()
    (record,) = [record for _, record in journal.records(state)]
    assert record["facts"] == {"a": 1} and record["launch"]["argv"] == list(PORT)
    assert record["outcome"]["ready"] is True and record["ended"]["exit_status"] == 0
    assert engine.running.key not in json.dumps(record)


def test_a_failed_start_says_class_advice_and_where_the_end_of_the_log_is(fake, go, state):
    with pytest.raises(EngineFailed) as caught, go(Order(fake("oom"), CONTRACT, PORT, {}, "m")):
        pytest.fail("it cannot be ready")
    message = str(caught.value)
    assert message.startswith("the engine exited with status 1: cuda-oom") and "\n" not in message
    (incident,) = files(state, "incidents")
    assert f"[{incident}]" in message
    kept = json.loads(incident.read_text())
    assert kept["exit_status"] == 1 and kept["failure"] == "cuda-oom" and kept["argv"] == list(PORT)
    assert any("cudaMalloc failed" in line for line in kept["last_lines"])
    (record,) = [record for _, record in journal.records(state)]
    assert record["outcome"]["ready"] is False and record["outcome"]["failure"] == "cuda-oom"


@pytest.mark.parametrize("gpu", [True, False])
def test_a_gpu_left_unused_is_said_for_gpu_builds_only(fake, rules, state, environ, gpu):
    said, verdict = [], Verdict("init-failed", "driver too old", None, False, None, None, None, None, None, None)
    guide = Guide(lambda lines, exit_status: verdict, say=said.append, gpu=gpu)
    with (
        Interrupts() as interrupts,
        launched(Order(fake(), CONTRACT, PORT, {}, "m"), guide, rules, state, environ, interrupts),
    ):
        pass
    assert said == (["the GPU is not in use: init-failed (driver too old)"] if gpu else [])
    (record,) = [record for _, record in journal.records(state)]
    assert record["outcome"]["gpu"] == "init-failed" and record["outcome"]["ready"] is True


def test_too_slow_is_a_failure_too(fake, go, judge, rules, state, environ):
    slow = rules._replace(ready_base=0.3)
    guide = Guide(judge)
    with (
        pytest.raises(EngineFailed, match="was not ready after 0 s"),
        Interrupts() as interrupts,
        launched(Order(fake("silent"), CONTRACT, PORT, {}, "m"), guide, slow, state, environ, interrupts),
    ):
        pytest.fail("it cannot be ready")


def test_recovery_drops_the_drafter_first_then_degrades_then_runs(fake, go, state):
    """The order of SPEC §7: the drafter goes first whatever the class; memory is degraded only for the GPU's."""
    steps = []

    def again(step):
        steps.append(step.step)
        plain = Order(fake("oom"), CONTRACT, PORT, {}, "m", build="b1")
        return plain if len(steps) < 3 else plain._replace(engine=fake())

    order = Order(fake("oom"), CONTRACT, PORT, {}, "m", build="b1", parts={recover.DRAFTER: "some-drafter"})
    with go(order, again, {"degradation"}):
        assert steps == ["drop-drafter", "degrade", "degrade"]
        assert len(registry.running(state)) == 1
    assert recover.broken_parts(state, "b1") == {}  # it failed without the drafter just the same
    assert len(go.said) == 3 and "trying again: drop-drafter, because drafters change format" in go.said[0]
    assert len(list(journal.records(state))) == 4 and len(files(state, "incidents")) == 3


def test_recovery_is_bounded(fake, go, rules):
    steps = []

    def again(step):
        steps.append(step.step)
        return Order(fake("oom"), CONTRACT, PORT, {}, "m")

    with pytest.raises(EngineFailed), go(Order(fake("oom"), CONTRACT, PORT, {}, "m"), again, {"degradation"}):
        pytest.fail("it cannot be ready")
    (degrade,) = [step for step in rules.steps if step.step == "degrade"]
    assert steps == ["degrade"] * degrade.times


def test_other_failures_are_not_degraded(fake, go):
    def again(step):
        pytest.fail(f"{step} does not help here")

    with (
        pytest.raises(EngineFailed, match="exited with status 9"),
        go(Order(fake("crash=9"), CONTRACT, PORT, {}, "m"), again, {"degradation"}),
    ):
        pytest.fail("it cannot be ready")


def test_an_engine_that_dies_over_an_answer(fake, go, state):
    order = Order(fake("dies=2"), CONTRACT, PORT, {}, "m", build="b1", parts={recover.DRAFTER: "d"})
    with go(order) as engine:
        said = []
        with pytest.raises(EngineFailed, match="broke off"):
            for piece in chat(call(engine, -1)):
                said.append(piece.text)
        assert said == ["one ", "two "]
        failure = death_of(engine, go.guide, state).failure
    assert "the engine was ended by SIGABRT" in str(failure)
    assert recover.is_broken(state, "b1", "d") and len(files(state, "incidents")) == 1


def test_an_error_of_ours_stops_the_engine(fake, go, nothing_left):
    with pytest.raises(ZeroDivisionError), go(Order(fake(), CONTRACT, PORT, {}, "m")):
        _ = 1 // 0
    nothing_left()


def test_the_next_start_ends_what_was_left_behind(fake, go, state, environ, rules, nothing_left):
    """An engine whose command is gone but which lives on, as where the kernel ties no lives together."""
    from gezel_rules.runtime import supervise

    left = supervise.start(fake("deaf"), CONTRACT, PORT, {}, environ=environ, state_dir=state, rules=rules, label="m")
    entry = registry.Entry("old", "m", "llama-server", "", left.pid, left.token, 2**22, "gone", 0.0, "")
    registry.enter(state, entry)
    with go(Order(fake(), CONTRACT, PORT, {}, "m")):
        assert [running.id for running in registry.running(state)] != ["old"]
        assert left.process.poll() is not None
    assert re.search(r"ended an engine left behind: m, pid \d+", go.said[0])


@pytest.mark.parametrize(
    ("status", "words"), [(1, "exited with status 1"), (-9, "was ended by SIGKILL"), (-99, "was ended by signal 99")]
)
def test_exit_statuses_in_words(status, words):
    assert exit_words(status) == words


def test_a_drafter_without_which_the_engine_starts_is_remembered(fake, go, state):
    order = Order(fake("oom"), CONTRACT, PORT, {}, "m", build="b1", parts={recover.DRAFTER: "sha256:ab"},
                  called={"sha256:ab": "draft.gguf"})  # fmt: skip
    with go(order, lambda step: Order(fake(), CONTRACT, PORT, {}, "m", build="b1")) as ready:
        assert ready.order.left_out == {recover.DRAFTER: "sha256:ab"}
    (verdict,) = recover.verdicts(state)
    assert verdict[:4] == ("b1", "sha256:ab", "draft.gguf", "cuda-oom")
    assert not recover.is_broken(state, "b2", "sha256:ab")


def test_an_engine_that_fails_with_and_without_the_drafter_does_not_condemn_it(fake, go, state):
    order = Order(fake("crash=9"), CONTRACT, PORT, {}, "m", build="b1", parts={recover.DRAFTER: "sha256:ab"})
    plain = Order(fake("crash=9"), CONTRACT, PORT, {}, "m", build="b1")
    with pytest.raises(EngineFailed), go(order, lambda step: plain):
        pytest.fail("it cannot be ready")
    assert list(recover.verdicts(state)) == []


def test_a_death_without_the_drafter_soon_after_forgives_it(fake, go, state):
    order = Order(fake("crash=9"), CONTRACT, PORT, {}, "m", build="b1", parts={recover.DRAFTER: "sha256:ab"})
    with go(order, lambda step: Order(fake("dies=2"), CONTRACT, PORT, {}, "m", build="b1")) as engine:
        assert recover.is_broken(state, "b1", "sha256:ab")
        with pytest.raises(EngineFailed):
            list(chat(call(engine, -1)))
        death_of(engine, go.guide, state)
    assert list(recover.verdicts(state)) == []
