"""The precision of the KV cache: f16 unless something named is gained."""

from __future__ import annotations

import pytest
from worlds import LARGE, World, card, shape


def test_f16_where_it_holds_everything(world: World) -> None:
    world.entry("m")
    launch = world.plan("m")
    assert (launch["kv.type"], launch.rule("kv.type")) == ("f16", "finest-enough")
    assert launch.arg("--cache-type-k") == launch.arg("--cache-type-v") == "f16"


def test_coarser_when_that_keeps_the_window_or_a_slot(world: World) -> None:
    """Every named gain is real: what was turned down does not hold what was taken."""
    world.entry("large", shape(**LARGE))
    named = set()
    for size in range(16, 50):
        launch = world.plan("large", world.host("some", [card(total=f"{size} GiB")]))
        if launch["kv.type"] == "f16":
            continue
        named.add(launch.rule("kv.type"))
        forced = world.plan("large", "some", "kv_type=f16")
        gained = (launch["window.tokens"], launch["slots.count"])
        assert gained > (forced["window.tokens"], forced["slots.count"])
        evidence = next(d for d in launch.json["decisions"] if d["name"] == "kv.type")["evidence"]
        assert evidence == {"note": "A/B: no measurable fidelity cost of q8_0", "measured": "2026-08-03"}
    assert named == {"more-slots", "whole-window", "longer-window"}


def test_f16_when_nothing_is_gained(world: World) -> None:
    """A refusal stays at f16: a coarser cache would not save it."""
    world.entry("large", shape(**LARGE))
    launch = world.plan("large", world.host("tiny", [], backend="cpu", ram=("8 GiB", "7 GiB")))
    assert launch["refusal"] == "no-room"
    assert (launch["kv.type"], launch.rule("kv.type")) == ("f16", "nothing-is-enough")


@pytest.mark.parametrize("kv", ["f32", "bf16", "q5_1", "q4_0", "iq4_nl", "q8_0"])
def test_the_operators_type_wins(world: World, kv: str) -> None:
    world.entry("m", shape(arch="grok"))
    launch = world.plan("m", "card", f"kv_type={kv}")
    assert launch.arg("--cache-type-k") == launch.arg("--cache-type-v") == kv
    assert (launch.rule("kv.type"), launch.level("kv.type")) == ("operator", "operator")


def test_only_types_that_may_be_taken_unasked(world: World) -> None:
    world.entry("large", shape(**LARGE))
    launch = world.plan("large", world.host("some", [card(total="24 GiB")]))
    turned_down = dict(launch.explain.rejected(launch.plan.trace.judgements["kv.coarser"]))
    assert turned_down["not-automatic (bf16)"] == "bf16 is taken only when somebody asks for it"
    turned_down = dict(launch.explain.rejected(launch.plan.trace.judgements["gives.way"]))
    assert turned_down["finest-too-large (slots)"].startswith("1 × 65,536 tokens in f16 take")


EXCLUDED = [
    (shape(arch="grok", **LARGE), [], "excluded-architecture", "grok keeps a fine cache"),
    (shape(**LARGE), ["flash_attn=off"], "needs-flash-attention", "a quantised V cache needs flash attention"),
    (shape(**{**LARGE, "heads": 48, "head": 80}), [], "head-size", "heads of 80 and 80 do not divide"),
]


@pytest.mark.parametrize(("header", "settings", "rule", "words"), EXCLUDED)
def test_what_forbids_a_quantised_cache(world: World, header, settings, rule, words) -> None:
    world.entry("m", header)
    launch = world.plan("m", world.host("some", [card(total="20 GiB")]), *settings)
    assert launch["kv.type"] == "f16"
    turned_down = dict(launch.explain.rejected(launch.plan.trace.judgements["kv.coarser"]))
    assert words in turned_down[f"{rule} (q8_0)"]


