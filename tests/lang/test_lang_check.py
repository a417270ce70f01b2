"""Types before anything runs: what is refused, where, and what a test makes sure of."""

from __future__ import annotations

from typing import Any

import pytest
from expressions import CALLABLES, SCOPE, TYPES, anything, checked, conditions, numeric, worlds
from hypothesis import given

from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.lang.check import check, set_when
from gezel_rules.lang.evaluate import EvaluationError, Evaluator
from gezel_rules.lang.parse import ExpressionError, bind, parse
from gezel_rules.lang.types import Type, accepts, join, table_type, type_of

KINDS: dict[str, Any] = {
    "flag": bool,
    "integer": int,
    "number": (int, float),
    "text": str,
    "list": list,
    "record": dict,
}


def conforms(value: Any, type_: Type) -> bool:
    if value is UNKNOWN or type_.kind == "any":
        return True
    if value is None:
        return type_.optional or type_.kind == "none"
    if type_.choices is not None and type_.kind == "text" and value not in type_.choices:
        return False
    number_for_flag = isinstance(value, bool) and type_.kind in ("integer", "number")
    return isinstance(value, KINDS[type_.kind]) and not number_for_flag


@given(anything)
def test_nothing_but_expression_errors(text: str) -> None:
    try:
        check(text, SCOPE)
    except ExpressionError as error:
        assert 0 <= error.offset <= len(text)


@given(conditions | numeric | anything, worlds())
def test_a_checked_expression_gives_what_was_promised(text: str, names: dict[str, Any]) -> None:
    try:
        tree, type_ = check(text, SCOPE)
    except ExpressionError:
        return
    try:
        value = Evaluator(names, CALLABLES).evaluate(tree)
    except EvaluationError as error:
        assert error.message
        return
    if type_.kind == "table":
        assert value is names["kv_types"]
    else:
        assert conforms(value, type_), (value, type_)


@given(conditions)
def test_generated_conditions_are_well_typed(text: str) -> None:
    assert checked(text).type.kind in ("flag", "any")


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("model.arch > 3", "model.arch", "must be a number, not text"),
        ("model.layers and true", "model.layers", "must be true or false, not whole number"),
        ("not model.arch", "model.arch", "must be true or false"),
        ("-model.arch", "model.arch", "must be a number"),
        ("model.layers == 'x'", "model.layers == 'x'", "never equal"),
        ("settings.window > 3", "settings.window", "may be none here"),
        ("settings.vision and true", "settings.vision", "may be none: write 'settings.vision == true'"),
        ("settings.vision", "", ""),
        ("model.layers is none", "model.layers", "never none"),
        ("settings.kv_type == 'q8_1'", "'q8_1'", "did you mean 'q8_0'?"),
        ("'zebra' == settings.kv_type", "'zebra'", "known: f16, q8_0"),
        ("settings.kv_type in ['f16', 'q9']", "'q9'", "not one of its values"),
        ("'zebra' in kv_types", "'zebra'", "not one of its values"),
        ("model.layers in engine.flags", "model.layers in engine.flags", "never in a list of text"),
        ("model.arch in model.layers", "model.layers", "needs a list or a table"),
        ("kv_types['q9'].bytes", "'q9'", "not one of its values"),
        ("kv_types['f16'].byte", "byte", "did you mean 'bytes'?"),
        ("kv_types[settings.kv_type].bytes", "settings.kv_type", "looked up by text"),
        ("kv_types[3].bytes", "3", "looked up by text"),
        ("model.arch['x']", "model.arch", "only tables"),
        ("model.arch.upper", "upper", "has no columns"),
        ("maxi(1, 2)", "maxi", "did you mean 'max'?"),
        ("max(1)", "max(1)", "takes 2 arguments, not 1"),
        ("divisible(1, 2, 3)", "divisible(1, 2, 3)", "takes 2 arguments, not 3"),
        ("max(1, model.arch)", "model.arch", "needs number, not text"),
        ("divisible(settings.window, 2)", "settings.window", "needs whole number, not whole number or none"),
        ("1 if model.layers else 2", "model.layers", "must be true or false"),
        ("1 if true else 'x'", "1 if true else 'x'", "one type"),
        ("[1, 'x']", "'x'", "one type"),
        ("known", "known", "unknown fact"),
    ],
)
def test_refused_with_the_place(text: str, at: str, says: str) -> None:
    if not at:
        assert check(text, SCOPE).type.optional
        return
    with pytest.raises(ExpressionError) as caught:
        check(text, SCOPE)
    error = caught.value
    assert says in error.message
    assert text[error.offset : error.offset + error.width] == at


@pytest.mark.parametrize(
    "text",
    [
        "settings.window is not none and settings.window > 3",
        "settings.window is none or settings.window > 3",
        "not (settings.window is none) and settings.window > 3",
        "settings.window > 3 if settings.window is not none else false",
        "settings.window is not none and (settings.window > 3 or settings.window < model.layers)",
        "settings.kv_type == 'f16' and kv_types[settings.kv_type].automatic",
        "max(settings.window if settings.window is not none else 0, 3) > 3",
    ],
)
def test_a_test_for_none_counts_where_it_reaches(text: str) -> None:
    assert check(text, SCOPE).type.kind == "flag"


@pytest.mark.parametrize(
    "text",
    [
        "settings.window is not none or settings.window > 3",
        "settings.window is none and settings.window > 3",
        "settings.window > 3 and settings.window is not none",
        "settings.window > 3 if settings.window is none else false",
        "(settings.window is not none or model.moe) and settings.window > 3",
    ],
)
def test_and_not_where_it_does_not(text: str) -> None:
    with pytest.raises(ExpressionError, match="may be none here"):
        check(text, SCOPE)


@given(conditions, worlds(unknown=False))
def test_what_a_condition_makes_sure_of_is_so(text: str, names: dict[str, Any]) -> None:
    tree = bind(parse(text), TYPES)
    try:
        held = Evaluator(names, CALLABLES).evaluate(tree)
    except EvaluationError:
        return
    if not isinstance(held, bool):
        return
    for name in set_when(tree, held):
        if name in names:
            assert names[name] is not None


def test_units_follow_the_figures() -> None:
    assert check("settings.window if settings.window is not none else 3", SCOPE).type.unit == "tokens"


def test_types_join_to_the_wider() -> None:
    integer, number, none = type_of(3), type_of(2.5), type_of(None)
    assert join(integer, number) == number
    assert join(none, integer) == integer._replace(optional=True)
    assert join(type_of("a"), integer) is None
    assert accepts(number, integer)
    assert not accepts(integer, number)


def test_a_missing_cell_is_none() -> None:
    columns = table_type({"a": {"x": 1, "y": 2}, "b": {"x": 2.5}}).item
    assert columns is not None and columns.fields is not None
    assert str(columns.fields["x"]) == "number"
    assert str(columns.fields["y"]) == "whole number or none"
