"""Layers from the command line: where they lie, which counts, and what every command says of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gezel_rules import places
from gezel_rules.cli import main

HEAD = "version: 1.0.0\nsummary: Not too fine here.\n"
NO_F16 = """
decisions:
  kv.flash_attn:
    rules:
      - {id: never, after: operator, when: engine.backend == 'cuda', then: "'off'", because: our driver breaks it}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The site's folder of layers; the user's is below ``tmp_path / "user"``."""
    monkeypatch.setattr(places, "SITE", tmp_path / "site")
    monkeypatch.setenv("GEZEL_CONFIG", str(tmp_path / "user"))
    for owner in ("site", "user"):
        (tmp_path / owner / "policies").mkdir(parents=True)
    return tmp_path / "site" / "policies"


def _written(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(HEAD + body, "utf-8")
    return path


def _plan(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main(["plan", "qwen3-8b", "--host", "rtx-4090", "--json", *words]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def _decision(plan: dict[str, object], name: str) -> dict[str, object]:
    decisions = plan["decisions"]
    assert isinstance(decisions, list)
    return next(entry for entry in decisions if entry["name"] == name)


def test_site_user_variable_and_command_line_each_beat_the_one_before(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lasting(value: str) -> str:
        return f"decisions: {{kv.swa_full: {{rules: [{{id: windowed, then: {value}, because: '{value} it is'}}]}}}}\n"

    said = []
    for folder, name, value in (
        (site, "a.yaml", "true"),
        (site, "b.yaml", "false"),
        (tmp_path / "user" / "policies", "a.yaml", "true"),
    ):
        _written(folder, name, lasting(value))
        said.append(_decision(_plan(capsys), "kv.swa_full")["value"])
    variable = _written(tmp_path, "variable.yaml", lasting("false"))
    monkeypatch.setenv("GEZEL_LAYERS", str(variable))
    said.append(_decision(_plan(capsys), "kv.swa_full")["value"])
    last = _written(tmp_path, "last.yaml", lasting("true"))
    found = _decision(_plan(capsys, "--layer", str(last)), "kv.swa_full")
    assert [*said, found["value"]] == [True, False, True, False, True]
    assert found["source"] == {"file": str(last), "line": 3}


def test_a_plan_and_an_explanation_name_the_layer(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layer = _written(site, "driver.yaml", NO_F16)
    plan = _plan(capsys)
    assert _decision(plan, "kv.flash_attn")["source"] == {"file": str(layer), "line": 7}
    assert f"{layer} 1.0.0 is laid over the policies: Not too fine here." in str(plan["notes"])
    assert main(["explain", "qwen3-8b", "--host", "rtx-4090", "--flash-attn"]) == 0
    said = capsys.readouterr().out
    assert f"kv.flash_attn = off      {layer}:7 · rule never · llama-cpp/kv " in said
    assert "our driver breaks it" in said


def test_check_looks_at_what_holds_here_and_a_named_directory_is_checked_alone(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layer = _written(site, "driver.yaml", NO_F16.replace("operator", "operater"))
    assert main(["policy", "check"]) == 2
    said = capsys.readouterr().out
    assert f"{layer}:7:28: decision 'kv.flash_attn' has no other rule 'operater'; did you mean 'operator'?" in said
    assert main(["policy", "check", str(places.policies_dir())]) == 0


def test_a_broken_layer_keeps_a_plan_from_being_made(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layer = _written(site, "driver.yaml", "tables: {kv_types: {rows: {q5_1: {automatic: yes}}}}\n")
    assert main(["plan", "qwen3-8b", "--host", "rtx-4090"]) == 2
    assert f"{layer}:3:46: 'automatic' of 'kv_types' must be true or false" in capsys.readouterr().err


def test_show_effective_lists_what_layers_change(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layer = _written(site, "driver.yaml", f"{NO_F16}tables: {{kv_types: {{rows: {{q5_1: {{automatic: true}}}}}}}}\n")
    assert main(["policy", "show", "--effective"]) == 0
    shown = capsys.readouterr().out.split("\n\n")[-1].splitlines()
    assert [" ".join(line.split()) for line in shown] == [
        f"{layer} 1.0.0 laid over the policies",
        "Not too fine here.",
        "kv_types row q5_1: automatic: true line 8",
        "kv.flash_attn rule never line 7",
    ]
    assert main(["policy", "show", "kv_types", "--effective"]) == 0
    table = " ".join(capsys.readouterr().out.split())
    assert f"laid over row q5_1: automatic: true {layer}:8" in table
    assert "q5_1 quantised yes · automatic yes" in table
    assert main(["policy", "show", "kv_types"]) == 0
    assert "q5_1    quantised yes · automatic no" in capsys.readouterr().out


def test_the_engine_in_this_package_reads_layers_too(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the embedded engine is not installed")
    layer = _written(tmp_path, "mine.yaml", "tables: {nothing: {rows: {}}}\n")
    command = [sys.executable, "-m", "gezel_rules.engines.llama_cpp.embedded", "--help"]
    environ = {**os.environ, "GEZEL_LAYERS": str(layer)}
    found = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stderr) == (1, f"{layer}:3:10: no table 'nothing' to change\n")


def test_a_layer_reaches_the_memory_command(tmp_path: Path, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _written(site, "broken.yaml", "tables: {nothing: {rows: {}}}\n")
    assert main(["memory", str(tmp_path / "none.gguf")]) == 2
    assert "no table 'nothing' to change" in capsys.readouterr().err


def test_a_folder_of_layers_that_cannot_be_read_is_said(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(path: object) -> list[str]:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(places.os, "listdir", refused)
    assert main(["plan", "qwen3-8b", "--host", "rtx-4090"]) != 0
    assert f"{site}: permission denied" in capsys.readouterr().err
