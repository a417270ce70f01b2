"""The operator's own draft model: its header is read, the type is chosen from it, and what does not fit is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gguf_files import write_gguf
from projector_files import gemma3_projector
from worlds import World, dflash, drafter, shape

from gezel_rules.cli import main

PLAIN = shape()
HEAD = shape(arch="qwen3", mtp=1)
MTP_FILE = shape(arch="qwen3", layers=4, mtp=1)
EAGLE = shape(arch="eagle3", layers=1)
ASSISTANT = shape(arch="gemma4-assistant", layers=2)
GEMMA4 = shape(arch="gemma4", metadata={"gemma4.attention.sliding_window_pattern": [False]})
SMALL = shape(arch="qwen3", layers=2, width=512)


def dspark() -> dict[str, Any]:
    file = dflash()
    return {**file, "tensors": file["tensors"] + "markov_w1.weight F16 64x64\n"}


@pytest.fixture
def own(tmp_path: Path) -> Callable[..., str]:
    """Writes a draft model; the setting that names it."""

    def write(header: dict[str, Any]) -> str:
        path = tmp_path / "mine.gguf"
        write_gguf(path, header)
        return f"draft_model={path}"

    return write


def about(launch) -> list[str]:
    return [line for line in launch.json["warnings"] if "mine.gguf" in line]


CHOSEN = [
    # header of the model, of the file, spec of the entry, type
    (PLAIN, PLAIN, {}, "draft-simple"),
    (PLAIN, dflash(), {}, "draft-dflash"),
    (PLAIN, dspark(), {}, "draft-dspark"),
    (PLAIN, EAGLE, {}, "draft-eagle3"),
    (GEMMA4, ASSISTANT, {}, "draft-mtp"),
    (shape(arch="qwen3"), MTP_FILE, {}, "draft-mtp"),
    (HEAD, dflash(), {}, "draft-dflash"),  # the model's own head does not turn MTP on beside another's drafter
    (HEAD, PLAIN, {}, "draft-simple"),
    (PLAIN, EAGLE, {"type": "draft-dflash", "n_max": 5}, "draft-eagle3"),  # the operator's file over the catalog's type
    (PLAIN, dflash(), {"type": "none"}, "draft-dflash"),
    (PLAIN, dflash(), {"type": "ngram-mod"}, "draft-dflash"),
    (PLAIN, shape(arch="qwen3", width=512, mtp=1), {}, "draft-simple"),  # a whole model, whose head fits no other
]


@pytest.mark.parametrize(("model", "file", "spec", "type_"), CHOSEN)
def test_the_type_is_chosen_from_the_file(world: World, own, model, file, spec, type_) -> None:
    world.entry("m", model, **({"tuning": {"spec": spec}} if spec else {}))
    setting = own(file)
    launch = world.plan("m", "card", setting)
    assert launch.arg("--spec-type") == type_
    assert launch.arg("--spec-draft-model") == setting.partition("=")[2]
    assert launch.level("spec.type") == "operator"
    assert about(launch) == []
    assert launch.arg("--spec-draft-n-max") is None  # the catalog's number was for another type


SAID = [
    # header of the model, of the file, forced type, words of the warning
    (HEAD, dflash(), "draft-mtp", ["made for draft-dflash", "exits (status 1)", "Drop spec_type"]),
    (PLAIN, dflash(), "draft-mtp", ["made for draft-dflash", "exits (status 1)"]),
    (PLAIN, dflash(), "draft-eagle3", ["architecture dflash", "'draft model is not eagle3'", "without drafts"]),
    (PLAIN, EAGLE, "draft-dflash", ["made for draft-eagle3", "aborts (exit status 134"]),
    (PLAIN, PLAIN, "draft-dspark", ["made for draft-simple", "aborts (exit status 134"]),
    (PLAIN, PLAIN, "draft-mtp", ["made for draft-simple", "exits (status 1)"]),
    (PLAIN, EAGLE, "draft-simple", ["made for draft-eagle3", "without drafts"]),
    (PLAIN, dspark(), "draft-dflash", ["made for draft-dspark", "may abort"]),
    (PLAIN, ASSISTANT, None, ["MTP head for gemma4", "architecture llama", "will exit"]),
    (PLAIN, ASSISTANT, "draft-mtp", ["MTP head for gemma4", "architecture llama"]),
    (PLAIN, MTP_FILE, "draft-mtp", ["architecture llama"]),
    (PLAIN, shape(vocab=64000), None, ["vocabulary of 64,000", "decodes without drafts"]),
    (PLAIN, shape(vocab=64000), "draft-simple", ["vocabulary of 64,000", "decodes without drafts"]),
    (PLAIN, dflash(vocab=64000), None, ["vocabulary of 64,000", "made for another model"]),
    (PLAIN, dflash(width=512), None, ["width 512"]),
    (PLAIN, gemma3_projector(), None, ["is a projector"]),
    (PLAIN, dflash(), "none", ["is not loaded", "the operator chose none"]),
    (PLAIN, dflash(), "ngram-mod", ["is not loaded", "the operator chose ngram-mod"]),
]  # fmt: skip


@pytest.mark.parametrize(("model", "file", "forced", "words"), SAID)
def test_what_the_engine_will_make_of_it_is_said(world: World, own, model, file, forced, words) -> None:
    world.entry("m", model)
    launch = world.plan("m", "card", own(file), *([f"spec_type={forced}"] if forced else []))
    (line,) = about(launch)
    assert [word for word in words if word not in line] == []
    if forced:
        assert launch.arg("--spec-type") == forced  # it is theirs


SILENT = [
    (PLAIN, PLAIN, "draft-simple"),
    (PLAIN, SMALL, "draft-simple"),
    (PLAIN, shape(vocab=1152), None),  # up to 128 more tokens pass
    (HEAD, MTP_FILE, "draft-mtp"),
    (HEAD, MTP_FILE, "draft-simple"),
    (GEMMA4, ASSISTANT, "draft-mtp"),
    (PLAIN, dspark(), "draft-dspark"),
    (PLAIN, EAGLE, "draft-eagle3"),
]


@pytest.mark.parametrize(("model", "file", "forced"), SILENT)
def test_what_fits_is_not_warned_of(world: World, own, model, file, forced) -> None:
    world.entry("m", model)
    launch = world.plan("m", "card", own(file), *([f"spec_type={forced}"] if forced else []))
    assert about(launch) == []
    assert "--spec-draft-model" in launch.argv


@pytest.mark.parametrize("forced", [None, "none", "ngram-mod"])
def test_a_file_that_nothing_would_use_is_not_loaded(world: World, own, forced) -> None:
    """A projector, or a draft model beside a type that needs none, takes no memory."""
    world.entry("m")
    file = gemma3_projector() if forced is None else dflash()
    launch = world.plan("m", "card", own(file), *([f"spec_type={forced}"] if forced else []))
    assert "--spec-draft-model" not in launch.argv
    assert launch["drafter.resident"] == 0
    assert launch.plan.memory.account["beside_bytes"] == 0


def test_a_build_without_the_files_type_does_not_load_it(world: World, own) -> None:
    """Beside the model's own head the engine would make the MTP context from the DFlash file, and exit."""
    world.entry("m", HEAD)
    engine = world.engine("  CUDA0: A card (24576 MiB, 24000 MiB free)", unlisted=["draft-dflash"])
    launch = world.plan("m", None, own(dflash()), engine=engine)
    assert launch.arg("--spec-type") == "draft-mtp"
    assert "--spec-draft-model" not in launch.argv
    assert "--help does not list" in about(launch)[0]


