"""doctor: what is wrong is said with what can be done, and only what is wrong makes it exit 1."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from gezel_rules.cli import main
from gezel_rules.runtime.failures import INCIDENTS
from gezel_rules.runtime.recover import broken_parts, remember_broken
from gezel_rules.runtime.state_files import write_json

ENGINE = """#!/bin/sh
case "$*" in
  *--version*) echo 'version: 0.6.0 (build 11434, commit abc)' >&2;;
  *--help*) printf -- '-t,    --threads N   threads (env: LLAMA_ARG_THREADS)\\n--list-devices  print devices\\n';;
  *--list-devices*) printf 'Available devices:\\n%s' "$DEVICES";;
esac
"""


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs doctor over a made-up engine that lists the given devices (no real card can be had here)."""
    engine = tmp_path / "fake-llama-server"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    for name in ("STATE", "STORE", "CACHE"):
        monkeypatch.setenv(f"GEZEL_{name}", str(tmp_path / name.lower()))

    def run(devices: str, *more: str) -> tuple[int, list[dict[str, object]]]:
        monkeypatch.setenv("DEVICES", devices)
        status = main(["doctor", "--engine", str(engine), "--json", *more])
        return status, json.loads(capsys.readouterr().out)

    return run


CARD = "  CUDA0: NVIDIA GeForce RTX 4090 (24564 MiB, 24000 MiB free)\n"


def test_nothing_is_wrong(look) -> None:
    assert look(CARD) == (0, [])


def test_a_software_renderer_is_no_gpu(look) -> None:
    status, found = look("  Vulkan0: llvmpipe (LLVM 15.0.6, 256 bits) (16000 MiB, 16000 MiB free)\n")
    assert status == 1
    assert [finding["what"] for finding in found if finding["wrong"]] == [
        "sees no GPU, only a software renderer: llvmpipe (LLVM 15.0.6, 256 bits)"
    ]


def test_a_cpu_build_is_said_and_not_wrong(look) -> None:
    status, found = look("  (none)\n")
    assert status == 0
    assert str(found[0]["what"]).endswith("sees no device: models run on the CPU")


