"""Engines that die over weights packed for the CPU: tried again without, remembered by build, and forgiven."""

from __future__ import annotations

import json
import os
import pty
from pathlib import Path
from types import MappingProxyType

import pytest
from shipped_rules import shipped_judge

from gezel_rules.engines.llama_cpp.contract import CONTRACT
from gezel_rules.engines.llama_cpp.parts import PACKED_WEIGHTS
from gezel_rules.engines.openai_http import Address, Call, complete
from gezel_rules.errors import EngineFailed
from gezel_rules.runtime import recover
from gezel_rules.runtime.interrupts import Interrupts
from gezel_rules.runtime.launch import death_of, launched
from gezel_rules.runtime.order import Guide, Order

PORT = ("--port", "0")
SIGNALS = pytest.mark.parametrize("signal", [4, 11])
pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture(scope="session")
def judge():
    """The shipped log policy's verdict, as for a CPU build."""
    return shipped_judge("cpu")


@pytest.fixture
def launch(judge, rules, state, environ):
    """Launches an order whose recovery steps lead to orders by name."""

    def start(order, interrupts, **again):
        guide = Guide(judge, lambda step: again.get(step.step.replace("-", "_")), say=start.said.append)
        start.guide = guide
        return launched(order, guide, rules, state, environ, interrupts)

    start.said = []
    return start


PACKS = {PACKED_WEIGHTS: PACKED_WEIGHTS}
DRAFTS = {recover.DRAFTER: "d"}


def packed(engine, parts=PACKS):
    return Order(engine, CONTRACT, PORT, {}, "m", build="b1", parts=parts)


def unpacked(engine, parts=MappingProxyType({})):
    return Order(engine, CONTRACT, (*PORT, "--no-repack"), {}, "m", build="b1", parts=parts)


def packing_broke(state, build):
    return recover.is_broken(state, build, PACKED_WEIGHTS)


@SIGNALS
def test_a_start_is_tried_again_without_and_the_build_is_remembered(fake, launch, state, signal):
    engine = fake(f"packs={signal}")
    with Interrupts() as interrupts, launch(packed(engine), interrupts, no_repack=unpacked(engine)) as ready:
        assert "--no-repack" in ready.running.argv
    assert packing_broke(state, "b1") and not packing_broke(state, "b2")
    assert len(launch.said) == 1 and "; trying again: no-repack, because a machine may name" in launch.said[0]


def test_what_the_log_complained_of_before_does_not_hide_the_signal(fake, launch, state):
    engine = fake("complains", "packs=4")
    with Interrupts() as interrupts, launch(packed(engine), interrupts, no_repack=unpacked(engine)):
        assert "SIGILL: model-not-found" in launch.said[0]
    assert packing_broke(state, "b1")


def test_packed_weights_are_blamed_before_the_drafter(fake, launch, state):
    engine = fake("packs=4")
    follows = unpacked(engine, DRAFTS)
    with Interrupts() as interrupts, launch(packed(engine, PACKS | DRAFTS), interrupts, no_repack=follows) as ready:
        assert ready.order == follows._replace(left_out=PACKS)
    assert packing_broke(state, "b1") and not recover.is_broken(state, "b1", "d")


def test_where_packing_was_not_to_blame_the_build_is_forgiven(fake, launch, state):
    """Killed by the same signal without packed weights too: the drafter is left out next, and it is what broke."""
    engine = fake("packs=11")
    still = packed(engine, DRAFTS)
    plain = Order(fake(), CONTRACT, PORT, {}, "m", build="b1")
    steps = {"no_repack": still, "drop_drafter": plain}
    with Interrupts() as interrupts, launch(packed(engine, PACKS | DRAFTS), interrupts, **steps) as ready:
        assert ready.order == plain._replace(left_out=PACKS | DRAFTS)
    assert not packing_broke(state, "b1") and recover.is_broken(state, "b1", "d")


def test_where_the_build_has_no_such_option_the_next_step_is_tried(fake, launch, state):
    plain = Order(fake(), CONTRACT, PORT, {}, "m", build="b1")
    with Interrupts() as interrupts, launch(packed(fake("packs=4"), PACKS | DRAFTS), interrupts, drop_drafter=plain):
        assert "trying again: drop-drafter" in launch.said[0]
    assert not packing_broke(state, "b1")


