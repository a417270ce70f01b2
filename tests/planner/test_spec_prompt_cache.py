"""What grows on the host while the engine serves, prompts and context checkpoints, is bounded where the RAM does not
hold all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from shipped import HOSTS, MODELS, plan
from worlds import World, card, shape

from gezel_rules.planner.plan import Plan

MIB = 1 << 20
ENGINE_MIB, ENGINE_CHECKPOINTS = 8192, 32
SMALL = """host: ram-{ram}
summary: A large card in a machine with little RAM.
os: linux
cpus: 16
ram: {{total: {ram} GiB, free: {free} GiB}}
engine: {{kind: llama-server, backend: cuda, version: 0.6.0}}
devices:
  - {{name: CUDA0, description: A card, kind: discrete, total: 81920 MiB, free: 81000 MiB}}
"""


@pytest.fixture
def small(tmp_path: Path):
    """A described host with so many GiB of RAM and a card that holds every weight."""

    def write(ram: int) -> str:
        (tmp_path / f"ram-{ram}.yaml").write_text(SMALL.format(ram=ram, free=ram - 2))
        return str(tmp_path / f"ram-{ram}")

    return write


def may_grow_by(made: Plan) -> int:
    """Bytes of RAM the engine may fill beside the launch, by its flags or its own bounds."""
    prompts, count = made.trace.value("prompt_cache.mib"), made.trace.value("checkpoints.count")
    one = made.trace.value("layout")["checkpoint_bytes"] * made.trace.value("slots.count")
    return (ENGINE_MIB if prompts is None else prompts) * MIB + one * (ENGINE_CHECKPOINTS if count is None else count)


def held(made: Plan) -> int:
    """Bytes of RAM the launch itself takes."""
    found = made.fit.estimate(made.trace)
    return found.pools[-1].total + found.output_bytes - found.lazy_bytes


def test_where_there_is_room_the_engine_is_left_alone() -> None:
    made = plan("qwen3-8b", "rtx-4090")
    assert made.trace.judgements["prompt_cache.mib"].winner.rule.id == "roomy"
    assert made.trace.judgements["checkpoints.count"].winner.rule.id == "none-made"
    assert "--cache-ram" not in made.argv


def test_where_there_is_little_half_of_it_may_hold_prompts() -> None:
    made = plan("qwen3-30b-a3b", "cpu-32g")
    left = made.trace.value("layout")["ram_left_bytes"]
    assert made.trace.judgements["prompt_cache.mib"].winner.rule.id == "tight"
    assert made.argv[made.argv.index("--cache-ram") + 1] == str(left // 2 // MIB)


def test_the_operators_own_bound_stands() -> None:
    made = plan("nemotron-3-nano-30b", "cpu-32g", ("extra_args=-cram 512 -ctxcp 3",))
    assert made.argv[-4:] == ["-cram", "512", "-ctxcp", "3"]
    assert "--cache-ram" not in made.argv
    assert "--ctx-checkpoints" not in made.argv
    made = plan("nemotron-3-nano-30b", "cpu-32g", ("cache_ram=0", "checkpoints=3"))
    assert made.argv[made.argv.index("--cache-ram") + 1] == "0"
    assert made.argv[made.argv.index("--ctx-checkpoints") + 1] == "3"


def test_a_16_gib_machine_with_gemma_4_and_a_long_window_gets_a_bound(small) -> None:
    """32 checkpoints of 200 MiB (25 sliding layers see 1,024 tokens of 8 KiB) and 8 GiB of prompts are 14.3 GiB."""
    made = plan("gemma-4-26b-a4b", small(16), ("window=262144", "slots=1"))
    assert made.trace.value("layout")["checkpoint_bytes"] == 25 * 1024 * 8192
    assert "--ctx-checkpoints" in made.argv
    assert "--cache-ram" in made.argv
    assert held(made) + may_grow_by(made) <= made.fit.inputs.ram.usable


@pytest.mark.parametrize("ram", [8, 12, 16, 24, 32, 48])
def test_no_model_outgrows_a_small_ram(small, ram: int) -> None:
    kept = set()
    for model in MODELS:
        made = plan(model, small(ram))
        if not made.refused:
            assert held(made) + may_grow_by(made) <= made.fit.inputs.ram.usable, model
            if made.trace.value("layout")["checkpoint_bytes"]:
                kept.add(model)
    assert {"gemma-3-4b", "falcon-h1-7b", "gpt-oss-20b", "qwen3-next-80b-a3b"} & kept or ram < 12
    assert "qwen3-8b" not in kept


@pytest.mark.parametrize("host", HOSTS)
def test_the_bound_and_the_launch_never_exceed_the_ram(host: str) -> None:
    for model in MODELS:
        made = plan(model, host)
        if not made.refused:
            assert held(made) + may_grow_by(made) <= made.fit.inputs.ram.usable, model


def test_a_full_size_sliding_cache_needs_no_checkpoints(small) -> None:
    made = plan("gemma-3-4b", small(16), ("swa_full=true",))
    assert made.trace.value("layout")["checkpoint_bytes"] == 0


def test_a_drafters_cache_is_copied_into_every_checkpoint(world: World) -> None:
    """Its cache is plain, and a plain cache knows no partial copy: all of the window, K and V of each layer in f16."""
    sliding = shape(arch="gemma3", metadata={"gemma3.attention.sliding_window": 1024})
    plain = shape(layers=2, kv_heads=2, head=64)
    world.entry("m", sliding)
    world.entry("drafted", sliding, tuning={"spec": {"type": "draft-simple"}}, draft={"id": "d"})
    world.entry("d", plain)
    world.install("d", model=plain)
    alone, drafted = (
        world.plan(name, "card", "window=8192", "slots=1")["layout"]["checkpoint_bytes"] for name in ("m", "drafted")
    )
    assert alone == 4 * 1024 * 2 * 2 * 64 * 2
    assert drafted - alone == 2 * 8192 * 2 * 2 * 64 * 2


def test_slots_multiply_checkpoints(world: World) -> None:
    world.entry("m", shape(arch="gemma3", kv_heads=4, layers=40, metadata={"gemma3.attention.sliding_window": 4096}))
    world.host("tight", [card()], ram=("10 GiB", "9 GiB"))
    counts = [world.plan("m", "tight", "window=8192", f"slots={n}")["checkpoints.count"] for n in (1, 2, 4)]
    assert counts[0] is None or counts[0] >= counts[1] > counts[2] > 0
