"""Files that have no end, are none, or say too much: one short answer, in little time and memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from gezel_rules.documents.node import MAX_FILE_BYTES, MAX_SHOWN
from gezel_rules.documents.source import MAX_PROBLEMS, MAX_VALUES, parse_yaml, read_text
from gezel_rules.documents.source import Text as Source
from gezel_rules.errors import BadInput

MOST_BYTES = 128 << 20


def problems(text: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        parse_yaml(Source("x.yaml", text))
    return caught.value


def test_duplicate_keys_on_one_line() -> None:
    """120 KB of them were 3.6 GB of output."""
    found = problems("{" + "a: 1, " * 20_000 + "a: 1}")
    assert len(found.problems) == MAX_PROBLEMS + 1
    assert str(found.problems[-1]) == "x.yaml: and perhaps more: reading stopped here"
    assert sum(len(problem.with_caret()) for problem in found.problems) < 100_000


def test_a_long_line_is_quoted_around_its_fault() -> None:
    (problem,) = problems("{" + "".join(f"k{n}: 1, " for n in range(1000)) + "k500: 2, z: 3}").problems
    _, quoted, caret = problem.with_caret().splitlines()
    assert len(quoted) <= MAX_SHOWN + 4
    assert quoted[caret.index("^") :].startswith("k500: 2")
    assert quoted[4] == "…"
    (problem,) = problems("{a: 1, a: 2, c: '" + "x" * 1000 + "'}").problems
    assert problem.with_caret().splitlines()[1].endswith("…")


def test_a_long_word_in_a_message() -> None:
    word = "w" * 50_000
    (problem,) = problems(f"{word}: 1\n{word}: 2\n").problems
    assert len(str(problem)) < 2000


def test_a_list_of_four_megabytes() -> None:
    found = problems("[" + "1," * 1_900_000 + "1]")
    assert f"more than {MAX_VALUES:,} values" in str(found)


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b" " * (MAX_FILE_BYTES + 1))
    with pytest.raises(BadInput, match=r"large\.yaml: larger than 4 MiB$"):
        read_text(path)


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def _ask(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gezel_rules.cli", *args], env={**os.environ, **environ}, capture_output=True, text=True,
        timeout=30, preexec_fn=_bounded, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("role", ["policy", "host", "site", "entry"])
def test_what_is_no_plain_file(tmp_path: Path, role: str, kind: str) -> None:
    names = {
        "policy": "policies/kv/kv.yaml",
        "host": "host.yaml",
        "site": "config/site.yaml",
        "entry": "catalog/models/m.yaml",
    }
    path = tmp_path / names[role]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to("/dev/zero") if kind == "device" else os.mkfifo(path)
    told = {
        "policy": ["--policies", str(tmp_path / "policies"), "plan", "qwen3-8b", "--host", "rtx-4090"],
        "host": ["plan", "qwen3-8b", "--host", str(path)],
        "site": ["plan", "qwen3-8b", "--host", "rtx-4090"],
        "entry": ["--catalog", str(tmp_path / "catalog"), "plan", "m"],
    }[role]
    answer = _ask(*told, GEZEL_CONFIG=str(tmp_path / "config"))
    assert answer.returncode == 2
    assert answer.stderr.rstrip().endswith("not a plain file")
    assert answer.stderr.count("\n") == 1
