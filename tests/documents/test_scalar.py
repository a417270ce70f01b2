"""Every character of a scalar's value is found in the raw text, whatever style it was written in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.documents.scalar import raw_index
from gezel_rules.documents.source import Node, Text, parse_yaml

WORDS = "settings.a == 'é' and\tb > 3\n or 'draft-mtp' in c # {x} \\ \" ünï 𝄞 [1, 2]: -"
LINES = st.lists(st.text(alphabet="ab='é𝄞# :{}[]\"\\-", min_size=1, max_size=12), min_size=1, max_size=5)


def _only(text: str) -> Node:
    node: Node = parse_yaml(Text("x.yaml", text)).value["when"]
    return node


def _raw_at(node: Node, offset: int) -> str:
    raw = node.text.text
    return raw[raw_index(raw, node.start, node.end, node.value, offset) :]


def _assert_all_found(node: Node) -> None:
    for offset, char in enumerate(node.value):
        found = _raw_at(node, offset)
        if char in " \n":
            assert found[0] in " \t\r\n\\", (char, found[:10])
        else:
            assert found[0] in (char, "\\"), (offset, char, found[:10])


def _is_faithful(lines: list[str]) -> bool:
    return all(line == line.strip() for line in lines)


@given(st.text(alphabet=WORDS, max_size=60), st.booleans())
def test_double_quoted(value: str, escaped: bool) -> None:
    node = _only("when: " + json.dumps(value, ensure_ascii=escaped and value.isascii()) + "\n")
    assert node.value == value
    _assert_all_found(node)


@given(st.text(alphabet=WORDS.replace("\n", "").replace("\t", ""), max_size=60))
def test_single_quoted(value: str) -> None:
    node = _only("when: '" + value.replace("'", "''") + "'\nafter: 1\n")
    assert node.value == value
    _assert_all_found(node)


@given(LINES.filter(_is_faithful), st.integers(1, 6), st.sampled_from(["", "-", "+"]), st.sampled_from(["\n", "\r\n"]))
def test_literal_block(lines: list[str], indent: int, chomp: str, end: str) -> None:
    body = end.join(" " * indent + line for line in lines)
    node = _only(f"x: 1{end}when: |{chomp}{end}{body}{end}after: 1{end}")
    assert node.value.rstrip("\n") == "\n".join(lines)
    _assert_all_found(node)


@given(LINES.filter(_is_faithful), st.integers(1, 6), st.integers(1, 3))
def test_folded_block(lines: list[str], indent: int, breaks: int) -> None:
    body = ("\n" * breaks).join(" " * indent + line for line in lines)
    node = _only(f"when: >-\n{body}\nafter: 1\n")
    assert node.value == (" " if breaks == 1 else "\n" * (breaks - 1)).join(lines)
    _assert_all_found(node)


@given(st.lists(st.sampled_from(["  more", "plain", "", "  - item", "x y"]), min_size=2, max_size=8))
def test_folded_block_with_lines_indented_more(lines: list[str]) -> None:
    node = _only("when: >2\n" + "".join(f"  {line}\n" if line else "\n" for line in lines) + "after: 1\n")
    _assert_all_found(node)


@given(st.lists(st.sampled_from(["alpha", "b == 2", "'x' in y", "é"]), min_size=1, max_size=5), st.integers(1, 3))
def test_plain_over_several_lines(lines: list[str], breaks: int) -> None:
    node = _only("when: a\n" + "".join("\n" * (breaks - 1) + f"   {line}\n" for line in lines) + "after: 1\n")
    _assert_all_found(node)


@pytest.mark.parametrize(
    ("text", "offset", "column", "line"),
    [
        ("when: abc == d\n", 4, 11, 1),
        ("when: 'it''s ' \n", 3, 12, 1),
        ('when: "\\u00e9 = x"\n', 4, 17, 1),
        ('when: "one \\\n   two"\n', 4, 4, 2),
        ("when: |\n  abc\n   def\n", 5, 4, 3),
        ("when: >-\n  é and\n  bad\n", 6, 3, 3),
        ("when: |2\n   abc\n", 1, 4, 2),
        ("when: '''none'''\n", 0, 8, 1),
        ("when: abc\n", 3, 10, 1),
        ("when: ''\n", 0, 7, 1),
    ],
)
def test_a_problem_is_shown_at_its_character(text: str, offset: int, column: int, line: int) -> None:
    problem = _only(text).problem_within("here", offset)
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == (line, column)
