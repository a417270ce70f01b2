"""One mistake gives one message, where the mistake is: what depends on it is silent."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from gezel_rules.author.check import Against, Report, check_directory
from gezel_rules.cli import main
from gezel_rules.places import policies_dir, schemas_dir
from gezel_rules.planner.policies import LANGUAGES
from gezel_rules.policy.files import all_paths

KV, WINDOW, LOGS = "llama-cpp/kv.yaml", "llama-cpp/window.yaml", "llama-cpp/logs/"
AGAINST = Against(
    LANGUAGES, schemas_dir() / "policy.schema.json", schemas_dir() / "log-policy.schema.json", date(2026, 1, 1)
)
MUTATIONS = 4  # of each file
ONCE = 0.95  # of the mistakes that are found are said in one message
TOKEN = re.compile(r"[A-Za-z_]\w*(?:[.-]\w+)*|[0-9]+|\S")

KINDS = {
    "decision-misspelt-where-it-is-read": (KV, "        then: kv.coarser\n", "        then: kv.coarsr\n", "kv.coarsr"),
    "decision-renamed": (KV, "\n  kv.coarser:\n", "\n  kv.coarsr:\n", "  kv.coarsr:"),
    "decision-many-read-renamed": (WINDOW, "\n  window.wanted:\n", "\n  window.wnated:\n", "  window.wnated:"),
    "decision-the-program-reads-renamed": (KV, "\n  kv.type:\n", "\n  kv.tpye:\n", "  kv.tpye:"),
    "table-renamed": (KV, "\n  kv_types:\n", "\n  kv_typs:\n", "  kv_typs:"),
    "table-without-rows": (KV, "\n    rows:\n      f32:", "\n    row:\n      f32:", "    row:"),
    "column-renamed": (KV, "\n      quantised: {", "\n      quantisd: {", "      quantisd:"),
    "column-of-another-kind": (KV, "quantised: {kind: flag", "quantised: {kind: flga", "flga"),
    "row-renamed": (KV, "\n      q8_0:   {", "\n      q8_O:   {", "      q8_O:"),
    "row-of-backends-renamed": ("backends/backends.yaml", "\n      cuda:  ", "\n      cudda:  ", "      cudda:"),
    "condition-that-is-no-expression": (KV, "when: kv.coarser is not none", "when: kv.coarser is ont none", "ont none"),
    "condition-that-guards-others": (
        "llama-cpp/show.yaml", "when: drafter.path is not none", "when: drafter.path is ont none", "ont none",
    ),
    "key-misspelt": (KV, "        then: kv.coarser\n", "        hten: kv.coarser\n", "        hten:"),
    "then-without-a-value": (WINDOW, "        then: 1\n", "        then:\n", "        then:"),
    "tab": (KV, "\n  kv.coarser:\n", "\n\tkv.coarser:\n", "\tkv.coarser:"),
    "tab-in-a-file-all-read": ("backends/backends.yaml", "\n      label:", "\n\tlabel:", "\tlabel:"),
    "tab-in-log-classes": (LOGS + "failures.yaml", "\n  - id: cuda-oom", "\n\t- id: cuda-oom", "\t- id: cuda-oom"),
    "tab-in-log-lines": (LOGS + "lines.yaml", "\nprefixes:", "\n\tprefixes:", "\tprefixes:"),
    "failure-class-renamed": (LOGS + "failures.yaml", "  - id: cuda-oom", "  - id: cuda-omm", "cuda-omm"),
    "failure-class-misspelt": (LOGS + "memory.yaml", "failure: cuda-oom", "failure: cuda-omm", "cuda-omm"),
}  # fmt: skip


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(policies_dir(), tmp_path / "policies")
    return tmp_path / "policies"


def checked(directory: Path) -> Report:
    return check_directory(directory, AGAINST)


@pytest.mark.parametrize("kind", [kind for kind, case in KINDS.items() if case[3] is not None])
def test_one_mistake_one_message(kind: str, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, old, new, shown = KINDS[kind]
    path = copy / file
    text = path.read_text()
    assert old in text, "the shipped policies say this no more"
    path.write_text(text.replace(old, new, 1))
    (problem,) = checked(copy).problems
    assert problem.span is not None and problem.span.file == f"policies/{file}"
    assert shown is not None and shown in (problem.line_text or "")
    assert main(["--policies", str(copy), "plan", "qwen3-8b", "--host", "rtx-4090"]) in (0, 2)
    said = capsys.readouterr().err
    if LOGS not in file:
        assert said == f"gezel-rules: {problem}\n"


@pytest.mark.parametrize(
    "file",
    [KV, WINDOW, "llama-cpp/speculation.yaml", "llama-cpp/architectures.yaml", LOGS + "failures.yaml",
     "backends/backends.yaml", "llama-cpp/placement.yaml"],
)  # fmt: skip
def test_a_missing_file_is_said_once(file: str, copy: Path) -> None:
    (copy / file).unlink()
    (problem,) = checked(copy).problems
    assert problem.span is None
    assert problem.message.startswith("policies: no") and "needs" in problem.message + "needs"


def test_two_mistakes_are_two_messages_the_cause_first(copy: Path) -> None:
    """The tab's file comes later by name; the misspelt word is no consequence of it."""
    for file, old, new in (
        (WINDOW, "\n  window.floor:", "\n\twindow.floor:"),
        (KV, "settings.kv_type is", "setings.kv_type is"),
    ):
        text = (copy / file).read_text()
        (copy / file).write_text(text.replace(old, new, 1))
    tab, word = checked(copy).problems
    assert tab.span is not None and tab.span.file == f"policies/{WINDOW}"
    assert word.message.startswith("unknown fact 'setings.kv_type'")


def test_check_answers_on_stdout(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / KV).write_text((copy / KV).read_text().replace("then: kv.coarser", "then: kv.coarsr", 1))
    assert main(["policy", "check", str(copy)]) == 2
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.endswith(": 1 problem\n")


def _mutated(text: str, chance: random.Random) -> str:
    """The text with one token misspelt, doubled, cut, exchanged for another, or given a quote or a tab."""
    tokens = [m for m in TOKEN.finditer(text) if "#" not in text[text.rfind("\n", 0, m.start()) + 1 : m.start()]]
    token = chance.choice(tokens)
    word, at = token[0], chance.randrange(len(token[0]))
    new = chance.choice((
        word[:at] + word[at + 1 :], word[:at] + word[at] + word[at:], word[::-1], word + "'", "\t" + word,
        chance.choice(tokens)[0],
    ))  # fmt: skip
    return text[: token.start()] + new + text[token.end() :]


def _counts(directory: Path) -> Iterator[int]:
    for path in all_paths(directory):
        text, chance = path.read_text(), random.Random(path.name)
        for _ in range(MUTATIONS):
            path.write_text(_mutated(text, chance))
            yield len(checked(directory).problems)
        path.write_text(text)


def test_whatever_token_is_wrong_it_is_nearly_always_one_message(copy: Path) -> None:
    found = [count for count in _counts(copy) if count]
    assert len(found) > MUTATIONS * 7
    assert found.count(1) >= ONCE * len(found), found
