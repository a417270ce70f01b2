"""Which algorithm drafts and what it is given, rule by rule; never one that the engine would die of."""

from __future__ import annotations

from typing import Any

import pytest
from gguf_files import write_gguf
from worlds import World, dflash, drafter, shape

HEAD = shape(arch="qwen3", mtp=1)
PLAIN = shape()
MTP_FILE = shape(arch="qwen3", layers=4, mtp=1)
NGRAM = {"type": "ngram-mod"}


def tuned(**spec: Any) -> dict[str, Any]:
    return {"tuning": {"spec": spec}}


def overlay(**spec: Any) -> dict[str, Any]:
    return {"by_backend": {"cuda": spec}}


# ---------------------------------------------------------------- who chooses the type

CHOICES = [
    # header, spec of the entry, operator, type, rule of spec.wanted, level
    (PLAIN, {}, None, "none", "none", "policy"),
    (HEAD, {}, None, "draft-mtp", "mtp-head", "gguf"),
    (HEAD, NGRAM, None, "ngram-mod", "catalog", "catalog"),
    (HEAD, {**NGRAM, **overlay(type="ngram-cache")}, None, "ngram-cache", "catalog-overlay", "catalog"),
    (HEAD, {**NGRAM, "by_backend": {"vulkan": {"type": "ngram-cache"}}}, None, "ngram-mod", "catalog", "catalog"),
    (HEAD, {**NGRAM, **overlay(type="ngram-cache")}, "ngram-simple", "ngram-simple", "operator", "operator"),
    (PLAIN, NGRAM, "draft-mtp", "draft-mtp", "operator", "operator"),
    # an explicit none wins over everything below it
    (HEAD, {"type": "none"}, None, "none", "catalog", "catalog"),
    (HEAD, {**NGRAM, **overlay(type="none")}, None, "none", "catalog-overlay", "catalog"),
    (HEAD, {"type": "none", **overlay(type="ngram-mod")}, None, "ngram-mod", "catalog-overlay", "catalog"),
    (HEAD, NGRAM, "none", "none", "operator", "operator"),
]


@pytest.mark.parametrize(("header", "spec", "operator", "type_", "rule", "level"), CHOICES)
def test_the_type(world: World, header, spec, operator, type_, rule, level) -> None:
    world.entry("m", header, **(tuned(**spec) if spec else {}))
    launch = world.plan("m", "card", *([f"spec_type={operator}"] if operator else []))
    assert launch.arg("--spec-type") == type_
    assert (launch.rule("spec.wanted"), launch.level("spec.wanted")) == (rule, level)


def test_every_level_of_the_operator(world: World) -> None:
    """Environment over --set over the model's section of the site file over the machine's settings."""
    world.entry("m", HEAD)
    site = {"settings": {"spec_type": "ngram-mod"}, "models": {"m": {"spec_type": "ngram-cache"}}}
    machine = {"settings": {"spec_type": "ngram-mod"}}
    env = {"GEZEL_SPEC_TYPE": "none"}
    cases = [
        (world.plan("m", site=machine), "ngram-mod", "machine"),
        (world.plan("m", site=site), "ngram-cache", "operator"),
        (world.plan("m", "card", "spec_type=ngram-simple", site=site), "ngram-simple", "operator"),
        (world.plan("m", "card", "spec_type=ngram-simple", site=site, environ=env), "none", "environment"),
    ]
    for launch, type_, level in cases:
        assert (launch.arg("--spec-type"), launch.level("spec.type")) == (type_, level)


def test_the_levels_it_beat_are_named(world: World) -> None:
    world.entry("m", HEAD, **tuned(**NGRAM))
    site = {"settings": {"spec_type": "ngram-cache"}}
    launch = world.plan("m", site=site, environ={"GEZEL_SPEC_TYPE": "none"})
    assert launch.plan.trace.facts["settings.spec_type"].beaten[0][:2] == ("machine", "ngram-cache")
    assert launch.beaten("spec.wanted")["catalog"] == "would fire too, but 'operator' comes first"
    assert launch.beaten("spec.wanted")["mtp-head"] == "would fire too, but 'operator' comes first"


