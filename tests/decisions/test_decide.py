"""How rules are combined, what unknown does, and what a trace keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from small_set import CALLABLES, TABLES, WORLD, compile_set, decided

from gezel_rules.decisions.decide import decide
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN, Fact

FIRST = """
a:
  rules:
    - {id: many, when: model.layers > 40, then: 1}
    - {id: some, when: model.layers > 20, then: 2}
    - {id: few, then: 3}
"""


@pytest.mark.parametrize(("layers", "value", "winner"), [(41, 1, "many"), (21, 2, "some"), (2, 3, "few")])
def test_first(tmp_path: Path, layers: int, value: int, winner: str) -> None:
    judgement = decided(tmp_path, FIRST, model_layers=layers).judgements["a"]
    assert judgement.value == value
    assert judgement.winner is not None and judgement.winner.rule.id == winner
    assert [judged.fired for judged in judgement.judged] == [False] * (value - 1) + [True]


def test_no_rule_fires(tmp_path: Path) -> None:
    judgement = decided(tmp_path, "a: {when: model.moe, then: 1}").judgements["a"]
    assert (judgement.value, judgement.winner) == (None, None)


UNIQUE = FIRST.replace("rules:", "hit: unique\n  rules:").replace(
    "- {id: few, then: 3}", "- {id: few, when: model.layers <= 20, then: 3}"
)


def test_unique(tmp_path: Path) -> None:
    judgement = decided(tmp_path, UNIQUE).judgements["a"]
    assert judgement.value == 2
    assert len(judgement.judged) == 3


def test_two_unique_rules_at_once_are_refused_with_their_names(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        decided(tmp_path, UNIQUE, model_layers=50)
    assert str(caught.value) == (
        "policies/kv/kv.yaml:9:1: decision 'a' is unique, but rules 'many' and 'some' fire together"
    )


COLLECT = """
a:
  hit: collect
  rules:
    - {id: moe, when: model.moe, then: "'moe'"}
    - {id: arch, then: model.arch}
    - {id: deep, when: model.layers > 3, then: "'deep'"}
b: {when: "'deep' in a", then: 1}
"""


def test_collect(tmp_path: Path) -> None:
    trace = decided(tmp_path, COLLECT)
    assert trace.value("a") == ["llama", "deep"]
    assert trace.value("b") == 1
    assert decided(tmp_path, COLLECT.replace("model.arch", "\"'x'\"").replace("> 3", "> 99")).value("b") is None


def test_a_list_with_something_unknown_in_it_is_unknown(tmp_path: Path) -> None:
    trace = decided(tmp_path, COLLECT, model_arch=UNKNOWN)
    assert trace.value("a") is UNKNOWN
    assert trace.value("b") is None


SEARCH = """
a:
  hit: search
  over: kv_types
  rules:
    - {id: asked-only, when: not candidate.automatic, then: reject}
    - {id: too-wide, when: candidate.bytes * model.layers > 1200, then: reject}
    - {id: fits, then: accept}
"""


@pytest.mark.parametrize(
    ("layers", "value", "tried"),
    [
        (10, "f16", ["asked-only f16", "too-wide f16", "fits f16"]),
        (30, "q8_0", ["asked-only f16", "too-wide f16", "asked-only q8_0", "too-wide q8_0", "fits q8_0"]),
        (40, None, ["asked-only f16", "too-wide f16", "asked-only q8_0", "too-wide q8_0", "asked-only q4_0"]),
    ],
)
def test_search(tmp_path: Path, layers: int, value: str | None, tried: list[str]) -> None:
    judgement = decided(tmp_path, SEARCH, TABLES, model_layers=layers).judgements["a"]
    assert judgement.value == value
    assert [f"{judged.rule.id} {judged.candidate[0]}" for judged in judgement.judged] == tried


def test_search_over_a_list_and_over_something_unknown(tmp_path: Path) -> None:
    rules = "a: {hit: search, over: engine.flags, rules: [{id: x, when: candidate != '--fit', then: accept}]}"
    assert decided(tmp_path, rules).value("a") == "--ctx-size"
    assert decided(tmp_path, rules, engine_flags=[]).value("a") is None
    assert decided(tmp_path, rules, engine_flags=UNKNOWN).value("a") is UNKNOWN


def test_unknown_never_fires_a_rule_and_never_becomes_a_figure(tmp_path: Path) -> None:
    trace = decided(
        tmp_path,
        """
