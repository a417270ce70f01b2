"""A small world for expressions, and strategies that write expressions in it: any text, token soup, and well-typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.lang.check import Checked, Scope, check
from gezel_rules.lang.parse import ExpressionError
from gezel_rules.lang.types import ANY, FLAG, INTEGER, NUMBER, TEXT, Function, Type, table_type

ROWS: dict[str, Any] = {
    "f16": {"bytes": 64, "automatic": True, "items": "key"},
    "q8_0": {"bytes": 34, "automatic": False},
}
TYPES: dict[str, Type] = {
    "model.layers": INTEGER,
    "model.arch": TEXT,
    "model.moe": FLAG,
    "gpu.share": NUMBER,
    "settings.window": INTEGER._replace(optional=True, unit="tokens"),
    "settings.kv_type": TEXT._replace(optional=True, choices=frozenset(ROWS)),
    "settings.vision": FLAG._replace(optional=True),
    "engine.flags": Type("list", item=TEXT),
    "kv_types": table_type(ROWS),
    "thing": ANY,
}
FUNCTIONS: dict[str, Function] = {
    "known": Function((ANY._replace(optional=True),), FLAG),
    "max": Function((NUMBER, NUMBER), NUMBER, variadic=True),
    "divisible": Function((INTEGER, INTEGER), FLAG),
}
CALLABLES: dict[str, Callable[..., Any]] = {"max": max, "divisible": lambda value, by: value % by == 0}
SCOPE = Scope(TYPES, FUNCTIONS)

_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "model.layers": st.integers(-3, 90),
    "model.arch": st.sampled_from(["llama", "qwen3", ""]),
    "model.moe": st.booleans(),
    "gpu.share": st.floats(-4, 4),
    "settings.window": st.none() | st.integers(0, 9000),
    "settings.kv_type": st.none() | st.sampled_from(sorted(ROWS)),
    "settings.vision": st.none() | st.booleans(),
    "engine.flags": st.lists(st.sampled_from(["--a", "--b"])),
    "thing": st.sampled_from([None, 3, 2.5, "llama", [1], {"bytes": 1}, True]),
}


def worlds(unknown: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """Values of the declared types for every name; some unknown, if that is allowed."""
    missing = st.just(UNKNOWN) if unknown else st.nothing()
    drawn = {name: values | missing for name, values in _VALUES.items()}
    return st.fixed_dictionaries({**drawn, "kv_types": st.just(ROWS)})


TOKENS = (
    *TYPES, "model", "settings.windw", "x", "and", "or", "not", "in", "not in", "is", "is not", "none", "true", "false",
    "None", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "//", "**", "%", "(", ")", "[", "]", "{", "}", ",",
    ".", ":", ";", "=", ":=", "lambda", "for", "if", "else", "await", "yield", "f'{x}'", "'f16'", "'é'", "''", "0", "3",
    "2.5", "1e999", "1j", "...", "b'x'", "known(", "max(", "divisible(", "open(", ".__class__", ".clear()", ".items",
    ".bytes", "['q8_0']", "\n", "\t", "  ", "#", "\\", "~", "@", "*",
)  # fmt: skip
soup = st.lists(st.sampled_from(TOKENS), max_size=14).map(" ".join) | st.lists(st.sampled_from(TOKENS), max_size=8).map(
    "".join
)
anything = st.text(max_size=60) | soup

_NUMBERS = ["model.layers", "gpu.share", "0", "3", "2.5", "-1", "kv_types['f16'].bytes", "max(model.layers, 2)"]
_TEXTS = ["model.arch", "'llama'", "'f16'"]


def _numbers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//"]), inner)
    return pair.map(lambda p: f"({p[0]} {p[1]} {p[2]})") | inner.map(lambda n: f"-{n}")


numeric = st.recursive(st.sampled_from(_NUMBERS), _numbers, max_leaves=4)
_atoms = (
    st.tuples(numeric, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), numeric).map(" ".join)
    | st.sampled_from(
        [
            "model.moe", "true", "false", "model.arch == 'llama'", "model.arch in ['llama', 'qwen3']",
            "'--a' in engine.flags", "settings.window is none", "settings.kv_type == 'q8_0'",
            "settings.kv_type in kv_types", "divisible(model.layers, 2)", "thing == 3",
            "kv_types['q8_0'].automatic", "settings.vision == true", "known(model.layers)",
            "(settings.window is not none and settings.window > 3)", "model.arch not in kv_types", "thing",
            "thing > 2", "thing in engine.flags", "divisible(model.layers, model.layers)",
        ]
    )
)  # fmt: skip


def _flags(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
    choice = st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})")
    return pair | choice | inner.map(lambda flag: f"not {flag}" if flag.startswith("(") else f"not ({flag})")


conditions = st.recursive(_atoms, _flags, max_leaves=6)


def checked(text: str) -> Checked:
    """A generated condition, typed; one that asks twice whether something is none is not of interest."""
    try:
        return check(text, SCOPE)
    except ExpressionError as error:
        assume("never none here" not in error.message)
        raise
