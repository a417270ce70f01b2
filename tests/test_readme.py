"""What the README shows is what the program prints, and what it links to is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from gezel_rules.cli import COMMANDS, main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_explanation_is_a_real_one(capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.search(r"<!-- explain -->\n```console\n\$ gezel-rules (.*)\n((?:.*\n)*?)```", README)
    assert shown, "the README shows no explanation"
    assert main(shlex.split(shown[1])) == 0
    assert capsys.readouterr().out == shown[2]


def test_the_tests_have_one_command() -> None:
    commands = re.findall(r"<!-- test command -->\n```sh\n(.*)\n```", README)
    assert len(commands) == 1
    assert commands[0].endswith("-m pytest")


def test_every_command_named_is_one() -> None:
    named = set(re.findall(r"gezel-rules (?:--policies DIR )?([a-z]+)", README))
    assert named - set(COMMANDS) == set()


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