def test_another_tokenizer_is_said(world: World, own) -> None:
    world.entry("m", shape(metadata={"tokenizer.ggml.model": "gpt2"}))
    launch = world.plan("m", "card", own(shape(metadata={"tokenizer.ggml.model": "llama"})))
    assert "its tokenizer.ggml.model is llama, the model's gpt2" in about(launch)[0]


def test_mtp_of_the_operators_own_file_inherits_nothing_tuned_for_a_drafter(world: World, own) -> None:
    spec = {"by_backend": {"cuda": {"type": "draft-dflash", "n_max": 15, "sampling": "greedy"}}}
    world.entry("m", shape(arch="qwen3"), **drafter(), tuning={"spec": spec})
    launch = world.plan("m", "card", own(MTP_FILE))
    assert launch.arg("--spec-type") == "draft-mtp"
    assert launch.arg("--spec-draft-n-max") is None
    assert launch.arg("--spec-draft-sampling") is None


def test_through_the_command_line(own, capsys: pytest.CaptureFixture[str]) -> None:
    file = own(dflash(width=4096, vocab=151936))
    assert main(["plan", "qwen3-8b", "--host", "rtx-4090", "--set", file]) == 0
    assert "--spec-type draft-dflash" in " ".join(capsys.readouterr().out.split())
    assert main(["plan", "qwen3-8b", "--host", "rtx-4090", "--set", file, "--set", "spec_type=draft-eagle3"]) == 0
    assert "'draft model is not eagle3'" in " ".join(capsys.readouterr().out.split())
    assert main(["plan", "qwen3-8b", "--host", "rtx-4090", "--set", "draft_model=/nowhere/d.gguf"]) == 1
    assert "/nowhere/d.gguf" in capsys.readouterr().out


def test_a_projector_forced_to_draft_is_refused(world: World, own) -> None:
    """The engine exits: CLIP cannot be used as main model."""
    world.entry("m")
    launch = world.plan("m", "card", own(gemma3_projector()), "spec_type=draft-simple")
    assert launch["refusal"] == "draft-model"
    assert "is a projector" in launch.because("refusal")
