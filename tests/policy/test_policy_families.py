"""Policies of several engine families side by side: each is judged by its own files and those for all."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from small_set import FACTS, FUNCTIONS, policy_text, write_set

from gezel_rules.author.check import Against, Report, check_directory
from gezel_rules.errors import BadInput
from gezel_rules.lang.types import INTEGER
from gezel_rules.places import schemas_dir
from gezel_rules.policy.files import all_paths
from gezel_rules.policy.language import Language, Languages
from gezel_rules.policy.load import load_drafts
from gezel_rules.policy.seal import load_policies
from gezel_rules.policy.sources import read_sources

SHARED = policy_text("base/base", "slots: {then: \"limits['low']\"}", "limits: {low: 1, high: 2}")
OWN = policy_text("one/argv", "flag.model: {flag: --model, then: model.arch}", "spellings: {a: b}")
OTHER = policy_text("two/argv", "flag.model: {flag: -m, then: voice.pitch * slots}", "spellings: {c: d}")


def _of(family: str, text: str) -> str:
    return text.replace("\nversion:", f"\nengine: {family}\nversion:", 1)


def _languages() -> Languages:
    """Two families: the second knows a fact that the first does not."""
    return {
        "one": lambda: Language(FACTS, FUNCTIONS),
        "two": lambda: Language({**FACTS, "voice.pitch": INTEGER}, FUNCTIONS),
    }


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_set(tmp_path, {"base/base": SHARED, "one/argv": _of("one", OWN)})


@pytest.fixture
def both(base: Path) -> Path:
    return write_set(base.parent, {"two/argv": _of("two", OTHER)})


def test_two_families_may_define_the_same_names(both: Path) -> None:
    one, two = (load_policies(both, family, _languages()) for family in ("one", "two"))
    assert (one.decisions["flag.model"].flag, two.decisions["flag.model"].flag) == ("--model", "-m")
    assert (one.tables["spellings"], two.tables["spellings"]) == ({"a": "b"}, {"c": "d"})
    assert [file.policy for file in one.files] == ["base/base", "one/argv"]
    assert [file.engine for file in two.files] == ["", "two"]


def test_another_familys_files_change_nothing(base: Path, tmp_path: Path) -> None:
    alone = load_policies(base, "one", _languages(), tmp_path / "cache")
    write_set(
        base.parent,
        {"two/argv": _of("two", OTHER), "two/logs/own": _of("two", "policy: two/logs/own\nversion: 1.0.0\n")},
    )
    beside = load_policies(base, "one", _languages(), tmp_path / "cache")
    assert (beside.digest, beside.files, beside.flags) == (alone.digest, alone.files, alone.flags)
    assert dict(beside.decisions) == dict(alone.decisions)
    assert beside.tables == alone.tables


def test_a_family_may_not_redefine_what_is_shared(base: Path) -> None:
    path = base / "one" / "argv.yaml"
    path.write_text(path.read_text() + "  slots: {then: 2}\n")
    with pytest.raises(BadInput, match=r"one/argv\.yaml:9:3: 'slots' is already defined at policies/base/base\.yaml:7"):
        load_policies(base, "one", _languages())
    assert load_policies(base, "two", _languages()).decisions.keys() == {"slots"}


def test_every_family_is_checked_in_its_own_language(both: Path) -> None:
    against = Against(
        _languages(), schemas_dir() / "policy.schema.json", schemas_dir() / "log-policy.schema.json", date(2026, 1, 1)
    )
    report = check_directory(both, against)
    assert _wrong(report) == []
    assert (report.files, report.decisions, report.tables) == (3, 3, 3)
    path = both / "one" / "argv.yaml"
    path.write_text(path.read_text().replace("then: model.arch", "then: voice.pitch"))
    assert _wrong(check_directory(both, against)) == ["policies/one/argv.yaml:8:37: unknown fact 'voice.pitch'"]


def _wrong(report: Report) -> list[str]:
    """The problems but for what is idle: so little is read here."""
    return [str(problem) for problem in report.problems if not problem.message.startswith("nothing reads ")]


def test_a_misnamed_family_is_one_problem(both: Path) -> None:
    """What the file defines is not missed as well."""
    write_set(
        both.parent, {"one/more": policy_text("one/more", "half: {then: slots // 2 if flag.model is none else 0}")}
    )
    path = both / "one" / "argv.yaml"
    path.write_text(path.read_text().replace("engine: one", "engine: onne"))
    drafts = load_drafts(read_sources(all_paths(both), both, _languages()), "one")
    assert [problem.message for problem in drafts.problems] == ["unknown engine family 'onne'; did you mean 'one'?"]
    assert "flag.model" in drafts.decisions


def test_log_policies_have_families_too(base: Path) -> None:
    log = "policy: {}\nengine: {}\nversion: 1.0.0\nsummary: Words.\n"
    for family in ("one", "two"):
        write_set(base.parent, {f"{family}/logs/own": log.format(f"{family}/logs/own", family)})
    one = load_policies(base, "one", _languages())
    assert [file.policy for file in one.files] == ["base/base", "one/argv", "one/logs/own"]
    assert [source.policy for source in one.beside.log_sources()] == ["one/logs/own"]
