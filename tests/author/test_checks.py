"""What is found beside what keeps a set from loading: rules that meet, and how a finding is told and silenced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest
from small_set import languages, policy_text, write_set

from gezel_rules.author.check import Against, Report, check_directory
from gezel_rules.author.checks import CHECKS, ERROR, WARNING
from gezel_rules.author.formats import github, sarif
from gezel_rules.cli import main
from gezel_rules.errors import Problem, Span
from gezel_rules.places import schemas_dir
from gezel_rules.policy.language import Languages


def _against() -> Against:
    known: Languages = languages()
    return Against(
        known, schemas_dir() / "policy.schema.json", schemas_dir() / "log-policy.schema.json", date(2026, 12, 1)
    )


def _report(tmp_path: Path, decisions: str, tables: str = "") -> Report:
    base = write_set(tmp_path, {"kv/kv": policy_text("kv/kv", decisions, tables)})
    return check_directory(base, _against())


def _found(report: Report) -> Mapping[str, str]:
    """Check → message, of what is no broken file and no reminder that the set is small."""
    both = (*report.problems, *report.warnings)
    return {problem.check: problem.message for problem in both if problem.check != "part-of-a-set"}


# ---------------------------------------------------------------- rules that meet


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        (
            ("model.layers < 5", "model.layers > 3"),
            {"overlap": "rules 'r0' and 'r1' of 'warn.x' fire together where model.layers is 4"},
        ),
        (
            ("model.layers < 5", "model.layers > 5"),
            {"gap": "no rule of 'warn.x' fires where model.layers is 5"},
        ),
        (("model.layers < 5", "model.layers >= 5"), {}),
        (("model.moe", "not model.moe"), {}),
        (
            ("model.moe", "not model.moe and model.layers > 2"),
            {"gap": "no rule of 'warn.x' fires where model.moe is false, model.layers is 1"},
        ),
    ],
)
def test_under_unique_two_that_fire_together_and_facts_without_a_rule_are_shown(
    tmp_path: Path, conditions: tuple[str, ...], said: Mapping[str, str]
) -> None:
    rules = "".join(f"\n    - {{id: r{n}, when: {text}, then: {n}}}" for n, text in enumerate(conditions))
    assert _found(_report(tmp_path, f"warn.x:\n  hit: unique\n  rules:{rules}")) == said


@pytest.mark.parametrize(
    ("conditions", "finds"),
    [
        (("model.layers > 5", "model.layers == 7"), True),
        (("model.layers > 5", "model.layers == 5"), False),
        (("model.layers > 9", "model.layers < 10", "model.moe"), True),
        (("model.layers > model.layers + 1", "model.moe"), False),  # sums: nothing is proven of them
    ],
)
def test_a_rule_that_others_keep_from_deciding_is_shown(
    tmp_path: Path, conditions: tuple[str, ...], finds: bool
) -> None:
    rules = "".join(f"\n    - {{id: r{n}, when: {text}, then: {n}}}" for n, text in enumerate(conditions))
    report = _report(tmp_path, f"warn.x:\n  rules:{rules}")
    found = {*_found(report), *(problem.message for problem in report.problems if "never reached" in problem.message)}
    assert bool(found) is finds, found


# ---------------------------------------------------------------- silenced

ONE_TOO_MANY = """
warn.x:
  hit: unique
  rules:
    - {{id: a, when: model.layers < 5, then: 1}}
    {above}
    - {{id: b, when: model.layers > 3, then: 2}}{beside}
"""


@pytest.mark.parametrize(
    ("above", "beside"),
    [("# allow overlap: they agree there", ""), ("", "  # allow overlap: they agree there")],
)
def test_a_finding_is_silenced_where_it_stands_with_a_reason(tmp_path: Path, above: str, beside: str) -> None:
    assert _found(_report(tmp_path, ONE_TOO_MANY.format(above=above or "# b", beside=beside))) == {}


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# allow overlap", "a reason is missing: # allow overlap: why it may stand"),
        ("# allow gap: they agree", "nothing here is found by 'gap'"),
        ("# allow overlapp: they agree", "no check 'overlapp' that can be silenced; did you mean 'overlap'?"),
        ("# allow broken: they agree", "no check 'broken' that can be silenced; did you mean 'broken'?"),
    ],
)
def test_a_comment_that_silences_nothing_is_a_finding(tmp_path: Path, comment: str, said: str) -> None:
    fine = ONE_TOO_MANY.replace("> 3", ">= 5").format(above=comment, beside="")
    wrong = ONE_TOO_MANY.format(above=comment, beside="")
    assert _found(_report(tmp_path, fine)) == {"allows-nothing": said}
    assert "overlap" in _found(_report(tmp_path, wrong))


# ---------------------------------------------------------------- told


def test_every_check_has_a_severity_and_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert {check.severity for check in CHECKS.values()} == {ERROR, WARNING}
    for name, check in CHECKS.items():
        assert main(["policy", "show", name]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert said.startswith(f"{name} {check.severity} {check.says}")
        assert check.remedy in said


FINDINGS = (
    Problem("rules 'a' and 'b' fire together", Span("policies/kv/kv.yaml", 7, 12, 5), "x", check="overlap"),
    Problem("unknown fact 'x'", Span("policies/a,b.yaml", 2, 1), "x"),
    Problem("policies: part of a set: 100 % of\nit", check="part-of-a-set"),
)


def test_findings_as_sarif_name_their_check_and_place() -> None:
    log = sarif(FINDINGS)
    run = log["runs"][0]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == set(CHECKS)
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [
        ("overlap", "error"), ("broken", "error"), ("part-of-a-set", "warning"),
    ]  # fmt: skip
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "policies/kv/kv.yaml"}
    assert place["region"] == {"startLine": 7, "startColumn": 12, "endColumn": 17}
    assert run["results"][2]["locations"] == []


def test_findings_for_github_are_one_escaped_line_each() -> None:
    assert list(github(FINDINGS)) == [
        "::error file=policies/kv/kv.yaml,line=7,col=12,title=overlap::rules 'a' and 'b' fire together",
        "::error file=policies/a%2Cb.yaml,line=2,col=1,title=broken::unknown fact 'x'",
        "::warning title=part-of-a-set::policies: part of a set: 100 %25 of%0Ait",
    ]


def test_the_command_prints_each_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decisions = ONE_TOO_MANY.replace("warn.x", "kv.x").format(above="# b", beside="")
    base = write_set(tmp_path, {"kv/kv": policy_text("kv/kv", decisions.replace("model.layers", "model.layrs"))})
    assert main(["policy", "check", str(base), "--format", "github"]) == 2
    assert capsys.readouterr().out.startswith("::error file=policies/kv/kv.yaml,line=8,col=23,title=broken::unknown")
    assert main(["policy", "check", str(base), "--format", "sarif"]) == 2
    log = json.loads(capsys.readouterr().out)
    assert (log["version"], log["runs"][0]["results"][0]["ruleId"]) == ("2.1.0", "broken")
    assert main(["policy", "check", str(base), "--json"]) == 2
    problem = json.loads(capsys.readouterr().out)["problems"][0]
    assert (problem["check"], problem["severity"], problem["line"]) == ("broken", "error", 8)