def test_what_steers_the_engine_from_outside_is_shown(look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_ARG_THREADS", "3")
    status, found = look(CARD)
    assert status == 0
    assert [finding["about"] for finding in found] == ["outside"]
    assert "LLAMA_ARG_THREADS" in str(found[0]["what"])
    assert "3" in str(found[0]["what"])


def test_failures_and_broken_drafters(look, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    look(CARD)
    assert main(["devices", "--engine", str(tmp_path / "fake-llama-server"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    this_build = f"{facts['engine.version']['value']} {facts['engine.identity']['value']}"
    state = Path(os.environ["GEZEL_STATE"])
    write_json(state / INCIDENTS / "2.json", {"model": "second", "failure": "cuda-oom", "advice": "free some memory"})
    remember_broken(state, this_build, "sha256:ab", "draft-unusable", "dflash.gguf")
    remember_broken(state, "0.5.0", "sha256:cd", "gguf-corrupt", "other.gguf")
    status, found = look(CARD)
    assert status == 0
    assert (found[0]["what"], found[0]["advice"]) == ("second failed: cuda-oom", "free some memory")
    when = r"20\d\d-\d\d-\d\d \d\d:\d\d"
    assert re.fullmatch(
        rf"dflash.gguf broke this engine build \(draft-unusable, {when}\) and is left out", str(found[1]["what"])
    )
    assert re.fullmatch(rf"other.gguf broke engine build 0.5.0 \(gguf-corrupt, {when}\)", str(found[2]["what"]))
    assert "doctor --forgive dflash.gguf" in str(found[1]["advice"])


def test_a_broken_drafter_can_be_forgiven(look, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = Path(os.environ["GEZEL_STATE"])
    remember_broken(state, "0.5.0", "sha256:ab", "draft-unusable", "dflash.gguf")
    remember_broken(state, "0.6.0", "sha256:ab", None, "dflash.gguf")
    remember_broken(state, "0.6.0", "sha256:cd", None, "other.gguf")
    status, found = look(CARD, "--forgive", "dflash.gguf")
    assert status == 0
    assert [str(finding["what"]).partition(":")[0] for finding in found[:2]] == ["dflash.gguf is forgiven"] * 2
    assert broken_parts(state, "0.5.0") == {}
    assert broken_parts(state, "0.6.0") == {"sha256:cd": "died"}
    engine = str(tmp_path / "fake-llama-server")
    assert main(["doctor", "--engine", engine, "--forgive", "dflash.gguf"]) == 2
    assert "nothing called dflash.gguf is remembered as broken; there are: other.gguf" in capsys.readouterr().err


def test_a_build_that_died_over_packed_weights_is_told(look, capsys: pytest.CaptureFixture[str]) -> None:
    assert look(CARD) == (0, [])
    engine = Path(os.environ["GEZEL_STATE"]).with_name("fake-llama-server")
    assert main(["devices", "--engine", str(engine), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    build = f"{facts['engine.version']['value']} {facts['engine.identity']['value']}"
    remember_broken(Path(os.environ["GEZEL_STATE"]), build, "packed weights", "illegal-instruction")
    status, found = look(CARD)
    assert (status, len(found)) == (0, 1)
    assert str(found[0]["what"]).startswith("packed weights broke this engine build (illegal-instruction, 20")


def test_leftovers_are_found_and_repaired(look) -> None:
    store = Path(os.environ["GEZEL_STORE"])
    (store / "half-a-model").mkdir(parents=True)
    status, found = look(CARD)
    assert status == 1
    assert "half-a-model" in str(found[0]["what"])
    assert look(CARD, "--repair")[0] == 0
    assert not (store / "half-a-model").exists()
    assert look(CARD) == (0, [])


@pytest.mark.parametrize(
    ("model", "started", "ready", "told"),
    [("m", 20.0, True, 0), ("m", 5.0, True, 1), ("m", 20.0, False, 1), ("other", 20.0, True, 1)],
)
def test_12_a_failure_is_forgotten_once_the_model_started_well(look, model, started, ready, told) -> None:
    state = Path(os.environ["GEZEL_STATE"])
    write_json(state / INCIDENTS / "1.json", {"model": "m", "failure": "cuda-oom", "advice": "x", "time": 10.0})
    write_json(
        state / "journal" / "2.json", {"launch": {"model": model, "started": started}, "outcome": {"ready": ready}}
    )
    assert len(look(CARD)[1]) == told


def fail(number: int, **more: object) -> None:
    said = {"model": "m", "failure": "cuda-oom", "build": "b1", "advice": "x", "time": 1e9 + number, **more}
    write_json(Path(os.environ["GEZEL_STATE"]) / INCIDENTS / f"{number:03}.json", said)


def test_12_every_failure_that_stands_is_told_in_a_line(look) -> None:
    fail(1)
    fail(2, failure=None, exit_status=7)
    fail(3, model="n", build=None)
    fail(4)
    said = [re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d", "DAY", str(finding["what"])) for finding in look(CARD)[1]]
    assert said == [
        "m failed under engine build b1: cuda-oom (2 times, last DAY)",
        "n failed: cuda-oom (last DAY)",
        "m failed under engine build b1: exit status 7 (last DAY)",
    ]


@pytest.mark.parametrize(("build", "told"), [("b1", 1), ("b2", 2), ("", 1)])
def test_12_a_good_start_answers_for_its_model_and_build_alone(look, build: str, told: int) -> None:
    fail(1)
    fail(2, model="n")
    begun = {"model": "m", "started": 1e9 + 5, "build": build}
    write_json(Path(os.environ["GEZEL_STATE"]) / "journal" / "1.json", {"launch": begun, "outcome": {"ready": True}})
    assert len(look(CARD)[1]) == told


def test_12_the_number_of_failures_is_bounded(look) -> None:
    for number in range(20):
        fail(number, model=f"m{number}")
    found = [str(finding["what"]) for finding in look(CARD)[1]]
    assert len(found) == 13 and found[0].startswith("m19 failed") and found[-1] == "8 older failures are not shown"


@pytest.mark.parametrize("command", [["doctor"], ["devices"], ["plan", "qwen3-8b"], ["run", "qwen3-8b", "hello"]])
@pytest.mark.parametrize("question", ["--version", "--help", "no-model.gguf --port 0", "--list-devices"])
def test_13_an_engine_that_hangs_is_named_within_5_seconds(tmp_path, monkeypatch, capsys, command, question) -> None:
    engine = tmp_path / "hanging-llama-server"
    engine.write_text(ENGINE.replace('case "$*" in', f'case "$*" in\n  *"{question}") sleep 600;;'))
    engine.chmod(0o755)
    for name in ("STATE", "STORE", "CACHE"):
        monkeypatch.setenv(f"GEZEL_{name}", str(tmp_path / name.lower()))
    assert main([*command, "--engine", str(engine)]) == 3
    said = capsys.readouterr().err
    found = re.search(rf"{engine} .*{question} gave no answer within (\d+\.\d) s", said)
    assert found is not None and float(found[1]) < 5 and said.count("\n") == 1


def test_13_slow_answers_count_towards_the_5_seconds(tmp_path, monkeypatch, capsys) -> None:
    engine = tmp_path / "hanging-llama-server"
    engine.write_text(ENGINE.replace("--version*)", "--version*) sleep 3;").replace("--help*)", "--help*) sleep 600;"))
    engine.chmod(0o755)
    monkeypatch.setenv("GEZEL_CACHE", str(tmp_path / "cache"))
    assert main(["devices", "--engine", str(engine)]) == 3
    found = re.search(r"--help gave no answer within (\d+\.\d) s", capsys.readouterr().err)
    assert found is not None and float(found[1]) < 2
