"""The tests beside the shipped policies: all as expected, and nothing of consequence left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gezel_rules.cli import main


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    """What ``policy test`` says of the shipped policies, with everything it can tell."""
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("builtins.print", lambda text, **_: printed.append(text))
        assert main(["policy", "test", "--coverage", "--mutation", "--json"]) == 0
    found: dict[str, Any] = json.loads(printed[0])
    return found


def test_all_is_as_expected(said: dict[str, Any]) -> None:
    assert said["failed"] == 0
    assert len(said["cases"]) > 600


def test_every_rule_fires_and_does_not_fire(said: dict[str, Any]) -> None:
    assert [gap for file in said["coverage"] for gap in file["gaps"] if "fires" in gap["says"]] == []
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
