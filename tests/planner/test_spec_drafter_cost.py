"""Whether a catalog drafter is worth what it takes: precision, window, and the room there is now."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import GIB, LARGE, World, card, dflash, drafter, shape

PLAIN = shape()
BIG_DRAFT = shape(arch="dflash", layers=6, width=5120, ffn=17408, heads=40, kv_heads=2, head=128, vocab=1024)
DFLASH = {"tuning": {"spec": {"type": "draft-dflash"}}}


def big(world: World, **draft: Any) -> None:
    world.entry("big", shape(**LARGE), **drafter(header=BIG_DRAFT, **draft), **DFLASH)


def test_left_out_when_the_cache_would_be_another(world: World) -> None:
    big(world)
    world.host("other", [card(total="29 GiB")])
    launch = world.plan("big", "other")
    assert launch.rule("drafter.loads") == "other-cache"
    assert (launch["drafter.plan_with"]["kv_type"], launch["drafter.plan_without"]["kv_type"]) == ("q8_0", "f16")
    assert launch["kv.type"] == "f16"  # the plan made without it is the plan
    assert launch["window.tokens"] == launch["drafter.plan_without"]["window"]
    assert launch.arg("--spec-draft-model") is None
    assert launch.rule("note.drafting") == "too-dear"
    assert "GiB" in launch.because("drafter.loads")


def test_kept_where_neither_changes(world: World) -> None:
    big(world)
    launch = world.plan("big", world.host("roomy", [card(total="34 GiB")]))
    assert launch.rule("drafter.loads") == "affordable"
    assert launch["drafter.plan_with"]["window"] == launch["window.wanted"]
    assert launch.arg("--spec-draft-model").endswith("draft.gguf")
    assert launch.json["notes"] == []


def test_left_out_when_the_window_would_be_smaller(world: World) -> None:
    big(world)
    world.host("tight", [card(total="18 GiB")])
    launch = world.plan("big", "tight", "kv_type=f16")
    assert launch.rule("drafter.loads") == "smaller-window"
    assert launch["drafter.plan_with"]["window"] < launch["drafter.plan_without"]["window"]


def test_extra_slots_pay_for_the_drafter(world: World) -> None:
    """Two slots without it, one with it, same precision and window: it stays."""
    world.entry("m", PLAIN, **drafter(resident={"bytes": 20 * GIB, "sha256": "ab" * 32, "evidence": {
        "note": "measured", "measured": "2026-08-01"}}), **DFLASH)  # fmt: skip
    for size in [20.8 + step / 100 for step in range(40)]:
        name = world.host("card2", [card(total=f"{size:.2f} GiB")])
        launch = world.plan("m", name, "kv_type=f16")
        if launch["drafter.loads"] and launch["drafter.plan_with"]["slots"] == 1:
            assert launch["drafter.plan_without"]["slots"] == 2
            assert launch["slots.count"] == 1
            return
    pytest.fail("no card on which the slot pays")


def test_a_card_beside_a_desktop(world: World) -> None:
    """32 GiB of which a desktop holds 6.5: what is free now counts, not the card's total, or the drafter stays while
    the model it should speed up has no room."""
    model = {**LARGE, "layers": 135, "kv_heads": 2}  # about 23 GiB
    world.entry("27b", shape(**model), **drafter(header=BIG_DRAFT), **DFLASH)
    world.host("empty", [card(total="32607 MiB")])
    world.host("desktop", [card(total="32607 MiB", free="25951 MiB")])
    settings = ("window=8192", "slots=1")
    assert world.plan("27b", "empty", *settings)["drafter.loads"]
    launch = world.plan("27b", "desktop", *settings)
    assert launch.rule("drafter.loads") == "no-room-now"
    said = launch.because("drafter.loads")
    assert said.count("GiB") == 3  # the drafter's own, what all of it takes, what the card leaves now
    assert "now" in said
    assert launch["drafter.plan_with"]["resident_bytes"] > launch.plan.trace.facts["gpu.usable"].value
    assert launch["refusal"] is None
    assert launch["placement.mode"] == "resident"
    assert launch["window.tokens"] == 8192


def test_a_gpu_that_shares_the_ram_is_not_asked_what_it_leaves_now(world: World) -> None:
    model = {**LARGE, "layers": 135, "kv_heads": 2}
    world.entry("27b", shape(**model), **drafter(header=BIG_DRAFT), **DFLASH)
    world.host("mac", [card("MTL0", total="25951 MiB", kind="unified")], backend="metal")
    launch = world.plan("27b", "mac", "window=8192", "slots=1")
    assert launch.rule("drafter.loads") != "no-room-now"


def test_what_others_hold_counts_too(world: World) -> None:
    world.entry("m", shape(**LARGE), **drafter(header=BIG_DRAFT), **DFLASH)
    world.host("roomy", [card(total="32 GiB")])
    settings = ("window=4096", "slots=1")
    assert world.plan("m", "roomy", *settings)["drafter.loads"]
    assert not world.plan("m", "roomy", *settings, held={"CUDA0": 18 * GIB})["drafter.loads"]


def test_a_forced_drafter_is_not_weighed(world: World) -> None:
    big(world)
    world.host("tight", [card(total="18 GiB")])
    launch = world.plan("big", "tight", "spec_type=draft-dflash")
    assert launch["drafter.loads"]
    assert launch.rule("drafter.loads") == "operator-forced"


def test_the_measured_figure_counts_only_for_the_file_that_was_measured(world: World) -> None:
    resident = {"bytes": 3 * GIB, "sha256": "ab" * 32, "evidence": {"note": "at 8k", "measured": "2026-08-01"}}
    world.entry("m", PLAIN, **drafter(resident=resident), **DFLASH)
    assert world.plan("m")["drafter.resident"] == 3 * GIB  # what an install would bring
    held = world.install("m", model=PLAIN, draft=dflash())
    assert world.plan("m")["drafter.resident"] == 3 * GIB
    other = held.files["draft"]._replace(sha256="cd" * 32)
    world.shelf["m"] = held._replace(files={**held.files, "draft": other})
    assert world.plan("m")["drafter.resident"] == other.size


def test_the_context_of_a_head_in_a_file_of_its_own(world: World) -> None:
    """One layer's cache, in the window of the model; a head inside the model is in the model's own estimate."""
    head = shape(arch="qwen3", mtp=1)
    world.entry("m", PLAIN, **drafter(header=head))
    short, long = (world.plan("m", "card", f"window={w}") for w in (8192, 16384))
    assert short.arg("--spec-type") == "draft-mtp"
    row = 2 * (64 * 2) * 2  # (K, V) x row of the two KV heads x bytes of f16, one layer
    mask = 512 * 2  # tokens of a physical batch x bytes of f16
    assert long.plan.memory.account["beside_bytes"] - short.plan.memory.account["beside_bytes"] == (row + mask) * 8192
    world.entry("whole", head)
    assert world.plan("whole").plan.memory.account["beside_bytes"] == 0


def test_the_drafters_own_context_is_in_the_memory_plan(world: World) -> None:
    """Its cache has the window and slots of the model, in the engine's own precision."""
    world.entry("m", PLAIN, **drafter(header=dflash(layers=3)), **DFLASH)
    short, long = (world.plan("m", "card", f"window={w}", "slots=1") for w in (8192, 16384))
    row = 3 * 2 * (64 * 2) * 2  # layers x (K, V) x row of the two KV heads x bytes of f16
    grown = long.plan.memory.account["beside_bytes"] - short.plan.memory.account["beside_bytes"]
    assert grown >= row * 8192
    assert grown < row * 8192 * 2
    quantised = world.plan("m", "card", "window=8192", "slots=1", "kv_type=q8_0")
    assert quantised.plan.memory.account["beside_bytes"] == short.plan.memory.account["beside_bytes"]
