"""Reading test files: what they mean, and everything that is wrong with one, at its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_of import run, suites

from gezel_rules.author.testing.cases import Case
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN


def only(directory: Path, tests: str) -> Case:
    (case,) = suites(directory, tests)[0].cases.cases
    return case


def test_values_are_written_as_people_do(tmp_path: Path) -> None:
    case = only(tmp_path, """
        given: {gpu.free: 2 GiB, settings.window: 8k, settings.kv_type: not set, model.layers: unknown}
        decisions:
          kv.type:
            it is so: {expect: f16}
    """)  # fmt: skip
    assert case.given.facts == {
        "gpu.free": 2 << 30, "settings.window": 8192, "settings.kv_type": None, "model.layers": UNKNOWN,
    }  # fmt: skip
    assert (case.says, case.value, case.node.text.name) == ("it is so", "f16", "policies/kv/kv_test.yaml")


def test_what_is_nearer_counts(tmp_path: Path) -> None:
    case = only(tmp_path, """
        given: {model.arch: a, model.layers: 1, gpu.free: 1}
        decisions:
          kv.type:
            given: {model.layers: 2, gpu.free: 2}
            it is so: {given: {gpu.free: 3}, expect: f16}
    """)  # fmt: skip
    assert case.given.facts == {"model.arch": "a", "model.layers": 2, "gpu.free": 3}


def test_a_case_for_each_value(tmp_path: Path) -> None:
    found = suites(tmp_path, """
        decisions:
          kv.type:
            it is so: {each: {gpu.free: [1, 2 GiB]}, expect: f16}
    """)[0].cases.cases  # fmt: skip
    assert [(case.says, case.given.facts["gpu.free"]) for case in found] == [
        ("it is so (gpu.free: 1)", 1), ("it is so (gpu.free: 2 GiB)", 2 << 30),
    ]  # fmt: skip


UNREAD = "'model.arch' makes no difference"
NONE = "no fact, decision, function or cell"
BAD = {
    "a fact misspelt": ("{given: {gpu.fre: 1}, expect: f16}", f"{NONE} 'gpu.fre'; did you mean 'gpu.free'?", "gpu.fre"),
    "a word that is none": ("{given: {settings.kv_type: q9}, expect: f16}", "'settings.kv_type' must be", "q9"),
    "a number that is none": ("{given: {gpu.free: many}, expect: f16}", "'gpu.free' must be", "many"),
    "a fact that is always set": ("{given: {gpu.free: not set}, expect: f16}", "not 'not set'", "not set"),
    "a fact that is not read": ("{given: {model.arch: a}, expect: f16}", UNREAD, "model.arch"),
    "nor for each": ("{each: {model.arch: [a]}, expect: f16}", UNREAD, "model.arch"),
    "a rule that is none": ("{expect: f16, rule: fin}", "has no rule 'fin'; did you mean 'fine'?", "fin}"),
    "the answer itself": ("{given: {kv.type: f16}, expect: f16}", "it cannot be given", "kv.type"),
    "nothing expected": ("{given: {gpu.free: 1}}", "a case has no 'expect'", "{given"),
    "a key misspelt": ("{expekt: f16}", "did you mean 'expect'?", "expekt"),
    "a row that is none": ('{given: {"kv_types[q9].bits": 1}, expect: f16}', NONE, '"kv'),
    "a single value among rows": ('{given: {"kv_types[f16]": 1}, expect: f16}', NONE, '"kv'),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_where_it_is(name: str, tmp_path: Path) -> None:
    case, said, under = BAD[name]
    with pytest.raises(BadInput) as caught:
        suites(tmp_path, f"decisions:\n  kv.type:\n    it is so: {case}\n")
    (problem,) = caught.value.problems
    assert said in problem.message
    assert problem.span is not None and problem.line_text is not None
    assert problem.span.file == "policies/kv/kv_test.yaml"
    assert problem.line_text[problem.span.column - 1 :].startswith(under)


def test_all_problems_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        suites(tmp_path, """
            given: {gpu.fre: 1}
            decisions:
              kv.typ: {it is so: {expect: f16}}
              kv.coarser: {it is so: {expect: f16, rejects: {f16: small}}}
        """)  # fmt: skip
    assert [problem.message.partition("'")[0] for problem in caught.value.problems] == [
        "no fact, decision, function or cell ", "", "",
    ]  # fmt: skip
    assert len(caught.value.problems) == 3


def test_a_test_file_names_the_policy_beside_it(tmp_path: Path) -> None:
    base = suites(tmp_path, "decisions: {}")[0].root.text.name
    assert base == "policies/kv/kv.yaml"
    (tmp_path / "policies/kv/other_test.yaml").write_text("tests: kv/other\n")
    with pytest.raises(
        BadInput, match=r"policies/kv/other_test.yaml: tests nothing: there is no 'other.yaml' beside it"
    ):
        suites(tmp_path, "decisions: {}")


def test_an_answer_is_for_the_arguments_it_names(tmp_path: Path) -> None:
    results, _ = run(tmp_path, """
        decisions:
          kv.coarser:
            given: {model.layers: 32}
            the first that holds:
              given:
                holds(q8_0, 32): false
                holds(*, 32): true
              expect: q4_0
              rejects: {f16: not-automatic, q8_0: too-large}
            nothing holds:
              given:
                holds(...): false
              expect: not set
            of other layers nobody asks:
              given:
                holds(q8_0, 33): true
              expect: q8_0
    """)  # fmt: skip
    assert [ran.passed for ran in results.cases] == [True, True, False]
    assert "the case does not say what holds(q8_0, 32) gives" in str(results.cases[2].fault)


def test_a_cell_of_a_table_may_be_otherwise(tmp_path: Path) -> None:
    results, bench = run(tmp_path, """
        decisions:
          kv.coarser:
            fine ones too: {given: {"kv_types[f16].automatic": true, "holds(...)": true}, expect: f16}
            as it is: {given: {"holds(...)": true}, expect: q8_0}
    """)  # fmt: skip
    assert [ran.passed for ran in results.cases] == [True, True]
    assert bench.words.policies.tables["kv_types"]["f16"]["automatic"] is False
