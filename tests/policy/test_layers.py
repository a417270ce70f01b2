"""Layers: what one changes, where it says so, and what is said of one that is wrong."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from small_set import CALLABLES, FAMILY, WORLD, languages, policy_text, write_set

from gezel_rules.decisions.decide import decide
from gezel_rules.errors import BadInput
from gezel_rules.policy.model import PolicySet
from gezel_rules.policy.seal import compile_policies, load_policies

DECISIONS = """
a:
  rules:
    - {id: big, when: "sizes['one'].bytes > 5", then: 1, because: it is big}
    - {id: small, then: 2}
b: {then: 7, because: seven}
c: {hit: collect, rules: [{id: x, then: 1}, {id: y, then: 2}]}
"""
TABLES = """
sizes:
  says: Sizes.
  columns:
    bytes: {kind: integer, minimum: 0, unit: bytes}
    label: {kind: text, default: none}
  rows:
    one: {bytes: 3, label: one}
    two: {bytes: 9}
words: [x, y]
plain: {p: 1, q: 2}
"""
HEAD = "version: 1.0.0\nsummary: What is different here.\n"


def _layer(tmp_path: Path, body: str, name: str = "layer.yaml", head: str = HEAD) -> Path:
    path = tmp_path / name
    path.write_text(head + dedent(body).lstrip("\n"), "utf-8")
    return path


def _set(tmp_path: Path, *layers: Path) -> PolicySet:
    base = write_set(tmp_path, {"kv/kv": policy_text("kv/kv", DECISIONS, TABLES)})
    return load_policies(base, FAMILY, languages(), None, layers=layers)


def _value(policies: PolicySet, name: str) -> object:
    return decide(policies, WORLD, CALLABLES).value(name)


def _problems(tmp_path: Path, body: str, head: str = HEAD) -> list[str]:
    with pytest.raises(BadInput) as caught:
        _set(tmp_path, _layer(tmp_path, body, head=head))
    return [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems]


# ---------------------------------------------------------------- what is changed


def test_one_number_is_replaced_and_its_row_keeps_the_rest(tmp_path: Path) -> None:
    policies = _set(tmp_path, _layer(tmp_path, "tables: {sizes: {rows: {one: {bytes: 8}}}}"))
    assert policies.tables["sizes"] == {
        "one": {"bytes": 8, "label": "one"}, "two": {"bytes": 9, "label": "none"},
    }  # fmt: skip
    assert (_value(_set(tmp_path), "a"), _value(policies, "a")) == (2, 1)


def test_rows_are_added_at_the_end_and_left_out(tmp_path: Path) -> None:
    change = "tables: {sizes: {without: [two], rows: {three: {bytes: 1}}}, plain: {rows: {q: 5, r: 3}, without: [p]}}"
    tables = _set(tmp_path, _layer(tmp_path, change)).tables
    assert list(tables["sizes"]) == ["one", "three"]
    assert tables["plain"] == {"q": 5, "r": 3}


def test_a_list_is_replaced_whole(tmp_path: Path) -> None:
    assert _set(tmp_path, _layer(tmp_path, "tables: {words: {rows: [z]}}")).tables["words"] == ["z"]


def test_a_rule_is_changed_added_moved_and_left_out(tmp_path: Path) -> None:
    def rules(body: str) -> list[tuple[str, str]]:
        policies = _set(tmp_path, _layer(tmp_path, f"decisions: {{c: {{{body}}}}}"))
        return [(rule.id, rule.then) for rule in policies.decisions["c"].rules]

    assert rules("rules: [{id: y, then: 5}]") == [("x", "1"), ("y", "5")]
    assert rules("rules: [{id: z, then: 3, before: y}]") == [("x", "1"), ("z", "3"), ("y", "2")]
    assert rules("rules: [{id: z, then: 3, after: y}]") == [("x", "1"), ("y", "2"), ("z", "3")]
    assert rules("rules: [{id: y, before: x}]") == [("y", "2"), ("x", "1")]
    assert rules("without: [x]") == [("y", "2")]


def test_a_changed_rule_keeps_the_keys_that_are_not_named(tmp_path: Path) -> None:
    policies = _set(tmp_path, _layer(tmp_path, "decisions: {a: {rules: [{id: big, then: 4}]}}"))
    rule = policies.decisions["a"].rules[0]
    assert (rule.when, rule.then, rule.because) == ("sizes['one'].bytes > 5", "4", ("it is big",))


def test_the_single_rule_of_a_decision_is_changed_by_its_keys(tmp_path: Path) -> None:
    policies = _set(tmp_path, _layer(tmp_path, "decisions: {b: {then: 8}}"))
    assert _value(policies, "b") == 8
    assert policies.decisions["b"].rules[0].because == ("seven",)


def test_the_later_layer_wins_and_builds_on_the_earlier(tmp_path: Path) -> None:
    site = _layer(tmp_path, "decisions: {c: {rules: [{id: z, then: 3, after: y}]}, b: {then: 8}}", "site.yaml")
    user = _layer(tmp_path, "decisions: {c: {rules: [{id: z, then: 4}]}, b: {then: 9}}", "user.yaml")
    policies = _set(tmp_path, site, user)
    assert (_value(policies, "c"), _value(policies, "b")) == ([1, 2, 4], 9)


def test_what_is_changed_names_the_layers_file_and_line(tmp_path: Path) -> None:
    layer = _layer(
        tmp_path,
        """
        decisions:
          a:
            rules:
              - {id: big, then: 4}
        """,
    )
    big, small = _set(tmp_path, layer).decisions["a"].rules
    assert (big.layer, big.line) == (str(layer), 6)
    assert small.layer == ""


def test_a_layer_is_among_the_files_of_the_set_and_in_its_digest(tmp_path: Path) -> None:
    layer = _layer(tmp_path, "decisions: {b: {then: 8}}")
    bare, changed = _set(tmp_path), _set(tmp_path, layer)
    assert bare.digest != changed.digest
    assert [(file.file, file.version) for file in changed.files if file.is_layer] == [(str(layer), "1.0.0")]
    assert [file for file in bare.files if file.is_layer] == []


def test_a_layer_that_changes_nothing_leaves_the_digest(tmp_path: Path) -> None:
    assert _set(tmp_path, _layer(tmp_path, "decisions: {b: {then: 7}}")).digest == _set(tmp_path).digest


def test_a_kept_set_is_the_one_with_its_layers(tmp_path: Path) -> None:
    base = write_set(tmp_path, {"kv/kv": policy_text("kv/kv", DECISIONS, TABLES)})
    layer, cache = _layer(tmp_path, "decisions: {b: {then: 8}}"), tmp_path / "cache"
    cache.mkdir(mode=0o700)
    cold = load_policies(base, FAMILY, languages(), cache, layers=[layer])
    warm = load_policies(base, FAMILY, languages(), cache, layers=[layer])
    assert warm.decisions == cold.decisions
    assert (_value(warm, "b"), _value(load_policies(base, FAMILY, languages(), cache), "b")) == (8, 7)
    layer.write_text(HEAD + "decisions: {b: {then: 9}}\n", "utf-8")
    assert _value(load_policies(base, FAMILY, languages(), cache, layers=[layer]), "b") == 9


def test_a_layer_of_another_family_changes_nothing(tmp_path: Path) -> None:
    base = write_set(tmp_path, {"kv/kv": policy_text("kv/kv", DECISIONS, TABLES)})
    both = {**languages(), "other": languages()[FAMILY]}
    layer = _layer(tmp_path, "decisions: {b: {then: 8}}", head=f"engine: other\n{HEAD}")
    found = load_policies(base, FAMILY, both, None, layers=[layer])
    assert [file for file in found.files if file.is_layer] == []
    assert found.digest == compile_policies(base, FAMILY, both).digest


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("tables: {size: {rows: {}}}", "3:10: no table 'size' to change; did you mean 'sizes'?"),
        ("decisions: {d: {then: 1}}", "3:13: no decision 'd' to change"),
        (
            "tables: {sizes: {without: [tow]}}",
            "3:28: table 'sizes' has no row 'tow' to do without; did you mean 'two'?",
        ),
        (
            "tables: {sizes: {rows: {one: {bytes: x}}}}",
            "3:38: 'bytes' of 'sizes' must be whole number, not text",
        ),
        ("tables: {sizes: {rows: {three: {}}}}", "3:25: a row of 'sizes' needs 'bytes' (whole number)"),
        ("decisions: {c: {without: [z]}}", "3:27: decision 'c' has no rule 'z' to do without"),
        (
            "decisions: {a: {rules: [{id: bigg, then: 1}]}}",
            "3:30: decision 'a' has no rule 'bigg'; did you mean 'big'?",
        ),
        (
            "decisions: {a: {rules: [{id: other, then: 1}]}}",
            "3:30: decision 'a' has no rule 'other'; one to add needs 'then', and 'before' or 'after'",
        ),
        (
            "decisions: {a: {rules: [{id: other, then: 1, before: bog}]}}",
            "3:54: decision 'a' has no other rule 'bog'; did you mean 'big'?",
        ),
        ("decisions: {b: {rules: [{id: x, then: 1}]}}", "3:17: decision 'b' has a single 'then', no rules"),
        ("decisions: {a: {then: 1}}", "3:17: decision 'a' has rules: name the one to change under 'rules'"),
        ("decisions: {b: {then: \"sizes['one'].bites\"}}", "3:37: no column 'bites'; did you mean 'bytes'?"),
        ("dezisions: {}", "3:1: a layer has no key 'dezisions'; did you mean 'decisions'?"),
    ],
)
def test_one_mistake_is_one_problem_at_its_place_in_the_layer(tmp_path: Path, body: str, said: str) -> None:
    assert _problems(tmp_path, body) == [f"layer.yaml:{said}"]


def test_a_layer_needs_a_head_and_a_family_that_there_is(tmp_path: Path) -> None:
    assert _problems(tmp_path, "", head="summary: x\n") == ["layer.yaml:1:1: a layer has no 'version'"]
    said = _problems(tmp_path, "", head=f"engine: nobody\n{HEAD}")
    assert said == [f"layer.yaml:1:9: unknown engine family 'nobody' (known: {FAMILY})"]


def test_a_layer_that_is_no_yaml_or_not_there_is_one_problem(tmp_path: Path) -> None:
    (said,) = _problems(tmp_path, "decisions: {b: {then: 1}\n")
    assert said.startswith("layer.yaml:4:1: not valid YAML")
    with pytest.raises(BadInput, match=r"nowhere\.yaml: no such file"):
        _set(tmp_path, tmp_path / "nowhere.yaml")