def test_heads_nobody_knows_forbid_it_too(world: World) -> None:
    header = shape(**LARGE)
    heads = header["metadata"]["llama.attention.head_count"]
    del header["metadata"]["llama.attention.key_length"], header["metadata"]["llama.attention.value_length"]
    header["metadata"]["llama.attention.head_count"] = [heads] * LARGE["layers"]
    world.entry("m", header)
    launch = world.plan("m", world.host("some", [card(total="20 GiB")]))
    assert launch["kv.type"] == "f16"
    turned_down = dict(launch.explain.rejected(launch.plan.trace.judgements["kv.coarser"]))
    assert "does not tell how long a head is" in turned_down["head-size-unknown (q8_0)"]


def test_a_quantised_cache_without_flash_attention_is_refused(world: World) -> None:
    """The engine exits on it."""
    world.entry("m")
    launch = world.plan("m", "card", "kv_type=q8_0", "flash_attn=off")
    assert launch["refusal"] == "contradiction"
    assert launch.because("refusal") == (
        "kv_type q8_0 needs flash attention, and flash_attn is off: the engine would exit. Drop one of the two"
    )
    assert launch.json["refused"]["kind"] == "contradiction"


def test_a_quantised_cache_whose_rows_do_not_divide_is_refused(world: World) -> None:
    """The engine exits on it (llama.cpp 0.6.0-dev, heads of 80)."""
    world.entry("m", shape(heads=16, head=80))
    launch = world.plan("m", "card", "kv_type=q8_0")
    assert launch["refusal"] == "contradiction"
    assert launch.because("refusal").endswith("heads of 80 and 80 do not divide: the engine would exit. Take f16")


def test_flash_attention_is_the_operators_or_the_engines(world: World) -> None:
    world.entry("m")
    assert world.plan("m").arg("--flash-attn") == "auto"
    assert world.plan("m", "card", "flash_attn=on").arg("--flash-attn") == "on"


SLOW = [("q5_1", "cuda"), ("bf16", "rocm"), ("iq4_nl", "metal"), ("q4_1", "rocm"), ("q5_0", "cuda")]


def warned(launch) -> list[str]:
    return [line for line in launch.json["warnings"] if line.startswith("kv_type")]


@pytest.mark.parametrize(("kv", "backend"), SLOW)
def test_a_type_that_is_slow_on_the_backend_is_taken_when_asked_for_and_said(world: World, kv: str, backend: str):
    world.entry("m")
    world.host("here", [card()], backend=backend)
    launch = world.plan("m", "here", f"kv_type={kv}")
    assert launch.arg("--cache-type-k") == kv
    (said,) = warned(launch)
    assert said.startswith(f"kv_type {kv} is slow here: flash attention on ")


@pytest.mark.parametrize("kv", ["f16", "q8_0", "q4_0"])
def test_a_fast_type_is_not_warned_of(world: World, kv: str) -> None:
    world.entry("m")
    assert warned(world.plan("m", "card", f"kv_type={kv}")) == []


def test_nothing_is_slow_where_attention_runs_on_the_cpu_or_without_flash_attention(world: World) -> None:
    world.entry("m")
    world.host("bare", [], backend="cpu")
    assert warned(world.plan("m", "bare", "kv_type=q5_1")) == []
    assert warned(world.plan("m", "card", "kv_type=bf16", "flash_attn=off")) == []


@pytest.mark.parametrize("total", [14, 16, 18, 20, 22, 24])
def test_deepseek4_is_never_given_a_quantised_cache_unasked(world: World, total: int) -> None:
    """Public reports: it decodes 2.8 times slower from q8_0."""
    world.entry("m", shape(arch="deepseek4", **LARGE))
    world.host("some", [card(total=f"{total} GiB")])
    assert world.plan("m", "some")["kv.type"] == "f16"
    asked = world.plan("m", "some", "kv_type=q8_0")
    assert asked.arg("--cache-type-k") == "q8_0"
    assert warned(asked) == [
        "kv_type q8_0 does not suit deepseek4: it decodes 2.8 times slower from q8_0 than from f16, by public launch "
        "reports; f16 is what it gets unasked"
    ]
