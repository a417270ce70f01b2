"""Broken policy directories, each with every word that is said about it: message, place, source line and caret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from small_set import drafts_of

from gezel_rules.cli import main
from gezel_rules.documents.source import load_yaml
from gezel_rules.errors import BadInput
from gezel_rules.places import schemas_dir
from gezel_rules.policy.files import policy_paths

CASES = sorted(path for path in (Path(__file__).parent.parent / "data" / "bad-policies").iterdir() if path.is_dir())
LACKING = {"missing-row", "table-that-code-reads-otherwise"}
"""In order but for what the program reads: a plan first misses what these few tables leave out altogether."""
SCHEMA = Draft202012Validator(json.loads((schemas_dir() / "policy.schema.json").read_text()))


def _named(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("case", CASES, ids=_named)
def test_every_problem_is_said(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "check", str(case / "policies")]) == 2
    said = capsys.readouterr()
    assert said.out == (case / "expected.txt").read_text(encoding="utf-8")
    assert said.err == ""


@pytest.mark.parametrize("case", CASES, ids=_named)
def test_plan_refuses_the_set_in_one_line(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--policies", str(case / "policies"), "plan", "gemma-3-270m", "--host", "rtx-4090"])
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert said.err.count("\n") == 1
    if case.name in LACKING:
        assert said.err.startswith("gezel-rules: policies: no decision 'prompt.endpoint', which every plan needs (and ")
        return
    first = next(
        line for line in (case / "expected.txt").read_text().splitlines() if not line.startswith("policies/logs")
    )
    assert said.err.removeprefix("gezel-rules: ").startswith(first)


@pytest.mark.parametrize("case", CASES, ids=_named)
def test_as_json(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "check", str(case / "policies"), "--json"]) == 2
    report = json.loads(capsys.readouterr().out)
    lines = (case / "expected.txt").read_text(encoding="utf-8").splitlines()
    for problem in report["problems"]:
        assert f"{problem['file']}:{problem['line']}:{problem['column']}: {problem['message']}" in lines


@pytest.mark.parametrize("case", CASES, ids=_named)
def test_what_the_schema_refuses_the_loader_refuses(case: Path) -> None:
    directory = case / "policies"
    for path in policy_paths(directory):
        try:
            plain = load_yaml(path).plain()
        except BadInput:
            continue  # refused before anybody looks at its shape
        if not SCHEMA.is_valid(plain):
            assert drafts_of([path], directory).problems, path