def test_the_evidence_for_the_default_is_quoted(world: World) -> None:
    world.entry("m", HEAD)
    said = next(d for d in world.plan("m").json["decisions"] if d["name"] == "spec.wanted")
    assert "+12.7 / +4.1 / +15.6 / +19.3 %" in said["evidence"]["note"]
    assert "+1.35 GB" in said["evidence"]["note"]


def test_a_key_without_its_tensors_is_no_head(world: World) -> None:
    world.entry("m", shape(arch="qwen3", mtp=1, mtp_tensors=False))
    assert world.plan("m").arg("--spec-type") == "none"


# ---------------------------------------------------------------- safety

ENDANGERED = [
    # entry, type it falls back to, rule
    ({"header": PLAIN, **tuned(type="draft-mtp")}, "none", "mtp-without-head"),
    ({"header": PLAIN, **tuned(type="draft-dflash")}, "none", "drafter-left-out"),
    ({"header": PLAIN, **tuned(type="draft-simple")}, "none", "drafter-left-out"),
    ({"header": PLAIN, **tuned(type="draft-eagle3")}, "none", "drafter-left-out"),
    ({"header": PLAIN, **tuned(type="draft-dspark")}, "none", "drafter-left-out"),
    ({"header": PLAIN, **tuned(**NGRAM, **overlay(type="draft-dflash"))}, "ngram-mod", "drafter-left-out"),
    ({"header": PLAIN, **tuned(type="none", **overlay(type="draft-dflash"))}, "none", "drafter-left-out"),
    ({"header": HEAD, **tuned(type="draft-mtp", **overlay(type="draft-dflash"))}, "draft-mtp", "drafter-left-out"),
    ({"header": PLAIN, **tuned(type="draft-mtp", **overlay(type="draft-dflash"))}, "none", "drafter-left-out"),
    ({"header": PLAIN, **tuned(type="draft-simple", **overlay(type="draft-dflash"))}, "none", "drafter-left-out"),
    # without the catalog's tuning, what the header shows counts
    ({"header": HEAD, **tuned(**overlay(type="draft-dflash"))}, "draft-mtp", "drafter-left-out"),
    ({"header": HEAD, **tuned(type="none", **overlay(type="draft-dflash"))}, "none", "drafter-left-out"),
]


@pytest.mark.parametrize(("entry", "type_", "rule"), ENDANGERED)
def test_what_the_engine_would_die_of_is_never_built_from_the_catalog(world: World, entry, type_, rule) -> None:
    world.entry("m", **entry)
    launch = world.plan("m")
    assert launch.arg("--spec-type") == type_
    assert launch.rule("spec.type") == rule
    assert "--spec-draft-model" not in launch.argv
    assert launch.json["notes"]  # said at info level


def test_a_left_out_companion_does_not_turn_mtp_on(world: World) -> None:
    """The head would be in the companion; this build is not one it is for."""
    world.entry("m", PLAIN, **drafter(header=MTP_FILE, backends=["vulkan"]), **tuned(type="draft-mtp"))
    launch = world.plan("m")
    assert not launch["mtp.available"]
    assert launch.arg("--spec-type") == "none"


def test_a_loaded_companion_brings_the_head(world: World) -> None:
    world.entry("m", PLAIN, **drafter(header=MTP_FILE))
    launch = world.plan("m")
    assert launch.rule("mtp.available") == "companion"
    assert launch.arg("--spec-type") == "draft-mtp"
    assert launch.arg("--spec-draft-model").endswith("/draft.gguf")
    assert launch.arg("--parallel") == "1"


def test_a_companion_of_an_architecture_that_is_a_head_by_itself(world: World) -> None:
    world.entry("m", PLAIN, **drafter(header=shape(arch="gemma4-assistant")))
    assert world.plan("m").arg("--spec-type") == "draft-mtp"


