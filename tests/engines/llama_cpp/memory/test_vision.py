"""The compute buffer of vision encoders against the server's own estimate ("[mtmd] estimated worst-case memory usage of
mmproj", less the file's tensors; llama.cpp 0.6.0-dev, files of zeros)."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from types import SimpleNamespace

import pytest
from engine_at_hand import real_llama_server
from engine_truth import DATA, MIB
from gguf_files import write_gguf
from projector_files import gemma3_projector

from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.engines.llama_cpp.memory.vision import VisionEncoder, uncounted, vision_bytes
from gezel_rules.gguf import Header, read_header
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies

ROWS = [json.loads(line) for line in (DATA / "truth" / "vision.jsonl").read_text().splitlines()]
ENCODERS = read_policies(policies_dir(), FAMILY, None).rows("vision_encoders", VisionEncoder)
OFF = {  # how far below and above the engine's own figure a kind may be
    "gemma3": (0.001, 0.001),
    "idefics3": (0.001, 0.001),
    "internvl": (0.002, 0.002),
    "gemma4v": (0.001, 0.15),
    "pixtral": (0.003, 0.27),
    "qwen3vl_merger": (0.001, 0.08),
    "qwen2vl_merger": (0.19, 0.19),
    "qwen2.5vl_merger": (0.09, 0.19),
}


def header(kind: str, audio: bool = False, **sizes: int) -> Header:
    """A projector's header, as far as it counts; one that cannot see without sizes."""
    keys = {"image": "image_size", "patch": "patch_size", "hidden": "embedding_length", "ffn": "feed_forward_length",
            "merge": "spatial_merge_size"}  # fmt: skip
    sized = {f"clip.vision.{keys[name]}": size for name, size in sizes.items() if size}
    said = {"general.architecture": "clip", "clip.projector_type": kind, "clip.has_audio_encoder": audio}
    return Header(3, said | {"clip.has_vision_encoder": bool(sized)} | sized, (), 0, None)


def of_row(row) -> int:
    return vision_bytes(
        header(row["projector"], **{name: row[name] for name in ("image", "patch", "hidden", "ffn", "merge")}), ENCODERS
    )


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda r: f"{r['projector']}-{r['image']}-{r['hidden']}-{r['ffn']}-{r['blocks']}-{r['merge']}"
)
def test_it_is_what_the_server_reserves(row) -> None:
    below, above = OFF[row["projector"]]
    assert -below <= of_row(row) / MIB / row["compute_mib"] - 1 <= above


def test_every_kind_policy_names_was_measured() -> None:
    assert {row["projector"] for row in ROWS} == set(ENCODERS) == set(OFF)


SHAPES = [("qwen2vl_merger", 1280, 5120), ("qwen3vl_merger", 1280, 5120), ("pixtral", 1024, 4096)]


@pytest.mark.parametrize(("kind", "hidden", "ffn"), SHAPES)
def test_the_widths_that_models_have_are_exact(kind: str, hidden: int, ffn: int) -> None:
    rows = [row for row in ROWS if (row["projector"], row["hidden"], row["ffn"]) == (kind, hidden, ffn)]
    assert rows
    for row in rows:
        assert of_row(row) / MIB == pytest.approx(row["compute_mib"], rel=0.003)


def test_what_nobody_measured_stays_unknown() -> None:
    strange = header("strange", image=448, patch=14, hidden=1024, ffn=4096)
    assert vision_bytes(strange, ENCODERS) is None
    assert uncounted(strange, ENCODERS) == "its vision encoder (strange)"
    short = header("gemma3", image=448, patch=14)
    assert vision_bytes(short, ENCODERS) is None
    hears = header("qwen2a", audio=True)
    assert (vision_bytes(hears, ENCODERS), uncounted(hears, ENCODERS)) == (0, "its audio encoder")
    both = header("gemma4v", audio=True, image=768, patch=16, hidden=768, ffn=3072)
    assert uncounted(both, ENCODERS) == "its audio encoder"


@pytest.mark.engine
@pytest.mark.parametrize("shape", [{}, {"image": 448, "width": 768, "ffn": 3072, "heads": 12}, {"ffn": 1536}])
def test_the_server_itself_says_so(real_model, tmp_path, shape) -> None:
    """A projector of another size each time, beside Gemma 3 270M."""
    path = tmp_path / "mmproj.gguf"
    write_gguf(path, gemma3_projector(**shape))
    flags = ["-m", str(real_model), "--mmproj", str(path), "--port", "0", "-fit", "on"]
    process = subprocess.Popen(
        [*real_llama_server().command, "-lv", "5", *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace",
    )  # fmt: skip
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    said = (re.search(r"worst-case memory usage of mmproj is ([\d.]+) MiB", line) for line in process.stdout)
    found = next((match for match in said if match), SimpleNamespace(group=lambda _: "0"))
    watchdog.cancel()
    process.kill()
    process.wait()
    process.stdout.close()
    ours = read_header(path)
    total = ours.weights_bytes + vision_bytes(ours, ENCODERS)
    assert total / MIB == pytest.approx(float(found.group(1)), rel=0.001)
