"""Which rules fired and did not, and what their conditions came to."""

from __future__ import annotations

from pathlib import Path

from bench_of import run

from gezel_rules.author.testing.coverage import Covered, covered, seen_in
from gezel_rules.author.testing.summed import coverage_lines

DECISIONS = """
kv.type:
  rules:
    - id: moe
      when: >-
        model.moe
        and (model.layers > 10 or model.arch == 'a')
      then: 1
    - id: known
      when: not known(gpu.free)
      then: 2
    - id: large
      when: gpu.free > 9
      then: 3
    - id: else
      then: 4 if model.moe else 5
"""


def held(directory: Path, cases: str) -> Covered:
    results, bench = run(directory, f"decisions:\n  kv.type:\n{cases}", DECISIONS, "")
    words, suite = bench.words, results.suite
    return covered("policies/kv/kv.yaml", suite.root, words.policies, seen_in(results.traces), words.unknowable)


def test_without_a_case_nothing_is_shown(tmp_path: Path) -> None:
    found = held(tmp_path, "    {}\n")
    assert (found.rules, found.conditions) == ((0, 8), (0, 19))
    assert [(gap.rule, gap.says) for gap in found.gaps] == [
        (rule, "no case tries it") for rule in ("moe", "known", "large", "else")
    ]


def test_what_a_case_shows_and_what_none_does(tmp_path: Path) -> None:
    found = held(tmp_path, """
    one: {given: {model.moe: true, model.layers: 11}, expect: 1}
    two: {given: {model.moe: false, model.arch: a, model.layers: 1, gpu.free: 1}, expect: 5}
""")  # fmt: skip
    gaps = [(gap.place, gap.rule, gap.says) for gap in found.gaps]
    assert gaps == [
        ("policies/kv/kv.yaml:9", "moe", "never unknown: model.moe and (model.layers > 10 or model.arch == 'a')"),
        ("policies/kv/kv.yaml:10", "moe", "never false: model.layers > 10 or model.arch == 'a'"),
        ("policies/kv/kv.yaml:10", "moe", "never unknown: model.layers > 10 or model.arch == 'a'"),
        ("policies/kv/kv.yaml:10", "moe", "never false: model.layers > 10"),
        ("policies/kv/kv.yaml:10", "moe", "never unknown: model.layers > 10"),
        ("policies/kv/kv.yaml:10", "moe", "never false: model.arch == 'a'"),
        ("policies/kv/kv.yaml:10", "moe", "never true: model.arch == 'a'"),
        ("policies/kv/kv.yaml:12", "known", "fires in no case"),
        ("policies/kv/kv.yaml:13", "known", "never false: known(gpu.free)"),
        ("policies/kv/kv.yaml:15", "large", "fires in no case"),
        ("policies/kv/kv.yaml:16", "large", "never true: gpu.free > 9"),
        ("policies/kv/kv.yaml:18", "else", "never true: model.moe"),
    ]


def test_everything_shown(tmp_path: Path) -> None:
    found = held(tmp_path, """
    given: {model.moe: true, model.arch: b, model.layers: 1, gpu.free: 1}
    one: {given: {model.layers: 11}, expect: 1}
    of an architecture: {given: {model.arch: a}, expect: 1}
    two: {given: {gpu.free: unknown}, expect: 2}
    three: {given: {gpu.free: 10}, expect: 3}
    four: {expect: 4}
    five: {given: {model.moe: false}, expect: 5}
    nobody knows: {given: {model.layers: unknown}, expect: 4}
""")  # fmt: skip
    assert found.gaps == ()
    assert found.rules == (8, 8) and found.conditions[0] == found.conditions[1]


def test_known_facts_need_not_be_unknown_later(tmp_path: Path) -> None:
    """``large`` is reached only where the fact is known: that it comes to unknown is not asked of anybody."""
    found = held(tmp_path, "    one: {given: {model.moe: false, gpu.free: 1}, expect: 5}\n")
    assert [gap.says for gap in found.gaps if gap.rule == "large"] == ["fires in no case", "never true: gpu.free > 9"]


def test_the_lines(tmp_path: Path) -> None:
    found = held(tmp_path, "    one: {given: {model.moe: true, model.layers: 11}, expect: 1}\n")
    lines = list(coverage_lines([found._replace(gaps=found.gaps[:1])]))
    assert lines == [
        "covered by cases                      rules              conditions",
        "policies/kv/kv.yaml          4 of 8 ( 50 %)         4 of 19 ( 21 %)",
        "together                     4 of 8 ( 50 %)         4 of 19 ( 21 %)",
        "",
        "no case shows it:",
        "  policies/kv/kv.yaml:7: kv.type, rule moe: fires in every case that tries it",
    ]
