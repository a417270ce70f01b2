"""What a plan cut, what steers it unseen, and why something is not there: said without being asked twice."""

from __future__ import annotations

import pytest

from gezel_rules.cli import main

ROCM, CUDA = ("--host", "rx-7900-xtx-rocm"), ("--host", "rtx-4090")


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main([*argv]) == 0
    return capsys.readouterr().out


def test_a_window_above_the_trained_length_is_said_to_be_cut(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, "plan", "qwen3-8b", *CUDA, "--set", "window=128k")
    assert "the window of 131,072 tokens that the operator asked for is cut to 40,960 tokens" in said
    assert "note" not in told(capsys, "plan", "qwen3-8b", *CUDA, "--set", "window=32k")


def test_settings_of_the_environment_and_of_a_site_file_are_said_to_be_in_force(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEZEL_SLOTS", "1")
    assert "environment GEZEL_SLOTS is in force: slots = 1" in told(capsys, "plan", "qwen3-8b", *CUDA)


def test_that_no_drafter_is_loaded_is_said_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no drafter is loaded: dflash-Qwen3-8B-Q8_0.gguf is limited to cuda; this build is rocm" in told(
        capsys, "plan", "qwen3-8b", *ROCM
    )


@pytest.mark.parametrize("subject", ["--spec-draft-model", "--model-draft", "drafter.loads"])
def test_a_flag_that_is_not_passed_is_followed_to_what_holds_it_back(
    subject: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is limited to cuda" in told(capsys, "explain", "qwen3-8b", *ROCM, subject)


def test_why_not_follows_a_flag_too(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, "explain", "qwen3-8b", *ROCM, "--spec-draft-model", "--why-not", "x.gguf")
    assert "is limited to cuda; this build is rocm" in said


@pytest.mark.parametrize("value", ["64k", "65536", "65,536"])
def test_why_not_reads_numbers_as_people_write_them(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, "explain", "qwen3-8b", *CUDA, "window.tokens", "--why-not", value)
    assert f"window.wanted is not {value}: rule default: " in said
    assert "the model was trained for no more" in said
    assert "an operator may" not in said  # it would be cut
    assert told(capsys, "explain", "qwen3-8b", *CUDA, "window.tokens", "--why-not", "40k") == "  it is 40k\n"


def test_why_not_advises_only_what_would_be_taken(capsys: pytest.CaptureFixture[str]) -> None:
    subject = ("--cache-type-k", "--why-not")
    assert "--set kv_type=q4_0" in told(capsys, "explain", "qwen3-8b", *CUDA, *subject, "q4_0")
    assert "an operator may" not in told(capsys, "explain", "qwen3-8b", *CUDA, *subject, "q99")
    off = ("--set", "flash_attn=off")
    assert "an operator may" not in told(capsys, "explain", "qwen3-8b", *CUDA, *off, *subject, "q8_0")
