"""What code reads of policies by name is declared, and a set without it is refused with words."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_set import policy_text, write_set

from gezel_rules.cli import main
from gezel_rules.documents.source import load_yaml
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import LANGUAGES
from gezel_rules.policy.files import all_paths

NEEDS = LANGUAGES["llama-cpp"]().needs()
BY_CALL = ("rows", "row", "listed", "unlisted")
CODE = Path(__file__).parent.parent.parent / "gezel_rules"


def _looked_up(tree: ast.AST, what: str) -> Iterator[str]:
    """The literals in ``…tables["x"]``, ``policies.rows("x", …)`` and the like; ``what`` is the name before the
    bracket."""
    for node in ast.walk(tree):
        key = None
        if isinstance(node, ast.Subscript) and _last(node.value) == what and what not in BY_CALL:
            key = node.slice
        elif isinstance(node, ast.Call) and _last(node.func) == what and node.args:
            key = node.args[0]
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _read_by_code(*names: str) -> set[str]:
    trees = [ast.parse(path.read_text()) for path in CODE.rglob("*.py") if path.parent.name not in ("policy", "lang")]
    return {found for tree in trees for name in names for found in _looked_up(tree, name)}


def test_every_table_that_code_reads_is_declared() -> None:
    read = _read_by_code("tables", "_tables", *BY_CALL)
    assert len(read) > 20
    assert sorted(read - set(NEEDS.tables)) == []


def test_every_decision_that_code_reads_is_declared() -> None:
    known = {name for path in all_paths(policies_dir()) for name in load_yaml(path).plain().get("decisions", ())}
    read = _read_by_code("value", "get", "judgements") & known
    assert len(read) > 6
    assert sorted(read - set(NEEDS.decisions)) == []


def test_what_is_declared_is_there() -> None:
    assert main(["policy", "check"]) == 0


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(policies_dir(), tmp_path / "policies")
    return tmp_path / "policies"


def _replace(directory: Path, name: str, old: str, new: str) -> None:
    path = directory / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def test_a_set_without_them_is_refused(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _replace(copy, "llama-cpp/placement.yaml", "\n  placement_words:", "\n  placement_word:")
    _replace(copy, "memory/capacity.yaml", "    ram: ", "    rum: ")
    _replace(copy, "backends/backends.yaml", "label: {kind: text,", "label: {kind: text, optional: true,")
    _replace(copy, "llama-cpp/kv.yaml", "      quantised: {kind: flag,", "      quantized: {kind: flag,")
    kv = copy / "llama-cpp" / "kv.yaml"
    kv.write_text(kv.read_text().replace("{quantised: ", "{quantized: ").replace(".quantised", ".quantized"))
    placement = copy / "llama-cpp" / "placement.yaml"
    placement.write_text(placement.read_text().replace(".quantised", ".quantized"))
    _replace(copy, "llama-cpp/address.yaml", "\n  prompt.endpoint:", "\n  prompt.end:")
    assert main(["policy", "check", str(copy)]) == 2
    said = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert [re.sub(r":\d+:\d+:", ":", line) for line in said] == [
        "policies: no decision 'prompt.endpoint', which every plan needs",
        "policies/backends/backends.yaml: column 'label' of 'backends' must be text, not text or none",
        "policies/llama-cpp/kv.yaml: table 'kv_types' must declare column 'quantised' (true or false): "
        "this program reads it",
        "policies/llama-cpp/placement.yaml: nothing speaks of this; did you mean 'placement_words', of which this "
        "program speaks and which is not there?",
        "policies/memory/capacity.yaml: table 'pool_kinds' has no row 'ram', which this program reads",
        f"checked {len(all_paths(copy))} files: 5 problems",
    ]
    assert main(["--policies", str(copy), "plan", "qwen3-8b", "--host", "rtx-4090"]) == 2
    assert capsys.readouterr().err == (
        "gezel-rules: policies: no decision 'prompt.endpoint', which every plan needs (and 4 more)\n"
    )


def test_cells_of_another_kind_are_refused(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _replace(copy, "memory/capacity.yaml", "share: 1.0,", "share: most,")
    assert main(["policy", "check", str(copy)]) == 2
    assert "'share' of 'pool_kinds' must be number, not text" in capsys.readouterr().out


def test_lines_that_name_no_port_are_refused(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where they are written, and once; an expression at fault is not asked for its groups."""
    _replace(copy, "llama-cpp/address.yaml", r"hostname: (?P<host>[^\s,]+), port: (?P<port>\d+)", r"port: (\d+)")
    _replace(copy, "llama-cpp/devices.yaml", "(?P<says>.*)", "(?P<said>.*)")
    assert main(["policy", "check", str(copy)]) == 2
    said = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert [re.sub(r":\d+:", ":", line) for line in said[:-1]] == [
        "policies/llama-cpp/address.yaml:10: must name (?P<host>…) and (?P<port>…)",
        "policies/llama-cpp/devices.yaml:16: must name (?P<says>…)",
    ]
    _replace(copy, "llama-cpp/address.yaml", r"listening on https?://", r"listening (on https?://")
    assert main(["policy", "check", str(copy)]) == 2
    assert ":35: not a regular expression: missing )" in capsys.readouterr().out.splitlines()[0]


def test_part_of_a_set_can_be_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = write_set(tmp_path, {"kv/kv": policy_text("kv/kv", "a: {then: 1}")})
    assert main(["policy", "check", str(base)]) == 0
    said = capsys.readouterr()
    whole = len(NEEDS.tables) + len(NEEDS.decisions)
    assert said.out == (
        f"warning: policies: part of a set: {whole} of {whole} decisions and tables that a plan needs are not here "
        "[part-of-a-set]\n"
        "checked 1 file, 1 decision, 0 tables: no problems (1 warning)\n"
    )
    assert main(["--policies", str(base), "plan", "qwen3-8b", "--host", "rtx-4090"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_one_fault_is_said_once(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What reads a decision at fault is not blamed for the type it then seems to have."""
    _replace(
        copy, "llama-cpp/placement.yaml", "then: place(kv.type, window.tokens,", "then: place(kv.type, window.tokns,"
    )
    assert main(["policy", "check", str(copy)]) == 2
    said = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert len(said) == 2
    assert "unknown fact 'window.tokns'; did you mean 'window.tokens'?" in said[0]
