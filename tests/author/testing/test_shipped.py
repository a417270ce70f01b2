"""The tests beside the shipped policies: all as expected, and nothing of consequence left out."""

from __future__ import annotations

import json

import pytest

from gezel_rules.cli import main


def test_all_is_as_expected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "test", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["failed"] == 0
    assert len(said["cases"]) > 50
