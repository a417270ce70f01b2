"""The drafter: whether it is for this backend, loads, is on disk, broke the build, and is worth what it takes."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import GIB, LARGE, World, card, dflash, draft_file, drafter, shape

HEAD = shape(arch="qwen3", mtp=1)
PLAIN = shape()
MTP_FILE = shape(arch="qwen3", layers=4, mtp=1)
NGRAM = {"type": "ngram-mod"}


def tuned(**spec: Any) -> dict[str, Any]:
    return {"tuning": {"spec": spec}}


def overlay(**spec: Any) -> dict[str, Any]:
    return {"by_backend": {"cuda": spec}}


# ---------------------------------------------------------------- does the sidecar load, does it apply

SIDECARS = [
    # header of the model, of the drafter, spec of the entry, operator, loads, rule of drafter.wanted
    (PLAIN, dflash(), {"type": "draft-dflash"}, None, True, "type-needs-it"),
    (HEAD, dflash(), {"type": "draft-dflash"}, None, True, "type-needs-it"),
    (PLAIN, dflash(), {}, "draft-dflash", True, "type-needs-it"),
    (PLAIN, dflash(), NGRAM, None, False, "other-type-chosen"),
    (PLAIN, MTP_FILE, {}, None, True, "companion"),
    (PLAIN, MTP_FILE, {"type": "draft-mtp"}, None, True, "companion"),
    (HEAD, MTP_FILE, {}, None, False, "own-head"),
    (HEAD, dflash(), {}, None, False, "own-head"),
    (PLAIN, MTP_FILE, {**overlay(n_max=3)}, None, False, "per-backend-table"),
    (PLAIN, MTP_FILE, {"by_backend": {"vulkan": {"n_max": 3}}}, None, False, "per-backend-table"),
    (PLAIN, MTP_FILE, {"type": "none"}, None, False, "explicit-none"),
    (PLAIN, MTP_FILE, {}, "none", False, "explicit-none"),
    (PLAIN, dflash(), {}, None, False, "no-use"),
]


@pytest.mark.parametrize(("header", "draft", "spec", "operator", "loads", "rule"), SIDECARS)
def test_does_the_sidecar_load(world: World, header, draft, spec, operator, loads, rule) -> None:
    world.entry("m", header, **drafter(header=draft), **(tuned(**spec) if spec else {}))
    launch = world.plan("m", "card", *([f"spec_type={operator}"] if operator else []))
    assert (launch["drafter.wanted"], launch.rule("drafter.wanted")) == (loads, rule)
    assert launch["drafter.loads"] is loads
    assert ("--spec-draft-model" in launch.argv) is loads


def test_a_combined_file_gets_no_draft_model_even_with_a_drafter_beside_it(world: World) -> None:
    world.entry("m", HEAD, **drafter())
    world.install("m", model=HEAD, draft=dflash())
    for settings in ([], ["spec_type=draft-mtp"]):
        launch = world.plan("m", "card", *settings)
        assert launch.arg("--spec-type") == "draft-mtp"
        assert "--spec-draft-model" not in launch.argv
        assert launch.rule("drafter.path") == "own-head"


BACKENDS = [
    (None, "cuda", True, "every-backend"),
    (["cuda"], "cuda", True, "listed"),
    (["cuda", "rocm"], "rocm", True, "listed"),
    (["cuda"], "vulkan", False, "other-backend"),
    (["cuda"], "cpu", False, "other-backend"),
]


@pytest.mark.parametrize(("limited", "backend", "applies", "rule"), BACKENDS)
def test_does_the_drafter_apply_to_this_backend(world: World, limited, backend, applies, rule) -> None:
    more = {"backends": limited} if limited else {}
    world.entry("m", PLAIN, **drafter(**more), **tuned(type="draft-dflash"))
    world.host("there", [] if backend == "cpu" else [card()], backend=backend)
    launch = world.plan("m", "there")
    assert (launch["drafter.applies"], launch.rule("drafter.applies")) == (applies, rule)
    assert ("--spec-draft-model" in launch.argv) is applies


def test_an_unknown_backend_is_not_a_listed_one(world: World) -> None:
    """No engine at all: nobody knows what it computes on."""
    world.entry("m", PLAIN, **drafter(backends=["cuda"]), **tuned(type="draft-dflash"))
    launch = world.plan("m", None)
    assert launch.rule("drafter.applies") == "unknown-backend"
    assert "the backend of this build is unknown" in launch.because("drafter.applies")
    assert "--spec-draft-model" not in launch.argv


# ---------------------------------------------------------------- on disk or not


def test_a_catalog_draft_that_is_not_on_disk_yet(world: World) -> None:
    """The entry changed under an installed model; the drafter comes when the person updates it."""
    world.entry("m", PLAIN, **drafter(), **tuned(**NGRAM, **overlay(type="draft-dflash", n_max=15)))
    world.install("m", model=PLAIN)
    launch = world.plan("m")
    assert launch.arg("--spec-type") == "ngram-mod"
    assert launch.arg("--spec-draft-n-max") is None  # tuned for the drafter
    assert launch.json["notes"] == [launch.because("note.drafting")]
    assert "draft.gguf is not installed" in launch.json["notes"][0]
    world.install("m", model=PLAIN, draft=dflash())
    launch = world.plan("m")
    assert launch.arg("--spec-type") == "draft-dflash"
    assert launch.arg("--spec-draft-model") == str(world.store / "m" / "draft.gguf")
    assert launch.json["notes"] == []


def test_a_draft_that_is_another_entry(world: World) -> None:
    world.entry("small", PLAIN)
    world.entry("m", shape(layers=8), draft={"id": "small"}, **tuned(type="draft-simple"))
    world.install("m", model=shape(layers=8))
    assert world.plan("m").arg("--spec-type") == "none"
    world.install("small", model=PLAIN)
    launch = world.plan("m")
    assert launch.arg("--spec-draft-model") == str(world.store / "small" / "model.gguf")
    assert launch.arg("--spec-type") == "draft-simple"


def test_a_drafter_that_broke_this_build(world: World) -> None:
    world.entry("m", PLAIN, **drafter(), **tuned(type="draft-dflash"))
    broke = [("0.6.0", "draft.gguf")]
    launch = world.plan("m", broke=broke)
    assert launch.rule("drafter.wanted") == "broke-this-build"
    assert launch.arg("--spec-type") == "none"
    assert "made this engine build fail" in launch.json["notes"][0]
    world.host("newer", [card()], version="0.6.1")
    assert world.plan("m", "newer", broke=broke).arg("--spec-type") == "draft-dflash"
    assert world.plan("m", "card", "spec_type=draft-dflash", broke=broke)["drafter.loads"]  # forced: theirs


# ---------------------------------------------------------------- types a build does not list

CARD = "  CUDA0: A card (24576 MiB, 24000 MiB free)"
UNLISTED = [
    # header, entry, words missing from --help, type, rule of spec.type
    (PLAIN, {**drafter(), **tuned(type="draft-dflash")}, ["draft-dflash"], "none", "not-in-this-build"),
    (PLAIN, {**drafter(), **tuned(type="draft-dflash")}, ["draft-eagle3"], "draft-dflash", "as-wanted"),
    (PLAIN, tuned(**NGRAM, **overlay(type="ngram-cache")), ["ngram-cache"], "ngram-mod", "not-in-this-build"),
    (HEAD, {}, ["draft-mtp"], "none", "not-in-this-build"),
    (HEAD, {}, [], "draft-mtp", "as-wanted"),
]


@pytest.mark.parametrize(("header", "entry", "missing", "type_", "rule"), UNLISTED)
def test_a_type_that_this_build_does_not_list_is_not_run(world: World, header, entry, missing, type_, rule) -> None:
    world.entry("m", header, **entry)
    launch = world.plan("m", None, engine=world.engine(CARD, unlisted=missing))
    assert (launch.arg("--spec-type"), launch.rule("spec.type")) == (type_, rule)
    assert ("--spec-draft-model" in launch.argv) is (type_ == "draft-dflash")


def test_a_forced_type_that_this_build_does_not_list_is_warned_of(world: World) -> None:
    world.entry("m", PLAIN)
    launch = world.plan("m", None, "spec_type=ngram-mod", engine=world.engine(CARD, unlisted=["ngram-mod"]))
    assert launch.arg("--spec-type") == "ngram-mod"
    assert "which this build's --help does not list" in launch.json["warnings"][0]


# ---------------------------------------------------------------- what the drafter costs

BIG_DRAFT = shape(arch="dflash", layers=6, width=5120, ffn=17408, heads=40, kv_heads=2, head=128, vocab=1024)
DFLASH = tuned(type="draft-dflash")


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


def test_the_drafters_own_context_is_in_the_memory_plan(world: World) -> None:
    """Its cache has the window and slots of the model, in the engine's own precision."""
    world.entry("m", PLAIN, **drafter(header=dflash(layers=3)), **DFLASH)
    short, long = (world.plan("m", "card", f"window={w}", "slots=1") for w in (8192, 16384))
    row = 3 * 2 * (64 * 2) * 2  # layers x (K, V) x row of the two KV heads x bytes of f16
    grown = long.plan.beside - short.plan.beside
    assert grown >= row * 8192
    assert grown < row * 8192 * 2
    quantised = world.plan("m", "card", "window=8192", "slots=1", "kv_type=q8_0")
    assert quantised.plan.beside == short.plan.beside


# ---------------------------------------------------------------- slots under MTP


def test_mtp_limits_the_engine_to_one_slot_unless_the_operator_says_otherwise(world: World) -> None:
    world.entry("m", HEAD, tuning={"slots": 4})
    launch = world.plan("m")
    assert launch.arg("--parallel") == "1"
    assert launch.rule("slots.wanted") == "one-slot-type"
    assert world.plan("m", "card", "slots=3").arg("--parallel") == "3"
    assert world.plan("m", "card", "spec_type=none").arg("--parallel") == "4"


def test_a_file_of_an_unused_draft_is_named_and_not_loaded(world: World) -> None:
    world.entry("m", HEAD, files=[draft_file()], draft={"file": "draft.gguf", "header": dflash()})
    files = {file["role"]: file for file in world.plan("m").json["files"]}
    assert files["draft"]["loads"] is False
    assert files["model"]["loads"] is True
