"""``policies/README.md`` teaches the language on one screen: what it shows loads, passes and is covered."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from gezel_rules.author.testing.held import coverage_of, mutation_of
from gezel_rules.author.testing.run import benches_of, run_suites, words_of
from gezel_rules.author.testing.suites import read_suites
from gezel_rules.cli import COMMANDS, main
from gezel_rules.engines import registry
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import language_of
from gezel_rules.policy.language import Language
from gezel_rules.policy.seal import compile_policies

PAGE = (policies_dir() / "README.md").read_text(encoding="utf-8")
FAMILY = "llama-cpp"
RECORD = Path(__file__).parents[2] / "data" / "records" / "format-2.json"
BACKENDS = policies_dir() / "backends" / "backends.yaml"


def shown(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n```yaml\n((?:.*\n)*?)```", PAGE)
    assert found, name
    return found[1]


def test_what_it_shows_passes_and_lacks_nothing(tmp_path: Path) -> None:
    base = tmp_path / "policies"
    for folder, name, text in (
        ("demo", "slots.yaml", shown("policy")),
        ("demo", "slots_test.yaml", shown("test")),
        ("backends", "backends.yaml", BACKENDS.read_text()),
    ):
        (base / folder).mkdir(parents=True, exist_ok=True)
        (base / folder / name).write_text(text)
    language, family = language_of(FAMILY), registry.family(FAMILY)
    policies = compile_policies(base, FAMILY, {FAMILY: lambda: Language(language.facts, language.functions)})
    words = words_of(family.vocabulary(), family.signatures(), policies)
    suites = read_suites(base, lambda family: words, None)
    benches = benches_of(suites)
    results = run_suites(suites, _no_launch, benches)
    assert [len(each.all) for each in results] == [6] and not results[0].failed
    assert [gap for file in coverage_of(results, benches, True) for gap in file.gaps] == []
    assert [each for file in mutation_of(results, benches) for each in file.survivors] == []


def _no_launch(*_: object) -> None:
    raise AssertionError("no launch is planned here")


def test_the_walk_from_a_change_to_its_effect_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    walk = re.search(r"<!-- walk -->\n```sh\n((?:.*\n)*?)```", PAGE)
    assert walk
    lines = [line.partition("#")[0].split() for line in walk[1].splitlines()]
    shutil.copytree(policies_dir(), tmp_path / "policies")
    monkeypatch.chdir(tmp_path)

    def does(*words: str) -> tuple[int, str]:
        assert ["gezel-rules", *words] in lines
        status = main([str(RECORD) if word == "RECORD" else word for word in words])
        return status, capsys.readouterr().out

    shutil.copytree("policies", "mine")
    kv = Path("mine", "llama-cpp", "kv.yaml")
    before = kv.read_text()
    kv.write_text(re.sub(r"( q8_0: .*automatic: )true", r"\1false", before))
    assert kv.read_text() != before
    assert does("policy", "check", "mine")[0] == 0
    status, said = does("policy", "test", "mine")
    assert status == 1
    assert "a 24B model on a card of 24 GiB keeps its whole window in a coarser cache" in said
    status, said = does("policy", "diff", "policies", "mine")
    assert (status, "row q8_0 of kv_types, changed" in said) == (0, True)
    assert re.search(r"(\d+) of 240 launches change", said)[1] == re.search(r"# (\d+) launches lose", PAGE)[1]  # type: ignore[index]
    status, said = does("replay", "RECORD", "--policies", "mine")
    assert (status, "decided again: the same launch" in said) == (0, True)
    shutil.copy("policies/llama-cpp/kv.yaml", kv)
    assert "no rule and no table differs" in does("policy", "diff", "policies", "mine")[1]


def test_it_fits_on_a_screen() -> None:
    assert len(PAGE.splitlines()) <= 100
    assert max(map(len, PAGE.splitlines())) <= 150


@pytest.mark.parametrize("command", re.findall(r"`gezel-rules ([^`]+)`", PAGE))
def test_its_commands_work(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.split()[0] in COMMANDS
    assert main(command.split()) == 0
