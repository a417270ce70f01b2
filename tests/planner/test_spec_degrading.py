"""After the GPU ran out of memory: what is left, on the memory that is free then, and never more than before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from worlds import GIB, World, card, shape

from gezel_rules.planner.plan import Plan, plan_degraded, plan_without

DENSE = {"layers": 16, "width": 2048, "ffn": 8192, "heads": 32, "kv_heads": 8, "head": 64, "vocab": 32000}
MOE = {**DENSE, "ffn": 1024, "experts": 32}


def gpu_bytes(plan: Plan) -> int:
    return sum(pool.used for pool in plan.memory.pools if pool.name != "host")


def steps_down(plan: Plan, held: dict[str, int] | None = None) -> list[Plan]:
    """What is tried one after the other, until nothing is left."""
    plans = [plan]
    while (after := plan_degraded(plans[-1], held)) is not None:
        plans.append(after)
    return plans


@pytest.mark.parametrize("made", [DENSE, MOE])
@pytest.mark.parametrize("room", [24, 80, 640])
def test_a_launch_smaller_than_its_card_is_retried_too(world: World, made: dict[str, Any], room: int) -> None:
    """The card said it had room, and had not: what the launch took is what is too much, not what the card said."""
    world.entry("m", shape(**made))
    plan = world.plan("m", world.host("huge", [card(total=f"{room} GiB", free=f"{room - 1} GiB")])).plan
    assert gpu_bytes(plan) < 12 * GIB
    plans = steps_down(plan)
    assert len(plans) >= 4
    sizes = [gpu_bytes(one) for one in plans]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == len(sizes)
    on_card = [one for one in plans if one.trace.value("gives.way") != "weights"]
    windows = [one.trace.value("window.tokens") for one in on_card]
    assert windows == sorted(windows, reverse=True)


def test_what_gives_way_is_what_policy_says_of_a_smaller_card(world: World) -> None:
    world.entry("moe", shape(**MOE))
    rows = list((plan := world.plan("moe").plan).trace.policies.tables["concessions"])
    taken = [rows.index(one.trace.value("gives.way")) for one in steps_down(plan)]
    assert taken == sorted(taken) and len(set(taken)) >= 3


def gpu(free: int) -> str:
    return f"  CUDA0: NVIDIA GeForce RTX 4090 (24564 MiB, {free} MiB free)"


@pytest.fixture
def here(world: World) -> Plan:
    """A model on this machine, whose engine lists a card that is nearly empty."""
    world.entry("m", shape(**DENSE))
    world.install("m", model=shape(**DENSE))
    return world.plan("m", None, engine=world.engine(gpu(24105))).plan


def test_each_retry_measures_free_memory_anew(world: World, here: Plan) -> None:
    """Another program took 21 GiB in the meantime: the card is not counted as it was."""
    world.engine(gpu(3000))
    after = plan_degraded(here, {})
    assert after is not None and gpu_bytes(after) <= (3000 - 768) << 20
    assert after.trace.facts["gpu.free"].value == 3000 << 20
    assert after.fit.share == 1  # what there is explains the failure; no step beyond it
    world.engine(gpu(2000))
    again = plan_degraded(after, {})
    assert again is not None and gpu_bytes(again) <= (2000 - 768) << 20


def test_what_others_reserved_in_the_meantime_counts(here: Plan) -> None:
    after = plan_degraded(here, {"CUDA0": 21 << 30})
    assert after is not None and gpu_bytes(after) <= (24564 - 768 - 21 * 1024) << 20


def test_what_ran_out_of_memory_does_not_grow_back(world: World, here: Plan) -> None:
    """Memory that comes free later is left alone, whatever else fails then."""
    world.engine(gpu(3000))
    after = plan_degraded(here, {})
    assert after is not None
    world.engine(gpu(24105))
    unpacked = plan_without(after, "packed weights", {})
    assert unpacked is None or gpu_bytes(unpacked) <= gpu_bytes(after)
    further = plan_degraded(after, {})
    assert further is not None and gpu_bytes(further) < gpu_bytes(after)


def test_a_driver_that_broke_changes_nothing(world: World, here: Plan) -> None:
    world.engine()
    after, as_before = plan_degraded(here, {}), plan_degraded(here)
    assert after is not None and as_before is not None and after.argv == as_before.argv
    Path(world.root / "llama-server").unlink()
    gone = plan_degraded(here, {})
    assert gone is not None and gone.argv == as_before.argv
