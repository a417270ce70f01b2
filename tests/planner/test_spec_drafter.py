"""The drafter: whether it is for this backend, loads, is on disk, broke the build, and is worth what it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gguf_files import write_gguf
from worlds import DIGEST, World, card, dflash, draft_file, drafter, shape

from gezel_rules.engines import registry
from gezel_rules.engines.family import DRAFTER
from gezel_rules.places import policies_dir
from gezel_rules.planner.needs import Step
from gezel_rules.planner.plan import build_of
from gezel_rules.planner.policies import read_policies
from gezel_rules.runtime.rules import supervision
from gezel_rules.session.ordering import guide_of, order_of

HEAD = shape(arch="qwen3", mtp=1)
PLAIN = shape()
MTP_FILE = shape(arch="qwen3", layers=4, mtp=1)
NGRAM = {"type": "ngram-mod"}
CARD = "  CUDA0: A card (24576 MiB, 24000 MiB free)"


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
    broke = [("0.6.0", "m/draft.gguf")]  # no digest in the catalog: known by the entry it belongs to
    launch = world.plan("m", broke=broke)
    assert launch.rule("drafter.wanted") == "broke-this-build"
    assert launch.arg("--spec-type") == "none"
    assert "made this engine build fail" in launch.json["notes"][0]
    world.host("newer", [card()], version="0.6.1")
    assert world.plan("m", "newer", broke=broke).arg("--spec-type") == "draft-dflash"
    assert world.plan("m", "card", "spec_type=draft-dflash", broke=broke)["drafter.loads"]  # forced: theirs


def test_another_build_that_calls_itself_alike_gets_its_chance(world: World) -> None:
    """Every build outside a release is 0.6.0-dev: its files tell it from the next."""
    world.entry("m", PLAIN, **drafter(), **tuned(type="draft-dflash"))
    engine = world.engine(CARD)
    first = build_of(world.plan("m", None, engine=engine).plan.trace.facts)
    broke = [(first, "m/draft.gguf")]
    assert world.plan("m", None, engine=engine, broke=broke).arg("--spec-type") == "none"
    Path(engine).write_text(Path(engine).read_text() + "# built anew\n")
    assert world.plan("m", None, engine=engine, broke=broke).arg("--spec-type") == "draft-dflash"


def test_a_drafter_of_another_kind_is_not_loaded(world: World) -> None:
    """The engine aborts on it."""
    world.entry("m", PLAIN, **drafter(header=shape(arch="eagle3")), **tuned(type="draft-dflash"))
    launch = world.plan("m")
    assert launch.rule("drafter.wanted") == "wrong-drafter"
    said = "draft-dflash needs a drafter of architecture dflash; draft.gguf is eagle3"
    assert launch.because("drafter.wanted") == said
    assert launch.arg("--spec-type") == "none"
    forced = world.plan("m", "card", "spec_type=draft-dflash")
    assert forced["drafter.loads"]
    assert "draft.gguf is of architecture eagle3" in forced.json["warnings"][0]
    world.entry("plain", PLAIN, **drafter(header=PLAIN), **tuned(type="draft-simple"))
    assert world.plan("plain").arg("--spec-type") == "draft-simple"


# ---------------------------------------------------------------- types a build does not list

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


# ---------------------------------------------------------------- after a failure


def launched(world: World, *settings: str):
    """The order of an installed model with its drafter, and the guide that recovery asks."""
    engine = world.engine(CARD)
    plan = world.plan("m", None, *settings, engine=engine).plan
    return order_of(plan), guide_of(plan, lambda line: None, dict)


def drop() -> Step:
    steps = supervision(read_policies(policies_dir(), registry.family("llama-cpp"), None)).steps
    return next(step for step in steps if step.needs == DRAFTER)


def test_the_catalogs_drafter_is_dropped_and_remembered_by_its_digest(world: World) -> None:
    world.entry("m", PLAIN, **drafter(), **tuned(type="draft-dflash"))
    world.install("m", model=PLAIN, draft=dflash())
    order, guide = launched(world)
    assert order.parts[DRAFTER] == f"sha256:{DIGEST}"
    assert order.called == {f"sha256:{DIGEST}": "draft.gguf"}
    following = guide.again(drop())
    assert following is not None and "--spec-draft-model" not in following.argv
    assert guide.again(drop()) is None  # the same argv is not tried twice


def test_a_forced_drafter_is_neither_dropped_nor_remembered(world: World, tmp_path: Path) -> None:
    world.entry("m", PLAIN, **drafter(), **tuned(type="draft-dflash"))
    world.install("m", model=PLAIN, draft=dflash())
    own = tmp_path / "own.gguf"
    write_gguf(own, dflash())
    for settings in (["spec_type=draft-dflash"], [f"draft_model={own}"]):
        order, guide = launched(world, *settings)
        assert "--spec-draft-model" in order.argv
        assert DRAFTER not in order.parts
        assert guide.again(drop()) is None


def test_another_models_drafter_of_the_same_name_is_not_condemned(world: World) -> None:
    for name in ("m", "n"):
        world.entry(name, PLAIN, **drafter(), **tuned(type="draft-dflash"))
    broke = [("0.6.0", "m/draft.gguf")]
    assert world.plan("m", broke=broke).arg("--spec-type") == "none"
    assert world.plan("n", broke=broke).arg("--spec-type") == "draft-dflash"


def test_a_drafter_with_new_bytes_gets_a_new_chance(world: World) -> None:
    world.entry("m", PLAIN, **drafter(), **tuned(type="draft-dflash"))
    held = world.install("m", model=PLAIN, draft=dflash())
    broke = [("0.6.0", f"sha256:{DIGEST}")]
    assert world.plan("m", broke=broke).arg("--spec-type") == "none"
    new = held.files["draft"]._replace(sha256="cd" * 32)
    world.shelf["m"] = held._replace(files={**held.files, "draft": new})
    assert world.plan("m", broke=broke).arg("--spec-type") == "draft-dflash"
