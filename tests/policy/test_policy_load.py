"""What a policy file means once it is loaded and checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_set import FAMILY, TABLES, compile_set, languages, policy_text, write_set

from gezel_rules.errors import BadInput
from gezel_rules.policy.files import policy_paths
from gezel_rules.policy.model import Rule
from gezel_rules.policy.seal import compile_policies


def test_the_short_form_is_a_decision_of_one_rule(tmp_path: Path) -> None:
    decisions = compile_set(tmp_path, "a: {then: 3}\nb: {when: model.moe, then: 'none', because: it is}").decisions
    assert decisions["a"].rules == (Rule("always", None, "3", (), "", None, 5),)
    assert decisions["b"].rules == (Rule("passes", "model.moe", "none", ("it is",), "", None, 6),)
    assert decisions["b"].hit == "first"


def test_a_flag_stands_down_where_it_is_unknown_or_the_operator_s(tmp_path: Path) -> None:
    decision = compile_set(tmp_path, "flag.fit: {flag: --fit, then: true}").decisions["flag.fit"]
    assert [(rule.id, rule.when, rule.then) for rule in decision.rules] == [
        ("unknown-to-this-build", "'--fit' not in engine.flags", "None"),
        ("operator-passes-it", "'--fit' in launch.arguments", "None"),
        ("always", None, "True"),
    ]
    assert decision.reads == ("engine.flags", "launch.arguments")


def test_arguments_passed_as_they_are_never_stand_down(tmp_path: Path) -> None:
    decision = compile_set(tmp_path, "flag.extra: {flag: '*', then: launch.arguments}").decisions["flag.extra"]
    assert [rule.id for rule in decision.rules] == ["always"]


def test_a_reason_is_words_and_expressions_with_their_units(tmp_path: Path) -> None:
    rule = "a: {then: 1, because: 'of { gpu.free } usable, {model.layers} layers'}"
    because = compile_set(tmp_path, rule).decisions["a"].rules[0].because
    assert because == ("of ", ("gpu.free", "bytes"), " usable, ", ("model.layers", ""), " layers")


def test_decisions_come_after_what_they_read(tmp_path: Path) -> None:
    policies = compile_set(
        tmp_path, "a: {then: b + c}\nb: {then: c}\nc: {then: model.layers}\nd: {when: a > 1, then: 1}"
    )
    assert list(policies.decisions) == ["c", "b", "a", "d"]
    assert policies.decisions["a"].reads == ("b", "c")


def test_a_long_chain_of_decisions_is_no_burden(tmp_path: Path) -> None:
    chain = "\n".join(f"d{n}: {{then: d{n + 1}}}" for n in range(3000)) + "\nd3000: {then: 1}"
    assert len(compile_set(tmp_path, chain).decisions) == 3001


def test_a_circle_leaves_the_rest_checked(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        compile_set(tmp_path, "a: {then: b}\nb: {then: c}\nc: {then: b}\nd: {then: a}\ne: {then: wrong.name}")
    said = [problem.message for problem in caught.value.problems]
    assert said == ["decisions depend on each other: b → c → b", "unknown fact 'wrong.name'"]


def test_what_one_rule_rules_out_the_next_may_rely_on(tmp_path: Path) -> None:
    rules = """
a:
  rules:
    - {id: none, when: settings.window is none, then: 0}
    - {id: more, when: settings.window > 3, then: settings.window}
"""
    assert compile_set(tmp_path, rules).decisions["a"].unit == "tokens"
    with pytest.raises(BadInput, match="may be none here"):
        compile_set(tmp_path, rules.replace("rules:", "hit: unique\n  rules:"))


def test_flags_keep_the_order_they_are_written_in(tmp_path: Path) -> None:
    policies = compile_set(tmp_path, "flag.z: {flag: --z, then: a}\na: {then: 1}\nflag.b: {flag: --b, then: 2}")
    assert policies.flags == ("flag.z", "flag.b")


def test_the_unit_of_a_decision_is_that_of_its_value(tmp_path: Path) -> None:
    decisions = compile_set(
        tmp_path,
        """
