"""The tests beside the shipped policies: all as expected, and nothing of consequence left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gezel_rules.cli import main
from gezel_rules.documents.source import load_yaml
from gezel_rules.places import policies_dir, schemas_dir

FILES = sorted(policies_dir().rglob("*_test.yaml"))


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    """What ``policy test`` says of the shipped policies, with everything it can tell."""
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("builtins.print", lambda text, **_: printed.append(text))
        assert main(["policy", "test", "--coverage", "--mutation", "--json"]) == 0
    found: dict[str, Any] = json.loads(printed[0])
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(policies_dir()).as_posix())
def test_editors_accept_them(path: Path) -> None:
    schema = json.loads((schemas_dir() / "policy-test.schema.json").read_text())
    assert list(Draft202012Validator(schema).iter_errors(load_yaml(path).plain())) == []
    line = path.read_text().partition("\n")[0]
    named = path.parent / line.removeprefix("# yaml-language-server: $schema=")
    assert named.resolve() == (schemas_dir() / "policy-test.schema.json").resolve()


def test_editors_refuse_what_is_none() -> None:
    schema = json.loads((schemas_dir() / "policy-test.schema.json").read_text())
    case = {"tests": "a/b", "decisions": {"a.b": {"it is so": {"expekt": 1}}}}
    said = [error.message for error in Draft202012Validator(schema).iter_errors(case)]
    assert sorted(said) == [
        "'expect' is a required property", "Additional properties are not allowed ('expekt' was unexpected)",
    ]  # fmt: skip


def test_all_is_as_expected(said: dict[str, Any]) -> None:
    assert said["failed"] == 0
    assert len(said["cases"]) > 800
    assert said["files"] == len(FILES)


def test_every_rule_fires_and_does_not_fire(said: dict[str, Any]) -> None:
    assert sum(file["rules"]["all"] for file in said["coverage"]) > 600
    assert all(file["rules"]["shown"] == file["rules"]["all"] for file in said["coverage"])


def test_conditions_come_to_everything_they_can(said: dict[str, Any]) -> None:
    for file in said["coverage"]:
        assert file["conditions"]["shown"] >= 0.9 * file["conditions"]["all"], file["file"]
    shown, every = (sum(file["conditions"][key] for file in said["coverage"]) for key in ("shown", "all"))
    assert shown >= 0.95 * every > 1000


def test_mistakes_would_be_noticed(said: dict[str, Any]) -> None:
    mutants = sum(file["mutants"] for file in said["mutation"])
    survivors = [each for file in said["mutation"] for each in file["survivors"]]
    assert mutants > 1500
    assert len(survivors) <= 0.05 * mutants
    assert [each for each in survivors if not each["reason"]] == []
    assert [each for file in said["mutation"] for each in file["idle"]] == []
