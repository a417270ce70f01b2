"""What is said of a case that fails: what was expected, what came and why, and what kept the other rule from it."""

from __future__ import annotations

from pathlib import Path

from bench_of import run

from gezel_rules.author.testing.told import as_json, failures

RULE = {"id": "fine", "file": "policies/kv/kv.yaml", "line": 26}


def told(directory: Path, tests: str) -> str:
    results, _ = run(directory, f"decisions:\n{tests}")
    return "\n".join(line for lines in failures(results) for line in lines)


def test_another_rule_and_the_fact_that_kept_the_expected_one_off(tmp_path: Path) -> None:
    said = told(tmp_path, "  kv.type: {little is free: {given: {gpu.free: 2 KiB}, expect: q8_0, rule: small}}\n")
    assert said == (
        "policies/kv/kv_test.yaml:3: kv.type: little is free\n"
        "    expected  q8_0, by rule small\n"
        "    got       f16, by rule fine (policies/kv/kv.yaml:26)\n"
        "    because   it fits\n"
        "    why not   rule small (policies/kv/kv.yaml:22): gpu.free is 2,048 B, not below 1,024"
    )


def test_the_rule_that_would_give_the_value_where_none_is_named(tmp_path: Path) -> None:
    said = told(tmp_path, "  kv.type: {nobody knows: {expect: q8_0}}\n")
    assert said.splitlines()[-1] == "    why not   rule small (policies/kv/kv.yaml:22): gpu.free is unknown"


def test_no_rule_gives_the_value(tmp_path: Path) -> None:
    said = told(tmp_path, "  kv.type: {nobody knows: {expect: q4_0}}\n")
    assert said.splitlines()[-1] == "    why not   no rule of kv.type gives q4_0 on these facts"


def test_a_candidate_that_another_rule_turns_down(tmp_path: Path) -> None:
    said = told(tmp_path, """\
  kv.coarser:
    it holds: {given: {model.layers: 1, "holds(...)": true}, expect: q8_0, rejects: {f16: too-large}}
    in order:
      {given: {model.layers: 1, "holds(...)": false}, expect: not set, rejects: {q4_0: too-large, q8_0: too-large}}
""")  # fmt: skip
    assert [line for line in said.splitlines() if "also" in line] == [
        "    also      candidate f16, turned down by: expected too-large, got not-automatic",
        "    also      order of candidates: expected [q4_0, q8_0], got [q8_0, q4_0]",
    ]


def test_a_case_as_data(tmp_path: Path) -> None:
    results, _ = run(tmp_path, "decisions: {kv.type: {it is so: {expect: true}, it is: {expect: f16}}}\n")
    assert [as_json(ran) for ran in results.all] == [
        {
            "place": "policies/kv/kv_test.yaml:2", "about": "kv.type", "says": "it is so", "passed": False,
            "differences": [{"what": "value", "expected": "true", "got": "f16"}], "rule": RULE, "fault": None,
        },
        {
            "place": "policies/kv/kv_test.yaml:2", "about": "kv.type", "says": "it is", "passed": True,
            "differences": [], "rule": RULE, "fault": None,
        },
    ]  # fmt: skip