def test_a_companion_without_a_head_is_no_use_to_mtp(world: World) -> None:
    world.entry("m", PLAIN, **drafter(), **tuned(type="draft-mtp"))
    launch = world.plan("m")
    assert not launch["drafter.loads"]
    assert launch.plan.memory.account["beside_bytes"] == 0
    assert launch.arg("--spec-type") == "none"


# ---------------------------------------------------------------- forced by the operator


def test_a_forced_type_without_its_draft_is_left_alone_with_a_warning(world: World) -> None:
    world.entry("m", PLAIN)
    launch = world.plan("m", "card", "spec_type=draft-dflash")
    assert launch.arg("--spec-type") == "draft-dflash"
    assert launch.json["warnings"] == [launch.because("warn.drafting")]
    assert "may fail" in launch.json["warnings"][0]


def test_forced_mtp_without_a_head_is_left_alone_with_a_warning(world: World) -> None:
    world.entry("m", PLAIN)
    launch = world.plan("m", "card", "spec_type=draft-mtp")
    assert launch.arg("--spec-type") == "draft-mtp"
    assert "neither the model nor a drafter this launch loads has an MTP head" in launch.json["warnings"][0]


@pytest.mark.parametrize("type_", ["ngram-mod", "none"])
def test_a_forced_type_that_needs_nothing_warns_of_nothing(world: World, type_: str) -> None:
    world.entry("m", PLAIN)
    assert world.plan("m", "card", f"spec_type={type_}").json["warnings"] == []


def test_forced_over_a_catalog_none_loads_the_companion(world: World) -> None:
    world.entry("m", PLAIN, **drafter(header=MTP_FILE), **tuned(type="none"))
    assert world.plan("m").arg("--spec-type") == "none"
    launch = world.plan("m", "card", "spec_type=draft-mtp")
    assert launch.arg("--spec-draft-model").endswith("/draft.gguf")
    assert launch.json["warnings"] == []


# ---------------------------------------------------------------- the operator's own draft model


def test_the_operators_own_draft_model(world: World, tmp_path) -> None:
    """It stands in for the catalog's, its bytes and its context count, and the catalog's type finds its drafter."""
    path = tmp_path / "mine.gguf"
    write_gguf(path, dflash())
    world.entry("m", PLAIN, **drafter(), **tuned(type="draft-dflash", n_max=5))
    launch = world.plan("m", "card", f"draft_model={path}")
    assert launch.arg("--spec-type") == "draft-dflash"
    assert launch.arg("--spec-draft-model") == str(path)
    assert launch.level("flag.spec-draft-model") == "operator"
    assert launch.rule("drafter.wanted") == "operators-own"
    assert launch["drafter.resident"] == launch.plan.trace.facts["launch.own_draft_bytes"].value > 0
    assert launch.plan.memory.account["beside_bytes"] > launch["drafter.resident"]
    assert launch.json["warnings"] == []
    assert launch.json["summary"]["draft_model"] == "mine.gguf"


def test_an_own_draft_model_with_a_head_serves_mtp(world: World, tmp_path) -> None:
    path = tmp_path / "mine.gguf"
    write_gguf(path, MTP_FILE)
    world.entry("m", shape(arch="qwen3"), **tuned(type="draft-mtp"))
    assert world.plan("m", "card", f"draft_model={path}").arg("--spec-type") == "draft-mtp"
    assert world.plan("m").arg("--spec-type") == "none"


@pytest.mark.parametrize("broken", [None, b"not a model", b"GGUF\3\0\0\0"])
@pytest.mark.parametrize("more", [[], ["spec_type=draft-dflash"]])
def test_an_own_draft_model_that_cannot_be_read_is_refused(world: World, tmp_path, broken, more) -> None:
    """The engine exits with status 1; with drafts switched off it is never loaded."""
    path = tmp_path / "mine.gguf"
    if broken is not None:
        path.write_bytes(broken)
    world.entry("m", PLAIN, **tuned(type="draft-dflash"))
    launch = world.plan("m", "card", f"draft_model={path}", *more)
    assert launch["refusal"] == "draft-model"
    assert str(path) in launch.because("refusal")
    off = world.plan("m", "card", f"draft_model={path}", "spec_type=none")
    assert off["refusal"] is None
    assert "--spec-draft-model" not in off.argv


