"""Mistakes in a policy, one at a time, and whether its tests notice them."""

from __future__ import annotations

from pathlib import Path

from bench_of import TABLES, run

from gezel_rules.author.testing.cells import cell_mutants
from gezel_rules.author.testing.mutants import mutants
from gezel_rules.author.testing.mutation import Mutated, mutated
from gezel_rules.author.testing.summed import mutation_lines

DECISIONS = """
kv.bits:
  rules:
    - id: operator
      when: settings.kv_type is not none
      then: kv_types[settings.kv_type].bits
    - id: many
      when: model.moe and model.layers >= 40
      then: model.layers // 8
    - id: else
      then: 16
"""


def changes(directory: Path, decisions: str) -> list[str]:
    _, bench = run(directory, "decisions: {}\n", decisions)
    policies = bench.words.policies
    return [f"{each.part}: {each.kind}: {each.says}" for each in mutants(policies.decisions["kv.bits"], policies)]


def test_every_kind_of_mistake(tmp_path: Path) -> None:
    assert changes(tmp_path, DECISIONS) == [
        "operator: drop: without this rule",
        "operator: negate: with 'not (settings.kv_type is not none)'",
        "operator: value: with 'none' for 'kv_types[settings.kv_type].bits'",
        "operator: swap: behind the next, 'many'",
        "many: drop: without this rule",
        "many: negate: with 'not (model.moe and model.layers >= 40)'",
        "many: negate: with 'not (model.moe)'",
        "many: negate: with 'not (model.layers >= 40)'",
        "many: bound: with 'model.layers > 40'",
        "many: bound: with 41 for 40",
        "many: bound: with 39 for 40",
        "many: value: with 'none' for 'model.layers // 8'",
        "many: value: with 'model.layers * 8'",
        "many: value: with 9 for 8",
        "many: value: with 7 for 8",
        "many: swap: behind the next, 'else'",
        "else: drop: without this rule",
        "else: value: with '17' for '16'",
    ]


def test_rules_that_exclude_each_other_need_no_order(tmp_path: Path) -> None:
    found = changes(tmp_path, DECISIONS.replace("model.moe and", "settings.kv_type is none and"))
    assert "operator: swap: behind the next, 'many'" not in found
    assert len(found) == 17


def test_cells_that_decisions_read(tmp_path: Path) -> None:
    results, bench = run(tmp_path, "decisions: {}\n", DECISIONS)
    found = [
        f"{each.part}: {each.kind}: {each.says}" for each in cell_mutants(results.suite.root, bench.words.policies)
    ]
    assert found == [
        f"{name}: cell: with 'bits: {bits + 1}' for {bits}" for name, bits in (("f16", 16), ("q8_0", 8), ("q4_0", 4))
    ]


def test_rows_that_are_tried_in_their_order(tmp_path: Path) -> None:
    results, bench = run(tmp_path, "decisions: {}\n")
    found = [
        f"{each.part}: {each.kind}: {each.says}" for each in cell_mutants(results.suite.root, bench.words.policies)
    ]
    assert found[-2:] == ["f16: swap: behind the next, 'q8_0'", "q8_0: swap: behind the next, 'q4_0'"]
    assert [each for each in found if "bits" in each] == []


CASES = """
decisions:
  kv.bits:
    given: {model.moe: true}
    the operator's: {given: {settings.kv_type: q8_0, model.layers: 80}, expect: 8, rule: operator}
    a deep one: {given: {model.layers: 40}, expect: 5, rule: many}
    a flat one: {given: {model.moe: false, model.layers: 40}, expect: 16, rule: else}
"""


def held(directory: Path, decisions: str, tables: str = TABLES) -> Mutated:
    results, bench = run(directory, CASES, decisions, tables)
    assert results.failed == []
    return mutated("policies/kv/kv.yaml", results.suite.root, bench, results.cases)


def test_survivors_stand_where_the_rule_or_row_does(tmp_path: Path) -> None:
    found = held(tmp_path, DECISIONS)
    assert [(each.place, each.of, each.part, each.says) for each in found.survivors] == [
        ("policies/kv/kv.yaml:20", "kv.bits", "many", "with 39 for 40"),
        ("policies/kv/kv.yaml:20", "kv.bits", "many", "with 7 for 8"),
        ("policies/kv/kv.yaml:11", "kv_types", "f16", "with 'bits: 17' for 16"),
        ("policies/kv/kv.yaml:13", "kv_types", "q4_0", "with 'bits: 5' for 4"),
    ]
    assert found.mutants == 18 + 3 and found.unexplained == list(found.survivors)


def test_a_comment_beside_the_rule_explains(tmp_path: Path) -> None:
    decisions = DECISIONS.replace(
        "    - id: many\n", "    - id: many  # survives bound: there is no model of 39 layers\n"
    )
    decisions = decisions.replace("then: model.layers // 8", "then: model.layers // 8  # survives drop: never mind")
    tables = TABLES.replace("bits: 4}", "bits: 4}  # survives cell: nobody asks")
    found = held(tmp_path, decisions, tables)
    assert [each.reason for each in found.survivors] == ["there is no model of 39 layers", "", "", "nobody asks"]
    assert found.idle == (("policies/kv/kv.yaml:20", "drop"),)
    lines = "\n".join(mutation_lines([found]))
    assert "with 39 for 40 (there is no model of 39 layers)" in lines
    assert lines.endswith(
        "nothing of the kind survives, and a comment says it does:\n  policies/kv/kv.yaml:20: survives drop"
    )
