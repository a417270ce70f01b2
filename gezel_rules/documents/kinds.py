"""The kinds of values that YAML itself knows, in the words of messages."""

from __future__ import annotations

TEXT, INTEGER, NUMBER, FLAG = "text", "whole number", "number", "true or false"
LIST, MAP, NOTHING = "list", "mapping", "nothing"

_KINDS = {type(None): NOTHING, bool: FLAG, int: INTEGER, float: NUMBER, str: TEXT, list: LIST, dict: MAP}


def kind_of(value: object) -> str:
    """The kind of a value as a ``Node`` holds it."""
    return _KINDS[type(value)]


OTHER_FLAGS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
"""What older YAML took for true and false."""


def not_what(kind: str, value: object) -> str:
    """The kind of a value that is not what it should be, and what was probably meant."""
    meant = OTHER_FLAGS.get(value.lower()) if isinstance(value, str) and FLAG in kind.split("|") else None
    return f"{kind_of(value)}: '{value}' is a word in YAML 1.2, write {meant}" if meant else kind_of(value)


def fits(kind: str, value: object) -> bool:
    """Whether a value is of one of the kinds (``text|number``); a whole number is a number."""
    actual = kind_of(value)
    return any(one == actual or (one == NUMBER and actual == INTEGER) for one in kind.split("|"))
