"""The window and the slots: who asks, what fits, what pays."""

from __future__ import annotations

import pytest
from worlds import LARGE, MOE, World, card, shape

HEAD = shape(arch="qwen3", mtp=1)


# ---------------------------------------------------------------- who asks for the window


def test_every_level(world: World) -> None:
    """Environment over --set over the model's section over the machine's settings over the catalog over the default."""
    world.entry("m", tuning={"window": 20000})
    world.entry("untuned")
    machine = {"settings": {"window": 30000}}
    site = {**machine, "models": {"m": {"window": 40000}}}
    env = {"GEZEL_WINDOW": "60k"}
    cases = [
        (world.plan("untuned"), 65536, "default", "policy"),
        (world.plan("m"), 20000, "catalog", "catalog"),
        (world.plan("m", site=machine), 30000, "operator", "machine"),
        (world.plan("m", site=site), 40000, "operator", "operator"),
        (world.plan("m", "card", "window=50000", site=site), 50000, "operator", "operator"),
        (world.plan("m", "card", "window=50000", site=site, environ=env), 61440, "operator", "environment"),
    ]
    for launch, window, rule, level in cases:
        assert launch["window.tokens"] == window
        assert (launch.rule("window.wanted"), launch.level("window.wanted")) == (rule, level)
        assert launch.arg("--ctx-size") == str(window * launch["slots.count"])


def test_what_was_beaten_is_named(world: World) -> None:
    world.entry("m", tuning={"window": 20000})
    launch = world.plan("m", site={"settings": {"window": 30000}}, environ={"GEZEL_WINDOW": "60k"})
    fact = launch.plan.trace.facts["settings.window"]
    assert fact.source == "environment GEZEL_WINDOW"
    assert fact.beaten == (("machine", 30000, "site site.yaml:3"),) or fact.beaten[0][:2] == ("machine", 30000)
    assert launch.beaten("window.wanted")["catalog"] == "would fire too, but 'operator' comes first"


TRAINED = [
    # trained for, catalog, settings, window, rule
    (8192, None, [], 8192, "trained"),
    (8192, 32768, [], 8192, "catalog-above-trained"),
    (8192, None, ["window=32768"], 8192, "operator-above-trained"),
    (8192, None, ["window=4096"], 4096, "operator"),
    (8192, None, ["window=32768", "beyond_trained=on"], 32768, "operator-beyond-trained"),
    (8192, 32768, ["beyond_trained=on"], 8192, "catalog-above-trained"),  # nobody asked for more
    (131072, None, [], 65536, "default"),
]


@pytest.mark.parametrize(("trained", "catalog", "settings", "window", "rule"), TRAINED)
def test_never_above_the_trained_length_unless_asked(world: World, trained, catalog, settings, window, rule) -> None:
    world.entry("m", shape(trained=trained), **({"tuning": {"window": catalog}} if catalog else {}))
    launch = world.plan("m", "card", *settings)
    assert (launch["window.tokens"], launch.rule("window.wanted")) == (window, rule)


# ---------------------------------------------------------------- what fits


def test_capped_with_what_would_have_been_needed(world: World) -> None:
    world.entry("large", shape(**LARGE))
    launch = world.plan("large", world.host("tight", [card(total="15 GiB")]))
    floor = launch.plan.trace.policies.tables["windows"]["floor"]["tokens"]
    assert floor <= launch["window.tokens"] < launch["window.wanted"]
    assert launch.rule("window.tokens") == "capped"
    assert "65,536 tokens would need" in launch.because("window.tokens")
    assert "GiB" in launch.because("window.tokens")
    assert launch["window.tokens"] % 256 == 0
    larger = world.plan("large", "tight", f"window={launch['window.tokens'] + 256}", "n_gpu_layers=65", "slots=1",
                        f"kv_type={launch['kv.type']}")  # fmt: skip
    assert larger.arg("--override-tensor") is not None  # no more would fit but for weights that leave


def test_never_below_the_floor(world: World) -> None:
    world.entry("moe", shape(**MOE))
    launch = world.plan("moe", world.host("tiny", [], backend="cpu", ram=("18 GiB", "16 GiB")))
    assert launch["window.tokens"] == 4096
    assert launch.rule("window.tokens") == "floor"
    assert "65,536 tokens would need" in launch.because("window.tokens")
    assert launch["refusal"] == "no-room"


def test_a_window_below_the_floor_is_its_own_floor(world: World) -> None:
    world.entry("m")
    launch = world.plan("m", "card", "window=512")
    assert launch["window.tokens"] == launch["window.floor"] == 512


# ---------------------------------------------------------------- slots

SLOTS = [
    # catalog, settings, host, slots, rule of slots.wanted
    (None, [], "card", 2, "gpu"),
    (None, [], "bare", 1, "cpu"),
    (3, [], "card", 3, "catalog"),
    (3, [], "bare", 3, "catalog"),
    (3, ["slots=5"], "card", 5, "operator"),
]


@pytest.mark.parametrize(("catalog", "settings", "host", "slots", "rule"), SLOTS)
def test_who_asks_for_slots(world: World, catalog, settings, host, slots, rule) -> None:
    world.entry("m", **({"tuning": {"slots": catalog}} if catalog else {}))
    world.host("bare", [], backend="cpu")
    launch = world.plan("m", host, *settings)
    assert (launch.rule("slots.wanted"), launch["slots.count"]) == (rule, slots)
    assert launch.arg("--parallel") == str(slots)


def test_slots_come_from_the_budget(world: World) -> None:
    world.entry("large", shape(**LARGE), tuning={"slots": 6})
    counts = []
    for size in (20, 24, 32, 48, 80):
        launch = world.plan("large", world.host("some", [card(total=f"{size} GiB")]))
        counts.append(launch["slots.count"])
        assert launch["refusal"] is None
        assert launch["placement.mode"] == "resident"
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] > 1


def test_slots_are_shed_before_weights_leave_the_gpu(world: World) -> None:
    """From a roomy card to a small one: first the slots go to one, only then does the first weight leave."""
    world.entry("moe", shape(**MOE), tuning={"slots": 4})
    seen = []
    for size in range(44, 8, -2):
        launch = world.plan("moe", world.host("some", [card(total=f"{size} GiB")]))
        seen.append((launch["placement.mode"], launch["slots.count"]))
    modes = [mode for mode, _ in seen]
    assert list(dict.fromkeys(modes)) == ["resident", "few-experts", "experts"]
    assert modes == sorted(modes, key=["resident", "few-experts", "experts"].index)
    assert seen[0] == ("resident", 4)
    assert seen[modes.index("few-experts") - 1] == ("resident", 1)
    assert {slots for mode, slots in seen if mode != "resident"} == {1}
