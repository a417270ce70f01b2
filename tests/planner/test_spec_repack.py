"""Weights packed for the CPU: where that breaks the launch leaves them as they are, and memory is counted likewise."""

from __future__ import annotations

import pytest
from worlds import World, card, shape

from gezel_rules.engines.llama_cpp.parts import PACKED_WEIGHTS
from gezel_rules.errors import BadInput
from gezel_rules.planner.plan import plan_with, plan_without

LATENT = {f"deepseek2.attention.{key}_length_mla": 64 for key in ("key", "value")}
MLA = shape(arch="deepseek2", metadata={**LATENT, "deepseek2.attention.kv_lora_rank": 64})


def buffers(plan):
    """Bytes of weights on the CPU, by buffer."""
    return plan.fit.estimate(plan.trace).buffers


@pytest.fixture
def world(world: World) -> World:
    """CPU hosts of each processor, a plain model and one of latent attention."""
    for processor in ("plain", "avx2", "avx512", "amx", None):
        world.host(f"cpu-{processor}", [], backend="cpu", processor=processor)
    world.entry("plain")
    world.entry("latent", MLA)
    return world


@pytest.mark.parametrize(
    ("model", "processor", "rule", "unpacked", "used"),
    [
        ("latent", "amx", "aborts-on-amx", True, "plain"),
        ("latent", "avx512", "engines-own", False, "avx512"),
        ("latent", "avx2", "engines-own", False, "avx2"),
        ("latent", None, "engines-own", False, "avx2"),
        ("plain", "amx", "engines-own", False, "amx"),
        ("plain", "plain", "engines-own", False, "plain"),
    ],
)
def test_latent_attention_is_not_packed_for_amx(world, model, processor, rule, unpacked, used) -> None:
    made = world.plan(model, f"cpu-{processor}")
    assert made.rule("weights.unpacked") == rule
    assert ("--no-repack" in made.argv, made["processor.used"]) == (unpacked, used)
    assert buffers(made.plan)["AMX"] == 0 or used == "amx"


def test_without_its_latent_keys_the_same_architecture_is_packed(world) -> None:
    world.entry("full", shape(arch="deepseek2"))
    assert world.plan("full", "cpu-amx")["weights.unpacked"] is False


def test_compressed_streams_abort_too(world) -> None:
    streams = {"deepseek4.attention.sliding_window": 128}
    world.entry("streams", shape(arch="deepseek4", metadata=streams))
    assert world.plan("streams", "cpu-amx").rule("weights.unpacked") == "aborts-on-amx"


def test_the_reason_and_the_evidence_are_told(world) -> None:
    made = world.plan("latent", "cpu-amx")
    assert "attention of deepseek2: the engine aborts" in made.because("weights.unpacked")
    winner = made.plan.trace.judgements["weights.unpacked"].winner
    assert "ggml-backend.cpp:1434" in winner.rule.evidence["note"]


def test_memory_follows(world) -> None:
    packed = buffers(world.plan("plain", "cpu-amx").plan)
    unpacked = buffers(world.plan("plain", "cpu-amx", "repack=off").plan)
    assert packed["AMX"] > 0
    assert (unpacked["AMX"], unpacked["CPU_REPACK"]) == (0, 0)
    assert sum(unpacked.values()) < sum(packed.values())


@pytest.mark.parametrize(
    ("setting", "rule", "passed"),
    [
        ("repack=on", "operator", False),
        ("repack=off", "operator", True),
        ("extra_args=--no-repack", "operators-argument", True),
        ("extra_args=-nr", "operators-argument", True),
        ("extra_args=--repack", "operators-other-argument", False),
    ],
)
def test_the_operator_decides(world, setting, rule, passed) -> None:
    for model, host in (("latent", "cpu-amx"), ("plain", "cpu-avx2")):
        made = world.plan(model, host, setting)
        assert made.rule("weights.unpacked") == rule
        assert sum(word in ("--no-repack", "-nr") for word in made.argv) == passed
        assert (made["processor.used"] == "plain") == passed


def test_a_build_that_died_is_launched_unpacked_from_then_on(world) -> None:
    for host in ("cpu-amx", "cpu-avx2", "cpu-None"):
        made = world.plan("plain", host, unpacked=["0.6.0"])
        assert made.rule("weights.unpacked") == "broke-this-build"
        assert "--no-repack" in made.argv
        assert "--no-repack" not in world.plan("plain", host, unpacked=["0.5.9"]).argv
    assert "--no-repack" not in world.plan("plain", "cpu-avx2", "repack=on", unpacked=["0.6.0"]).argv


def test_a_build_without_the_option_does_without(world) -> None:
    world.host("old", [], backend="cpu", processor="amx", flags=["--ctx-size", "--model"])
    made = world.plan("latent", "old", unpacked=["0.6.0"])
    assert made.rule("weights.unpacked") == "no-such-option"
    assert "--no-repack" not in made.argv
    assert made["processor.used"] == "amx"


def test_beside_a_gpu_the_cpu_packs_nothing(world) -> None:
    world.host("both", [card()], processor="amx")
    made = world.plan("plain", "both", "n_gpu_layers=2")
    assert made.rule("processor.used") == "gpus-own-buffer"
    found = made.plan.fit.estimate(made.plan.trace)
    assert found.buffers["Host"] == found.pools[-1].model_bytes > 0
    assert not list(made.plan.fit.may_leave_out(made.plan.trace))


def test_a_processor_that_policy_does_not_know_is_named(world) -> None:
    world.host("typo", [], backend="cpu", processor="amxx")
    with pytest.raises(BadInput, match="unknown processor 'amxx'; did you mean 'amx'"):
        world.plan("plain", "typo")


# --- recovery ---


def test_recovery_leaves_the_weights_as_they_are(world) -> None:
    made = world.plan("plain", "cpu-avx2").plan
    assert list(made.fit.may_leave_out(made.trace))
    after = plan_without(made, PACKED_WEIGHTS)
    assert after is not None
    assert set(after.argv) - set(made.argv) == {"--no-repack"}
    assert not list(after.fit.may_leave_out(after.trace))
    assert buffers(after)["CPU_REPACK"] == 0 < buffers(made)["CPU_REPACK"]
    assert plan_without(after, PACKED_WEIGHTS) is None


def test_what_the_operator_pinned_is_not_recovered(world) -> None:
    made = world.plan("plain", "cpu-avx2", "repack=on").plan
    assert not list(made.fit.may_leave_out(made.trace))
    assert plan_without(made, PACKED_WEIGHTS) is None


def test_other_settings_are_counted_with_the_same_packing(world) -> None:
    made = world.plan("plain", "cpu-amx").plan
    assert buffers(plan_with(made, {"repack": False}))["AMX"] == 0
    assert buffers(plan_with(made, {"window": 4096})) == buffers(made)


def test_an_engine_that_says_nothing_is_no_reason_to_fail(world) -> None:
    engine = world.engine()
    made = world.plan("plain", None, engine=engine)
    assert made.rule("processor.used") == "assumed"
    assert "--no-repack" not in made.argv