free: {then: gpu.free}
half: {then: gpu.free // 2}
said: {unit: seconds, then: 3}
window: {when: settings.window is not none, then: settings.window}
""",
    ).decisions
    assert {name: decision.unit for name, decision in decisions.items()} == {
        "free": "bytes",
        "half": "bytes",
        "said": "seconds",
        "window": "tokens",
    }


def test_candidates_have_the_table_s_columns_and_a_name(tmp_path: Path) -> None:
    search = """
enough:
  hit: search
  over: kv_types
  rules:
    - {id: fits, when: candidate.automatic and candidate.bytes < 40 and candidate.name != 'f16', then: accept}
chosen: {when: enough is not none, then: enough}
"""
    policies = compile_set(tmp_path, search, TABLES)
    assert policies.decisions["enough"].reads == ("kv_types",)
    with pytest.raises(BadInput, match="'q9' is not one of its values"):
        compile_set(tmp_path, search + "again: {when: chosen == 'q9', then: 1}", TABLES)


def test_tests_beside_policies_are_read_by_others(tmp_path: Path) -> None:
    base = write_set(tmp_path, {"kv/kv": policy_text("kv/kv", "a: {then: 1}"), "kv/kv_test": "not: [a policy"})
    assert [path.name for path in policy_paths(base)] == ["kv.yaml"]
    assert list(compile_policies(base, FAMILY, languages()).decisions) == ["a"]


def test_identity_of_files(tmp_path: Path) -> None:
    base = write_set(
        tmp_path, {"kv/kv": policy_text("kv/kv", "a: {then: 1}"), "b/c": policy_text("b/c", "b: {then: 1}")}
    )
    files = compile_policies(base, FAMILY, languages()).files
    assert [(file.policy, file.version, file.file) for file in files] == [
        ("b/c", "1.0.0", "policies/b/c.yaml"),
        ("kv/kv", "1.0.0", "policies/kv/kv.yaml"),
    ]


def _rules(hit: str, *whens: str) -> str:
    rules = "".join(f"    - {{id: r{n}, when: {when}, then: {n}}}\n" for n, when in enumerate(whens))
    return f"a:\n  hit: {hit}\n  rules:\n{rules}"


@pytest.mark.parametrize(
    ("hit", "whens", "said"),
    [
        ("first", ["model.moe", "model.moe and model.layers > 3"],
         "rule 'r1' is never reached: 'r0' before it fires whenever it would"),
        ("first", ["model.layers > 3 and model.moe", "model.moe and model.arch == 'x' and model.layers >  3"],
         "rule 'r1' is never reached: 'r0' before it fires whenever it would"),
        ("first", ["model.moe", "model.arch == 'x'", "model.moe"],
         "rule 'r2' is never reached: 'r0' before it has the same 'when'"),
        ("first", ["true", "model.moe"], "rule 'r1' is never reached: 'r0' before it always fires"),
        ("first", ["false", "model.moe"], "rule 'r0' never fires"),
        ("unique", ["model.moe", "model.moe and model.layers > 3"],
         "rule 'r1' fires only together with 'r0', and under 'hit: unique' that is a fault"),
        ("first", ["model.moe or model.layers > 3", "model.moe"], None),
        ("first", ["model.moe and model.layers > 3", "model.moe"], None),
        ("first", ["not model.moe", "model.moe"], None),
        ("collect", ["model.moe", "model.moe and model.layers > 3", "model.moe"], None),
    ],
)  # fmt: skip
def test_rules_that_cannot_decide(tmp_path: Path, hit: str, whens: list[str], said: str | None) -> None:
    if said is None:
        assert compile_set(tmp_path, _rules(hit, *whens)).decisions["a"]
        return
    with pytest.raises(BadInput) as caught:
        compile_set(tmp_path, _rules(hit, *whens))
    assert [problem.message for problem in caught.value.problems] == [said]