@pytest.mark.parametrize(("fault", "packs"), [("packs=4", False), ("packs=6", True), ("crash=9", True)])
def test_other_deaths_are_not_recovered_so(fake, launch, state, fault, packs):
    order = packed(fake(fault), PACKS if packs else {})
    with (
        Interrupts() as interrupts,
        pytest.raises(EngineFailed),
        launch(order, interrupts, no_repack=unpacked(fake(fault))),
    ):
        pytest.fail("it cannot be ready")
    assert not packing_broke(state, "b1")


def dead(ready):
    """Ask until it dies over the first token."""
    messages = [{"role": "user", "content": "one two"}]
    with pytest.raises(EngineFailed):
        list(complete(Call(ready.running.address, ready.running.key, messages, 5, 10)))


@SIGNALS
def test_a_death_with_the_first_token_is_remembered_and_answered(fake, launch, state, signal):
    engine = fake(f"packs-late={signal}")
    follows = unpacked(engine)
    with Interrupts() as interrupts, launch(packed(engine), interrupts, no_repack=follows) as ready:
        dead(ready)
        death = death_of(ready, launch.guide, state)
    assert "was ended by SIG" in str(death.failure)
    assert death.next_order == follows and death.said.startswith("trying again: no-repack, because")
    assert packing_broke(state, "b1")


def test_a_steady_engine_did_not_die_of_its_packing(fake, launch, state, rules):
    with Interrupts() as interrupts, launch(packed(fake("packs-late=11"), PACKS | DRAFTS), interrupts) as ready:
        ready.begun -= rules.steady
        dead(ready)
        assert death_of(ready, launch.guide, state).next_order is None
    assert not packing_broke(state, "b1") and recover.is_broken(state, "b1", "d")


def test_what_is_remembered_is_kept_by_build(state):
    recover.remember_broken(state, "b1", PACKED_WEIGHTS, "illegal-instruction")
    recover.remember_broken(state, "b2", PACKED_WEIGHTS, "segmentation-fault")
    recover.forgive(state, "b1", PACKED_WEIGHTS)
    recover.forgive(state, "b9", PACKED_WEIGHTS)
    assert [packing_broke(state, build) for build in ("b1", "b2", "b9")] == [False, True, False]


# --- the commands, with plans of their own ---


def finish(child):
    out, err = child.communicate(timeout=120)
    return child.returncode, out, err


@pytest.mark.parametrize("fault", ["packs=4", "packs=11", "packs-late=4", "packs-late=11"])
def test_run_answers_all_the_same_and_starts_unpacked_from_then_on(gezel, answering, model, fault):
    command = ("run", model, "one two", "--engine", answering(fault), "--set", "window=512")
    status, out, err = finish(gezel(*command))
    assert (status, out) == (0, "one two \n"), err
    assert err.count("\n") == 1 and "trying again: no-repack" in err
    assert finish(gezel(*command)) == (0, "one two \n", "")


def test_in_a_talk_the_first_prompt_is_asked_again(gezel, answering, model):
    ours, theirs = pty.openpty()
    command = ("run", model, "--engine", answering("packs-late=4"), "--set", "window=512")
    child = gezel(*command, stdin=theirs)
    os.close(theirs)
    os.write(ours, b"one two\nthree\n/bye\n")
    status, out, err = finish(child)
    os.close(ours)
    assert (status, out.replace("> ", "")) == (0, "one two \nthree \n"), err
    assert "trying again: no-repack" in err


def test_run_says_what_happened_when_the_operator_wants_it_packed(gezel, answering, model):
    asked = ("--set", "window=512", "--set", "repack=on")
    status, out, err = finish(gezel("run", model, "one two", "--engine", answering("packs-late=4"), *asked))
    assert (status, out) == (3, "") and "SIGILL" in err and "no-repack" not in err


def test_serve_starts_again_unpacked(gezel, answering, model):
    child = gezel("serve", model, "--json", "--engine", answering("packs-late=4"), "--set", "window=512")
    _post(json.loads(child.stdout.readline()), answers=False)
    _post(json.loads(child.stdout.readline()), answers=True)
    child.terminate()
    _, _, err = finish(child)
    assert "was ended by SIGILL" in err and "trying again: no-repack" in err and "starting again in 1 s" in err


def _post(shown, answers: bool) -> None:
    """Ask the served engine for a word; it answers, or dies over it."""
    key = Path(shown["key_file"]).read_text().strip()
    host, port = shown["url"].removeprefix("http://").split(":")
    pieces = complete(Call(Address(host, int(port)), key, [{"role": "user", "content": "one two"}], 5, 10))
    if answers:
        assert "".join(piece.text for piece in pieces) == "one two "
        return
    with pytest.raises(EngineFailed):
        list(pieces)
