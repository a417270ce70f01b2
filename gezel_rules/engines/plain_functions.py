"""Functions that policies of every family may call: pure, of nothing but their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gezel_rules.lang.types import ANY, FLAG, INTEGER, TEXT, Function, Type

_LIST = Type("list", item=TEXT)

SIGNATURES: Mapping[str, Function] = {
    "known": Function((ANY._replace(optional=True),), FLAG, "whether a fact is known"),
    "min": Function((INTEGER, INTEGER), INTEGER, "the smallest whole number", variadic=True),
    "max": Function((INTEGER, INTEGER), INTEGER, "the largest whole number", variadic=True),
    "divisible": Function((INTEGER, INTEGER), FLAG, "whether the first is a multiple of the second"),
    "overlap": Function((_LIST, _LIST), FLAG, "whether two lists share a member"),
    "file_name": Function((TEXT,), TEXT, "the last part of a path"),
    "joined": Function((_LIST,), TEXT, "the members of a list with commas between them"),
}

CALLABLES: Mapping[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "divisible": lambda value, by: value % by == 0,
    "file_name": lambda path: path.replace("\\", "/").rsplit("/", 1)[-1],
    "joined": ",".join,
    "overlap": lambda a, b: not set(a).isdisjoint(b),
}
"""Functions that need nothing but their arguments (``known`` is the evaluator's own)."""


def units(signatures: Mapping[str, Function]) -> dict[str, str]:
    """Units of what functions give: by function name, and by column as ``.column``."""
    found = {name: function.result.unit for name, function in signatures.items() if function.result.unit}
    for function in signatures.values():
        found |= {f".{column}": type_.unit for column, type_ in (function.result.fields or {}).items() if type_.unit}
    return found
