"""Shapes of mappings and lists: what fits is kept, everything else is a problem, all at once."""

from __future__ import annotations

import pytest

from gezel_rules.documents.shape import ANY, FLAG, INTEGER, LIST, MAP, NUMBER, TEXT, fields, fits, items, kind_of
from gezel_rules.documents.source import Node, Text, parse_yaml
from gezel_rules.errors import Problem


def node(text: str) -> Node:
    return parse_yaml(Text("x.yaml", text))


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "nothing"), (True, FLAG), (3, INTEGER), (3.5, NUMBER), ("x", TEXT), ([], LIST), ({}, MAP)],
)
def test_kinds(value: object, kind: str) -> None:
    assert kind_of(value) == kind
    assert fits(kind, value)
    assert fits(ANY, value)
    assert fits(f"{TEXT}|{kind}", value)


@pytest.mark.parametrize(("kind", "value"), [(INTEGER, True), (NUMBER, False), (INTEGER, 3.0), (TEXT, 3), (FLAG, 1)])
def test_kinds_are_not_mixed_up(kind: str, value: object) -> None:
    assert not fits(kind, value)


def test_a_whole_number_is_a_number() -> None:
    assert fits(NUMBER, 3)


def test_everything_wrong_is_said_at_once_and_the_rest_is_kept() -> None:
    problems: list[Problem] = []
    root = node("name: 3\nsise: 1\nsize: 4\nkind:\n  - x\n")
    got = fields(root, "an entry", problems, {"name": TEXT, "size": NUMBER, "place": TEXT}, {"kind": f"{TEXT}|{FLAG}"})
    assert {key: child.value for key, child in got.items()} == {"size": 4}
    assert [str(problem) for problem in problems] == [
        "x.yaml:1:1: an entry has no 'place'",
        "x.yaml:1:7: 'name' must be text, not whole number",
        "x.yaml:2:1: an entry has no key 'sise'; did you mean 'size'?",
        "x.yaml:5:3: 'kind' must be text or true or false, not list",
    ]


@pytest.mark.parametrize(("text", "kind"), [("", "nothing"), ("[]", "list"), ("text", "text"), ("3", "whole number")])
def test_what_is_no_mapping(text: str, kind: str) -> None:
    problems: list[Problem] = []
    assert fields(node(text), "an entry", problems, {"name": TEXT}) == {}
    assert [problem.message for problem in problems] == [f"an entry must be a mapping, not {kind}"]


def test_items_of_the_kind_are_kept() -> None:
    problems: list[Problem] = []
    assert [child.value for child in items(node("[a, 1, b]"), "names", TEXT, problems)] == ["a", "b"]
    assert [str(problem) for problem in problems] == ["x.yaml:1:5: names: expected text, not whole number"]
    assert items(node("a: 1"), "names", TEXT, problems) == []
    assert problems[-1].message == "names must be a list, not mapping"