# ---------------------------------------------------------------- the overlay

OVERLAYS = [
    # entry's spec, operator, stands, rule
    ({}, None, False, "no-overlay"),
    ({**overlay(type="ngram-cache", n_max=9)}, None, True, "overlay"),
    ({**overlay(type="ngram-cache", n_max=9)}, "ngram-cache", True, "overlay"),
    ({**overlay(type="ngram-cache", n_max=9)}, "ngram-mod", False, "other-type-forced"),
    ({**NGRAM, **overlay(n_max=9)}, "ngram-cache", False, "other-type-than-its-base"),
    ({**NGRAM, **overlay(n_max=9)}, "ngram-mod", True, "overlay"),
    ({**overlay(n_max=9)}, "ngram-mod", True, "overlay"),
]


@pytest.mark.parametrize(("spec", "operator", "stands", "rule"), OVERLAYS)
def test_the_overlay_does_not_stand_beside_another_forced_type(world: World, spec, operator, stands, rule) -> None:
    world.entry("m", PLAIN, **(tuned(**spec) if spec else {}))
    launch = world.plan("m", "card", *([f"spec_type={operator}"] if operator else []))
    assert launch["spec.overlay_stands"] is stands
    assert launch.rule("spec.overlay_stands") == rule
    assert launch.arg("--spec-draft-n-max") == ("9" if stands else None)


def test_mtp_does_not_inherit_what_was_tuned_for_a_drafter(world: World) -> None:
    spec = {"n_max": 4, "type": "draft-simple", **overlay(type="draft-dflash", n_max=15, sampling="probabilistic")}
    world.entry("m", HEAD, **drafter(), **tuned(**spec))
    launch = world.plan("m", "card", "spec_type=draft-mtp")
    assert launch.arg("--spec-type") == "draft-mtp"
    assert launch.arg("--spec-draft-n-max") is None
    assert launch.arg("--spec-draft-sampling") is None


# ---------------------------------------------------------------- n-max and sampling

N_MAX = [
    ({}, [], None),
    ({"type": "ngram-mod", "n_max": 5}, [], "5"),
    ({"type": "ngram-mod", "n_max": 5, **overlay(n_max=7)}, [], "7"),
    ({"type": "ngram-mod", "n_max": 5}, ["draft_n_max=9"], "9"),
    ({"type": "ngram-mod"}, [], None),
    ({"type": "none", "n_max": 5}, [], None),
    ({"type": "ngram-mod", "n_max": 5}, ["spec_type=none"], None),
    ({"type": "ngram-mod", "n_max": 5}, ["spec_type=ngram-cache"], None),  # tuned for another type
]


@pytest.mark.parametrize(("spec", "settings", "n_max"), N_MAX)
def test_n_max_only_when_some_level_gives_a_number(world: World, spec, settings, n_max) -> None:
    world.entry("m", PLAIN, **(tuned(**spec) if spec else {}))
    assert world.plan("m", "card", *settings).arg("--spec-draft-n-max") == n_max


TYPES = ["none", "draft-simple", "draft-mtp", "draft-eagle3", "draft-dflash", "draft-dspark", "ngram-simple",
         "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"]  # fmt: skip
LISTENING = {"draft-mtp", "draft-simple", "draft-dflash"}


@pytest.mark.parametrize("type_", TYPES)
def test_sampling_only_for_the_types_that_listen(world: World, type_: str) -> None:
    world.entry("m", PLAIN)
    launch = world.plan("m", "card", f"spec_type={type_}", "draft_sampling=probabilistic")
    assert launch.arg("--spec-draft-sampling") == ("probabilistic" if type_ in LISTENING else None)
    assert world.plan("m", "card", f"spec_type={type_}").arg("--spec-draft-sampling") is None