a: {rules: [{id: room, when: gpu.free > 0, then: 1}, {id: default, then: 2}]}
b: {then: gpu.free}
c: {when: b > 0, then: 1}
d: {rules: [{id: not-room, when: not (gpu.free > 0), then: 1}, {id: known, when: known(gpu.free), then: 2}]}
""",
    )
    assert trace.judgements["a"].judged[0].fired is UNKNOWN
    assert [trace.value(name) for name in "abcd"] == [2, UNKNOWN, None, None]


def test_a_fact_that_was_left_out_is_unknown(tmp_path: Path) -> None:
    policies = compile_set(tmp_path, FIRST)
    trace = decide(policies, {}, CALLABLES)
    assert [judged.fired for judged in trace.judgements["a"].judged] == [UNKNOWN, UNKNOWN, True]


CHAIN = "a: {then: b + 1}\nb: {then: c + 1}\nc: {then: model.layers}\nd: {then: 'none'}"


def test_goals_are_judged_with_what_they_need_and_no_more(tmp_path: Path) -> None:
    policies = compile_set(tmp_path, CHAIN)
    trace = decide(policies, WORLD, CALLABLES, goals=["b"])
    assert list(trace.judgements) == ["c", "b"]
    assert trace.value("b") == 33


def test_given_decisions_stand_and_what_only_they_need_is_left(tmp_path: Path) -> None:
    policies = compile_set(tmp_path, CHAIN)
    trace = decide(policies, WORLD, CALLABLES, goals=["a"], given={"b": 7})
    assert list(trace.judgements) == ["a"]
    assert trace.value("a") == 8


def test_deciding_changes_nothing_and_repeats(tmp_path: Path) -> None:
    policies = compile_set(tmp_path, SEARCH + CHAIN.replace("a:", "e:").replace("e: {then: b", "e: {then: b"), TABLES)
    first, second = (decide(policies, WORLD, CALLABLES) for _ in range(2))
    assert {n: j.value for n, j in first.judgements.items()} == {n: j.value for n, j in second.judgements.items()}
    assert [r.id for j in first.judgements.values() for r in j.decision.rules] == [
        r.id for j in second.judgements.values() for r in j.decision.rules
    ]


@pytest.mark.parametrize(
    ("decisions", "says"),
    [
        ("a: {then: model.layers / (model.layers - model.layers)}", "rule 'always' of 'a': division by zero"),
        ("a: {when: 'divisible(model.layers, 0)', then: 1}", "rule 'passes' of 'a': divisible()"),
        ("a: {then: \"kv_types[model.arch].bytes\"}", "rule 'always' of 'a': the table has no row 'llama'"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_judged_is_named_with_its_place(tmp_path: Path, decisions: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        decided(tmp_path, decisions, TABLES)
    assert str(caught.value).startswith(f"policies/kv/kv.yaml:10:1: {says}")


def _naive(rules: list[tuple[Any, int]], hit: str) -> Any:
    """The definition of each hit policy, without an engine."""
    fired = [then for when, then in rules if when is True]
    if hit == "collect":
        return fired
    return fired[0] if fired else None


@given(st.lists(st.sampled_from([True, False, UNKNOWN]), min_size=1, max_size=6), st.sampled_from(["first", "collect"]))
@hypothesis_settings(max_examples=60)
def test_against_the_definition(tmp_path_factory: pytest.TempPathFactory, outcomes: list[Any], hit: str) -> None:
    spelled = {True: "model.layers == 32", False: "model.layers == {n}", UNKNOWN: "gpu.free > {n}"}
    rules = "\n".join(
        f"    - {{id: r{n}, when: {spelled[when].format(n=n)} and model.arch != 'x{n}', then: {n}}}"
        for n, when in enumerate(outcomes)
    )
    trace = decided(tmp_path_factory.mktemp("set"), f"a:\n  hit: {hit}\n  rules:\n{rules}")
    assert trace.value("a") == _naive(list(zip(outcomes, range(len(outcomes)), strict=True)), hit)


def test_facts_keep_where_they_come_from(tmp_path: Path) -> None:
    trace = decided(tmp_path, FIRST)
    assert trace.facts["model.layers"] == Fact(32, "GGUF llama.block_count", "gguf")
