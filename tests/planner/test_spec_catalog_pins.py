"""What a catalog entry pins beside window and slots: KV type, full-size sliding cache, batch and threads. The operator
comes before it, policy's default behind it, and memory is counted with what is pinned."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import LARGE, World, card, shape

SLIDING = shape(arch="gemma3", trained=131072, metadata={"gemma3.attention.sliding_window": 1024})
PINS = [
    ("kv_type", "q4_0", "q8_0", "--cache-type-k", "kv.type"),
    ("ubatch", 256, 1024, "--ubatch-size", "batch.ubatch"),
    ("threads", 3, 7, "--threads", "threads.count"),
]


@pytest.mark.parametrize(("name", "pinned", "own", "flag", "decision"), PINS)
def test_the_catalogs_pin_beats_the_default_and_the_operator_beats_the_pin(
    world: World, name: str, pinned: Any, own: Any, flag: str, decision: str
) -> None:
    world.entry("m", tuning={name: pinned})
    launch = world.plan("m")
    assert (launch.arg(flag), launch.rule(decision), launch.level(decision)) == (str(pinned), "catalog", "catalog")
    assert launch.level(f"flag.{flag[2:]}") == "catalog"
    assert "operator" in launch.beaten(decision)
    for said in ({}, {"environ": {f"GEZEL_{name.upper()}": str(own)}}, {"site": {"settings": {name: own}}}):
        other = world.plan("m", "card", *(() if said else (f"{name}={own}",)), **said)
        assert other.arg(flag) == str(own)
        assert other.beaten(decision)["catalog"]


def test_a_pinned_full_size_cache_is_passed_and_counted(world: World) -> None:
    world.entry("plain", SLIDING)
    world.entry("full", SLIDING, tuning={"swa_full": True})
    plain, full = world.plan("plain"), world.plan("full")
    assert "--swa-full" not in plain.argv
    assert "--swa-full" in full.argv
    assert full.level("kv.swa_full") == "catalog"
    asked = world.plan("plain", "card", "swa_full=true")
    assert full.plan.memory.account["kv"] == asked.plan.memory.account["kv"] != plain.plan.memory.account["kv"]
    dropped = world.plan("full", "card", "swa_full=false")
    assert "--swa-full" not in dropped.argv
    assert dropped.plan.memory.account["kv"] == plain.plan.memory.account["kv"]


def test_a_pinned_batch_is_counted(world: World) -> None:
    world.entry("plain", shape(**LARGE))
    world.entry("wide", shape(**LARGE), tuning={"ubatch": 2048})
    kwargs = "window=8192", "slots=1"
    plain, wide = world.plan("plain", "card", *kwargs), world.plan("wide", "card", *kwargs)
    asked = world.plan("plain", "card", *kwargs, "ubatch=2048")
    sizes = [launch.plan.memory.account["compute_bytes"] for launch in (plain, wide, asked)]
    assert sizes[1] == sizes[2] > 3 * sizes[0]


def test_a_pinned_type_the_engine_would_die_of_is_not_passed(world: World) -> None:
    """A quantised V needs flash attention, and rows of 32 values: the catalog's word stands down, and it is said."""
    world.entry("m", tuning={"kv_type": "q8_0"})
    off = world.plan("m", "card", "flash_attn=off")
    assert (off["kv.type"], off["refusal"]) == ("f16", None)
    assert "needs flash attention" in off.because("kv.pinned")
    world.entry("odd", shape(heads=16, head=80), tuning={"kv_type": "q8_0"})
    odd = world.plan("odd")
    assert odd["kv.type"] == "f16"
    assert "heads of 80 and 80 do not divide" in odd.because("kv.pinned")


def test_a_pinned_type_that_is_slow_here_is_warned_of(world: World) -> None:
    world.entry("m", tuning={"kv_type": "q5_1"})
    assert any("kv_type q5_1 is slow here" in line for line in world.plan("m").json["warnings"])


def test_pinned_threads_are_no_more_than_the_machine_has_and_give_way_to_a_thread_pool(world: World) -> None:
    world.entry("m", tuning={"threads": 12})
    world.host("few", [card()], cpus=6)
    assert world.plan("m", "few").arg("--threads") == "6"
    assert world.plan("m", "few", "extra_args=--cpu-mask ff").arg("--threads") is None
    world.host("bare", [], backend="cpu")
    assert world.plan("m", "bare").arg("--threads") == "12"