SAMPLING = [
    ({"sampling": "greedy"}, [], "greedy", "catalog"),
    ({"sampling": "greedy", **overlay(sampling="probabilistic")}, [], "probabilistic", "catalog-overlay"),
    ({"sampling": "greedy"}, ["draft_sampling=probabilistic"], "probabilistic", "operator"),
    ({}, [], None, None),
]


@pytest.mark.parametrize(("spec", "settings", "sampling", "rule"), SAMPLING)
def test_sampling_only_when_a_level_sets_it(world: World, spec, settings, sampling, rule) -> None:
    world.entry("m", HEAD, **(tuned(**spec) if spec else {}))
    launch = world.plan("m", "card", *settings)
    assert launch.arg("--spec-draft-sampling") == sampling
    assert launch.rule("spec.sampling") == rule


TUNED = {"n_max": 7, "sampling": "greedy"}
LAID_OVER = [
    # base, overlay, header of the drafter, type, n-max, sampling
    ({"type": "draft-dflash", **TUNED}, {"type": "draft-dspark"}, "draft-dspark", "7", None),
    ({"type": "draft-dflash", **TUNED}, {"type": "draft-simple"}, "draft-simple", "7", "greedy"),
    ({"type": "draft-dflash", **TUNED}, {"n_max": 9}, "draft-dflash", "9", "greedy"),
    ({"type": "draft-dflash", "n_max": 7}, {"sampling": "greedy"}, "draft-dflash", "7", "greedy"),
    ({"type": "draft-dspark", **TUNED}, {"type": "draft-dflash", "n_max": 3}, "draft-dflash", "3",
     "greedy"),
    (TUNED, {"type": "draft-dflash"}, "draft-dflash", "7", "greedy"),
    ({"type": "ngram-mod", "n_max": 60}, {"type": "ngram-cache"}, "ngram-cache", "60", None),
    ({"type": "draft-dflash", **TUNED}, {"type": "draft-mtp"}, "draft-mtp", None, None),
    ({"type": "draft-simple", **TUNED}, {"type": "draft-mtp", "n_max": 2}, "draft-mtp", "2", None),
    ({"type": "draft-mtp", "n_max": 2, "sampling": "greedy"}, {"type": "draft-dflash"}, "draft-dflash", "2", "greedy"),
    ({"type": "draft-dflash", **TUNED}, {"type": "none"}, "none", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("base", "over", "type_", "n_max", "sampling"), LAID_OVER)
def test_what_the_overlay_does_not_name_stands(world: World, base, over, type_, n_max, sampling) -> None:
    """Laid over, not put in the base's place; but MTP inherits nothing that was tuned for a drafter."""
    file = drafter(header=shape()) if type_ == "draft-simple" else drafter()
    world.entry("m", HEAD, **file, **tuned(**base, **overlay(**over)))
    launch = world.plan("m")
    said = [launch.arg(f"--spec-{name}") for name in ("type", "draft-n-max", "draft-sampling")]
    assert said == [type_, n_max, sampling]


def test_a_fallback_to_mtp_inherits_nothing_tuned_for_a_drafter(world: World) -> None:
    """The drafter of overlay and base is not there; the model's own head drafts."""
    spec = {"type": "draft-dflash", "n_max": 7, "sampling": "greedy", **overlay(type="draft-dspark", n_max=9)}
    world.entry("m", HEAD, **tuned(**spec))
    launch = world.plan("m")
    assert launch.arg("--spec-type") == "draft-mtp"
    assert launch.arg("--spec-draft-n-max") is None
    assert launch.arg("--spec-draft-sampling") is None


def test_another_forced_type_inherits_neither_base_nor_overlay(world: World) -> None:
    spec = {"type": "draft-dflash", "n_max": 7, "sampling": "greedy", **overlay(type="draft-dspark")}
    world.entry("m", PLAIN, **drafter(header=shape()), **tuned(**spec))
    launch = world.plan("m", "card", "spec_type=draft-simple")
    assert launch.arg("--spec-draft-n-max") is None
    assert launch.arg("--spec-draft-sampling") is None
