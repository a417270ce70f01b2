"""``policy test`` as people call it: what may be named, what is printed, and the exit status."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gezel_rules.cli import main
from gezel_rules.engines import registry
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies
from gezel_rules.policy.seal import file_names

WINDOW = "llama-cpp/window"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(policies_dir(), tmp_path / "policies")
    return tmp_path / "policies"


def outcome(capsys: pytest.CaptureFixture[str], *argv: str, status: int = 0) -> list[str]:
    assert main(["policy", "test", *argv]) == status
    said = capsys.readouterr()
    assert said.err == ""
    return said.out.splitlines()


def cases(capsys: pytest.CaptureFixture[str], *argv: str) -> set[str]:
    """What the cases are about that were run."""
    assert main(["policy", "test", *argv, "--json"]) == 0
    return {case["about"] for case in json.loads(capsys.readouterr().out)["cases"]}


NAMED = {
    "a policy": WINDOW,
    "a policy by its last word": "window",
    "a test file": f"policies/{WINDOW}_test.yaml",
    "a policy file": f"policies/{WINDOW}.yaml",
    "a path anywhere": str(policies_dir() / "llama-cpp" / "window_test.yaml"),
}


@pytest.mark.parametrize("name", NAMED)
def test_one_policy(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    about = cases(capsys, NAMED[name])
    assert about == {
        "window.wanted", "window.floor", "window.fits", "window.tokens", "slots.wanted", "slots.least", "slots.count",
    }  # fmt: skip


def test_decisions_by_their_names_and_their_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert cases(capsys, "window.floor") == {"window.floor"}
    assert cases(capsys, "--threads", "slots.least") == {"flag.threads", "slots.least"}


def test_a_folder_is_all_that_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cases(capsys, "llama-cpp") > cases(capsys, WINDOW)


def test_a_name_that_means_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "test", "window.flor"]) == 2
    said = capsys.readouterr()
    assert (
        said.err == "gezel-rules: no test file, policy or tested decision 'window.flor'; did you mean 'window.floor'?\n"
    )


def test_what_passes_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(capsys, "window.floor") == ["tested 1 policy file with 2 cases: all as expected"]


def test_a_rule_changed_on_purpose(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copy / f"{WINDOW}.yaml"
    path.write_text(path.read_text().replace("default: {tokens: 65536}", "default: {tokens: 32768}"))
    lines = outcome(capsys, str(copy), "window", status=1)
    assert lines[:5] == [
        "policies/llama-cpp/window_test.yaml:21: window.wanted: 64k where nobody asks",
        "    expected  65536, by rule default",
        "    got       32768, by rule default (policies/llama-cpp/window.yaml:56)",
        "    because   nobody asks for another window",
        "    why not   no rule of window.wanted gives 65536 on these facts",
    ]
    assert lines[-1].endswith(" failed")


def test_a_launch_that_is_otherwise(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copy / "llama-cpp" / "placement_test.yaml"
    path.write_text(path.read_text().replace("{refused: no-room}", "{flags: {--fit: on}}"))
    lines = outcome(capsys, str(copy), "placement", status=1)
    assert lines[0].endswith(": launch: a model that does not fit anywhere is refused")
    assert lines[1] == "    expected  refused not set"
    assert lines[2].startswith("    got       no-room, by rule no-room (policies/llama-cpp/placement.yaml:")
    assert lines[3].startswith("    because   needs ")


def test_a_figure_that_only_the_arithmetic_reads(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copy / "memory" / "capacity.yaml"
    path.write_text(path.read_text().replace("headroom_mib: 768", "headroom_mib: 1024"))
    lines = outcome(capsys, str(copy), "capacity", status=1)
    assert lines[1:3] == ["    expected  gpu.usable 24470618112", "    got       24202182656"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tests: llama-cpp/window\ndecisions: [", "not valid YAML"),
        ("tests: llama-cpp/windw\n", "tests must name the policy beside this file: 'llama-cpp/window'"),
        ("tests: llama-cpp/window\nlaunches: {a: {model: m, host: h}}\n", "a launch has no 'expect'"),
    ],
)
def test_a_file_at_fault(text: str, said: str, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / f"{WINDOW}_test.yaml").write_text(text)
    assert main(["policy", "test", str(copy)]) == 2
    found = capsys.readouterr()
    assert said in found.err and "policies/llama-cpp/window_test.yaml:" in found.err
    assert found.out == ""


def test_policies_without_tests(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in copy.rglob("*_test.yaml"):
        path.unlink()
    assert main(["policy", "test", str(copy)]) == 2
    assert capsys.readouterr().err == f"gezel-rules: {copy}: no tests (expected NAME_test.yaml beside NAME.yaml)\n"


def test_tests_are_no_part_of_what_is_judged_by(copy: Path) -> None:
    """A record says by which rules a launch was decided: those stay the same whoever tests them."""
    family = registry.family("llama-cpp")
    before = read_policies(copy, family, None)
    for path in copy.rglob("*_test.yaml"):
        path.write_text("tests: nothing\n")
    after = read_policies(copy, family, None)
    assert before.digest == after.digest
    assert not any("_test" in file.file for file in after.files)
    assert not any(name.endswith("_test.yaml") for name in file_names(copy))
