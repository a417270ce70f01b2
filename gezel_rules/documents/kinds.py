"""The kinds of values that YAML itself knows, in the words of messages."""

from __future__ import annotations

TEXT, INTEGER, NUMBER, FLAG = "text", "whole number", "number", "true or false"
LIST, MAP, NOTHING = "list", "mapping", "nothing"

_KINDS = {type(None): NOTHING, bool: FLAG, int: INTEGER, float: NUMBER, str: TEXT, list: LIST, dict: MAP}


def kind_of(value: object) -> str:
    """The kind of a value as a ``Node`` holds it."""
    return _KINDS[type(value)]


def fits(kind: str, value: object) -> bool:
    """Whether a value is of one of the kinds (``text|number``); a whole number is a number."""
    actual = kind_of(value)
    return any(one == actual or (one == NUMBER and actual == INTEGER) for one in kind.split("|"))
