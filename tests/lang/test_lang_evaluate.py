"""Values: unknown follows Kleene, facts are data and nothing else, and what cannot be worked with is said."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from expressions import CALLABLES, ROWS, SCOPE, TYPES, checked, conditions, worlds
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.lang.check import Scope, check
from gezel_rules.lang.evaluate import EvaluationError, Evaluator
from gezel_rules.lang.parse import ExpressionError, bind, parse
from gezel_rules.lang.types import ANY


def value_of(text: str, **names: Any) -> Any:
    """The value of an expression whose names may hold anything: nothing is known of them beforehand."""
    tree = bind(parse(text), names)
    return Evaluator(names, CALLABLES).evaluate(tree)


LOGIC = st.recursive(
    st.sampled_from(["a", "b", "c"]),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
        | inner.map(lambda p: f"(not {p})")
    ),
    max_leaves=8,
)


def _kleene(text: str, values: dict[str, float]) -> float:
    """Three-valued logic by arithmetic: false 0, unknown ½, true 1; and is min, or is max, not is 1 - x."""

    class Truth(float):
        def __and__(self, other: float) -> Truth:
            return Truth(min(self, other))

        def __or__(self, other: float) -> Truth:
            return Truth(max(self, other))

        def __invert__(self) -> Truth:
            return Truth(1 - self)

    spelled = text.replace("and", "&").replace("or", "|").replace("not ", "~")
    return float(eval(spelled, {}, {name: Truth(value) for name, value in values.items()}))


@given(LOGIC)
def test_unknown_follows_kleene(text: str) -> None:
    worth = {0.0: False, 0.5: UNKNOWN, 1.0: True}
    for a, b, c in itertools.product(worth, repeat=3):
        expected = worth[_kleene(text, {"a": a, "b": b, "c": c})]
        assert value_of(text, a=worth[a], b=worth[b], c=worth[c]) is expected


@given(conditions, worlds(), worlds(unknown=False))
def test_what_is_decided_without_a_fact_is_the_same_with_it(
    text: str, partial: dict[str, Any], full: dict[str, Any]
) -> None:
    if "known(" in text:
        return  # asks about our knowledge, not about the world
    tree = checked(text).tree
    whole = {name: full[name] if value is UNKNOWN else value for name, value in partial.items()}
    try:
        before, after = (Evaluator(names, CALLABLES).evaluate(tree) for names in (partial, whole))
    except EvaluationError:
        return
    if before is not UNKNOWN:
        assert before == after


@given(conditions, worlds())
def test_evaluation_changes_nothing_and_repeats(text: str, names: dict[str, Any]) -> None:
    tree, kept = checked(text).tree, copy.deepcopy({k: v for k, v in names.items() if v is not UNKNOWN})
    results = []
    for _ in range(2):
        try:
            results.append(Evaluator(names, CALLABLES).evaluate(tree))
        except EvaluationError as error:
            results.append(error.message)
    assert results[0] is results[1] or results[0] == results[1]
    assert {k: v for k, v in names.items() if v is not UNKNOWN} == kept


ATTACKS = [
    "().__class__", "'a'.__class__", "model.arch.__class__", "kv_types.__class__", "kv_types.clear()",
    "kv_types['f16'].clear()", "kv_types['f16'].items()", "engine.flags.append('x')", "[].append",
    "open('/etc/passwd')",
    "__import__('os').system('id')", "__builtins__", "globals()", "eval('1')", "exec('1')", "getattr(model, 'arch')",
    "model.__dict__", "kv_types.__getitem__", "'{0.__class__}'.format(model.arch)", "'%s' % model.arch", "rand()",
    "randint(3)", "int('3')", "str(3)", "9 ** 9 ** 9", "9.0 ** 999", "'a' * 1000000000", "[1] * 1000000000",
    "model.arch * 1000000000", "engine.flags * 1000000000", "'a' + 'b'", "[x for x in engine.flags]",
    "(lambda: 1)()", "f'{model.arch.__class__}'", "model.layers if (model := 1) else 2", "kv_types[0:1]",
    "*engine.flags", "max(*engine.flags)", "max(**kv_types)", "max.__globals__", "known.__globals__", "known(known)",
    "type(3)", "print(3)", "breakpoint()", "1 if True else open", "model", "settings", "_", "__name__", "None.x",
]  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS)
def test_no_way_out(text: str) -> None:
    with pytest.raises(ExpressionError):
        check(text, SCOPE)


@pytest.mark.parametrize("text", ["thing.__class__", "thing.items", "thing['x']", "thing()", "thing.clear()"])
def test_nor_through_a_value_nobody_knows_the_type_of(text: str) -> None:
    with pytest.raises(ExpressionError):
        check(text, SCOPE)


@pytest.mark.parametrize("thing", ["a", [1], {"a": 1}, None, True])
@pytest.mark.parametrize("text", ["thing * 1000000000", "thing + thing", "-thing", "1000000000 * thing", "thing - 1"])
def test_only_numbers_are_calculated(text: str, thing: Any) -> None:
    check(text, Scope({"thing": ANY}, {}))
    if thing is True:
        assert isinstance(value_of(text, thing=thing), int)
        return
    with pytest.raises(EvaluationError, match="not a number"):
        value_of(text, thing=thing)


@pytest.mark.parametrize(
    "text", ["thing and true", "true and thing", "not thing", "1 if thing else 2", "false or thing"]
)
@pytest.mark.parametrize("thing", [1, 0, "", "x", None, []])
def test_only_true_and_false_are_judged(text: str, thing: Any) -> None:
    with pytest.raises(EvaluationError, match="not true or false"):
        value_of(text, thing=thing)


def test_columns_are_keys_never_methods() -> None:
    assert value_of("t['f16'].items", t=ROWS) == "key"
    assert value_of("t['q8_0'].items", t=ROWS) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1 / (a - a)", "division by zero"),
        ("1 // (a - a)", "division by zero"),
        ("a * 1e308 * 10", "too large"),
        ("1e308 * 1e308", "too large"),
        ("a * 9223372036854775807", "too large"),
        ("t['q9'].bytes", "no row 'q9'"),
        ("divisible(a, a - a)", r"divisible\(\): integer modulo by zero"),
        ("s < 3", "cannot compare"),
        ("a in s", "cannot compare"),
        ("none_.x", "is not set"),
        ("a.x", "a is 3, which has no 'x'"),
    ],
)
def test_what_cannot_be_worked_with_is_said(text: str, says: str) -> None:
    with pytest.raises(EvaluationError, match=says):
        value_of(text, a=3, s="x", t=ROWS, none_=None)


@pytest.mark.parametrize(
    "text",
    ["u > 3", "3 == u", "u in [1, 2]", "u is none", "u + 1", "-u", "not u", "1 if u else 2", "t[u].bytes", "u.x",
     "max(u, 1)", "u == u"],
)  # fmt: skip
def test_whatever_reads_an_unknown_is_unknown(text: str) -> None:
    assert value_of(text, u=UNKNOWN, t=ROWS) is UNKNOWN


def test_known_asks_whether() -> None:
    assert value_of("known(u)", u=UNKNOWN) is False
    assert value_of("known(u)", u=None) is True


def test_unknown_is_no_truth_value() -> None:
    with pytest.raises(TypeError):
        bool(UNKNOWN)


def test_every_compound_node_is_recorded() -> None:
    names: dict[str, Any] = dict.fromkeys(TYPES, UNKNOWN) | {"model.layers": 3, "model.moe": True}
    evaluator = Evaluator(names, CALLABLES)
    tree = check("model.moe and model.layers + 1 > 3", SCOPE).tree
    assert evaluator.evaluate(tree) is True
    assert [value for _, value in evaluator.record] == [4, True, True]
    assert evaluator.record[-1][0] is tree
