"""Projectors: which one is loaded, what it takes with the buffer of its encoder, and what nobody knows is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gguf_files import write_gguf
from projector_files import gemma3_projector
from worlds import World, shape

from gezel_rules.cli import main
from gezel_rules.errors import BadInput
from gezel_rules.gguf import read_header

MIB = 1 << 20
COMPUTE = 4 * 64 * 64 * (3 * 1152 + 4304)
"""Gemma 3's encoder: 64 × 64 patches; the server reserves 121.25 MiB."""


def projector_file(name: str = "mmproj-m.gguf", **more: Any) -> dict[str, Any]:
    return {"role": "projector", "name": name, "sources": [{"url": f"https://example.org/{name}"}], **more}


def about_projectors(launch) -> list[str]:
    return [line for line in launch.json["warnings"] if "mmproj" in line]


@pytest.fixture
def mmproj(tmp_path: Path) -> str:
    path = tmp_path / "sees.gguf"
    write_gguf(path, gemma3_projector())
    return str(path)


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A model named by its path, in a directory of its own."""
    path = tmp_path / "models" / "m.gguf"
    path.parent.mkdir()
    write_gguf(path, shape())
    return path


def test_a_projector_of_unknown_size_is_said_to_count_nothing(world: World) -> None:
    world.entry("m", files=[projector_file()])
    launch = world.plan("m")
    assert launch.arg("--mmproj").endswith("mmproj-m.gguf")
    assert launch["memory.beside"] == 0
    assert about_projectors(launch) == [
        "nobody knows the size of mmproj-m.gguf before it is here, so this plan counts nothing for it: pull the "
        "model and plan again, or leave vision off with --set vision=false"
    ]
    assert about_projectors(world.plan("m", "card", "vision=false")) == []


def test_9_a_plan_that_counts_no_projector_does_not_claim_to_be_exact(world: World) -> None:
    world.entry("m", files=[projector_file()])
    weights, compute = "the projector's weights", "what the projector's encoder computes with"
    assert world.plan("m").plan.memory.account["unknown"] == [weights, compute]
    assert world.plan("m", "card", "vision=false").plan.memory.account["unknown"] == []
    world.entry("n", files=[projector_file("mmproj-n.gguf", size=800 * MIB)])
    assert world.plan("n").plan.memory.account["unknown"] == [compute]


def test_a_size_the_catalog_knows_is_counted_and_the_rest_is_said(world: World) -> None:
    world.entry("m", files=[projector_file(size=800 * MIB)])
    launch = world.plan("m")
    assert launch["memory.beside"] == 800 * MIB
    assert about_projectors(launch) == [
        "what the encoder of mmproj-m.gguf computes with is told by its header once it is here, so this plan counts "
        "its weights only"
    ]


def test_an_installed_projector_counts_with_what_its_encoder_computes_with(world: World) -> None:
    world.entry("m", files=[projector_file()])
    held = world.install("m", model=shape(), projector=gemma3_projector()).by_role("projector")[0]
    launch = world.plan("m")
    assert launch["memory.projector"] == held.size
    assert launch["memory.vision_compute"] == COMPUTE
    assert launch["memory.beside"] == held.size + COMPUTE
    assert about_projectors(launch) == []


@pytest.mark.parametrize(("changed", "said"), [
    ({"clip.projector_type": "strange"}, "its vision encoder (strange)"),
    ({"clip.has_audio_encoder": True}, "its audio encoder"),
])  # fmt: skip
def test_an_encoder_nobody_measured_is_said(world: World, changed: dict[str, Any], said: str) -> None:
    world.entry("m", files=[projector_file("mmproj.gguf")])
    world.install("m", model=shape(), projector=gemma3_projector(metadata=changed))
    (line,) = [line for line in world.plan("m").json["warnings"] if "nobody has measured" in line]
    assert said in line


def test_a_model_named_by_its_path_can_name_its_projector(world: World, alone: Path, mmproj: str) -> None:
    launch = world.plan(str(alone), "card", f"mmproj={mmproj}")
    assert launch.arg("--mmproj") == mmproj
    assert launch.level("vision.path") == "operator"
    assert launch["memory.projector"] == read_header(mmproj).weights_bytes
    assert launch["memory.vision_compute"] == COMPUTE
    off = world.plan(str(alone), "card", f"mmproj={mmproj}", "vision=false")
    assert (off.arg("--mmproj"), off["memory.beside"]) == (None, 0)


def test_the_operators_projector_goes_before_the_catalogs(world: World, mmproj: str) -> None:
    world.entry("m", files=[projector_file(size=800 * MIB)])
    launch = world.plan("m", "card", f"mmproj={mmproj}")
    assert launch.arg("--mmproj") == mmproj
    assert launch["memory.projector"] == read_header(mmproj).weights_bytes
    assert [f["loads"] for f in launch.json["files"] if f["role"] == "projector"] == [False]


def test_what_is_named_must_be_a_projector(world: World, alone: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nothing\.gguf"):
        world.plan(str(alone), "card", f"mmproj={tmp_path / 'nothing.gguf'}")
    with pytest.raises(BadInput, match=r"m\.gguf is no projector, its architecture is 'llama'"):
        world.plan(str(alone), "card", f"mmproj={alone}")


def test_a_projector_beside_the_model_is_offered_and_never_taken(world: World, alone: Path) -> None:
    beside = alone.parent / "mmproj-F16.gguf"
    write_gguf(beside, gemma3_projector())
    write_gguf(alone.parent / "mmproj-not.gguf", shape())
    (alone.parent / "mmproj-broken.gguf").write_bytes(b"GGUF")
    launch = world.plan(str(alone))
    assert launch.arg("--mmproj") is None
    assert launch["memory.beside"] == 0
    (note,) = [line for line in launch.json["notes"] if "projector" in line]
    assert note == (
        f"beside the model lies a projector, and it is not loaded: {beside}; name it with --set mmproj=PATH and the "
        "model can see"
    )
    named = world.plan(str(alone), "card", f"mmproj={beside}")
    assert named.arg("--mmproj") == str(beside)
    assert not [line for line in named.json["notes"] if "projector" in line]


def test_on_the_command_line(alone: Path, mmproj: str, capsys) -> None:
    assert main(["plan", str(alone), "--host", "rtx-4090", "--set", f"mmproj={mmproj}"]) == 0
    assert f"--mmproj {mmproj}" in capsys.readouterr().out
    assert main(["plan", str(alone), "--host", "rtx-4090", "--set", f"mmproj={alone}"]) == 2
    assert "is no projector" in capsys.readouterr().err
