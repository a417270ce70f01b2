"""Text → tree: what the language has, and the place of what it does not have."""

from __future__ import annotations

import ast

import pytest
from expressions import TYPES, anything, conditions
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.lang.parse import MAX_LENGTH, ExpressionError, bind, parse, place, reads
from gezel_rules.lang.rebuild import rebuild


@given(anything)
def test_nothing_but_expression_errors(text: str) -> None:
    try:
        bind(parse(text), TYPES)
    except ExpressionError as error:
        assert 0 <= error.offset <= len(text)
        assert error.width >= 1
        assert "\n" not in error.message


@given(anything | conditions)
def test_a_checked_expression_is_rebuilt_as_it_was(text: str) -> None:
    try:
        bound = bind(parse(text), TYPES)
    except ExpressionError:
        return
    assert _shown(rebuild(text, TYPES)) == _shown(bound)


def _shown(tree: ast.expr) -> str:
    return ast.dump(tree).replace(", ctx=Load()", "")  # every name is read; nobody looks at it


@given(
    conditions, st.sampled_from(["", " ", "\n  ", "\r\n"]), st.sampled_from(["'é𝄞' == 'ü'", "true", "'a\u0301'=='x'"])
)
def test_the_unknown_name_is_shown_wherever_it_stands(known: str, lead: str, before: str) -> None:
    text = f"{lead}{before} and\n{known} or wrong.name > 1"
    with pytest.raises(ExpressionError) as caught:
        bind(parse(text), TYPES)
    error = caught.value
    assert text[error.offset : error.offset + error.width] == "wrong.name"


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("a ** b", "a ** b", "powers"),
        ("1 + (2 % 3)", "2 % 3", "%"),
        ("not a or [x for x in b]", "[x for x in b]", "comprehensions"),
        ("lambda: a", "lambda: a", "lambda"),
        ("(a := 3)", "a := 3", "assignment"),
        ("{'a': 1}", "{'a': 1}", "dictionaries"),
        ("{1, 2}", "{1, 2}", "sets"),
        ("(1, 2)", "(1, 2)", "tuples"),
        ("f'{a}'", "f'{a}'", "f-strings"),
        ("max(*a)", "*a", "*"),
        ("a[1:2]", "1:2", "slices"),
        ("a & b", "a & b", "write 'and'"),
        ("~a", "~a", "~"),
        ("a < b < c", "a < b < c", "one comparison"),
        ("a is 3", "a is 3", "none only"),
        ("max(a, key=b)", "max(a, key=b)", "plain calls"),
        ("a.clear()", "a.clear()", "plain calls"),
        ("(a or b)()", "(a or b)()", "plain calls"),
        ("1j", "1j", "only text"),
        ("...", "...", "only text"),
        ("b'x'", "b'x'", "only text"),
        ("1e999", "1e999", "too large"),
        ("-1e999", "1e999", "too large"),
        ("[a, 1]", "[a, 1]", "constants only"),
        ("a # b", "#", "comments"),
        ("a == 'x' # it's", "#", "comments"),
        ("a == '\\x41'", "\\", "backslashes"),
        ("", "", "not an expression"),
        ("a b", "b", "not an expression"),
        ("3or a", "3", "not an expression"),
        ("a; b", ";", "not an expression"),
        ("x = 1", "=", "not an expression"),
        ("\0", "\0", "not an expression"),
    ],
)
def test_what_the_language_does_not_have(text: str, at: str, says: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    error = caught.value
    assert says in error.message
    if at and error.width > 1:
        assert text[error.offset : error.offset + error.width] == at
    else:
        assert text[error.offset :].startswith(at[:1])


@pytest.mark.parametrize("text", ["'#' in a", "a == 'b # c' and d", 'a == "#"'])
def test_a_hash_inside_quotes_is_text(text: str) -> None:
    parse(text)


@pytest.mark.parametrize(
    "text",
    ["(" * 300 + "a" + ")" * 300, "not " * 400 + "a", "-" * 1500 + "1", "a" + ".b" * 900, "a" + "[b]" * 500, "[" * 200,
     "a if b else " * 100 + "c", " + ".join(["1"] * 200)],
)  # fmt: skip
def test_depth_is_bounded(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)


def test_length_is_bounded() -> None:
    assert parse(" and ".join(["a"] * 200))
    with pytest.raises(ExpressionError, match=f"longer than {MAX_LENGTH}"):
        parse("a or " * MAX_LENGTH)


def test_words_are_constants() -> None:
    assert ast.dump(parse("[true, false, none]")) == ast.dump(parse("[True, False, None]"))


def test_a_known_name_is_one_node_and_what_follows_a_column() -> None:
    tree = bind(parse("kv_types['f16'].bytes > model.layers"), TYPES)
    assert list(reads(tree)) == ["model.layers", "kv_types"] or list(reads(tree)) == ["kv_types", "model.layers"]
    assert "Attribute" in ast.dump(tree)


def test_names_that_are_close_are_offered() -> None:
    with pytest.raises(ExpressionError, match=r"unknown fact 'model.layer'; did you mean 'model.layers'\?"):
        bind(parse("model.layer > 1"), TYPES)


def test_a_word_without_quotes_is_recognised() -> None:
    with pytest.raises(ExpressionError, match="a word needs quotes inside: \"'f16'\""):
        bind(parse("f16"), TYPES)


def test_places_count_characters() -> None:
    tree = parse("  'é𝄞' == b")
    assert isinstance(tree, ast.Compare)
    assert place(tree.comparators[0]) == (10, 1)
