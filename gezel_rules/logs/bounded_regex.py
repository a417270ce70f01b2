"""Which regular expressions a log rule may use: those whose running time a hostile log cannot blow up.

A log is written by others (a model's name, a chat template), so a pattern must not backtrack without bound. Refused:
a repeat inside a repeat when both are long, back references, conditionals, and more than ``MAX_LONG`` long repeats
in one pattern (each multiplies the time by the length of a line, which ``watch_lines`` bounds).
"""

from __future__ import annotations

import re
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

LONG = 64  # a repeat that may run further than this counts as long
SHORT = 12  # a repeat inside a long one may run this far
MAX_LONG = 3

_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


def faults(pattern: str) -> list[tuple[str, int]]:
    """What is wrong with a pattern, each as (message, offset in the pattern); empty when it may be used."""
    try:
        tree = _parser.parse(pattern)
        re.compile(pattern)
    except re.error as error:
        return [(f"not a regular expression: {error.msg}", error.pos or 0)]
    except (OverflowError, RecursionError):
        return [("not a regular expression: too large", 0)]
    found: list[str] = []
    longs = _walk(tree, False, found)
    if longs > MAX_LONG:
        found.append(f"{longs} repeats longer than {LONG}; at most {MAX_LONG}, so that no line takes long to read")
    return [(message, 0) for message in dict.fromkeys(found)]


def _walk(tree: Any, inside: bool, found: list[str]) -> int:
    """Number of long repeats in a parsed pattern; ``inside`` says whether one is open around it."""
    return sum(_item(op, argument, inside, found) for op, argument in tree)


def _item(op: Any, argument: Any, inside: bool, found: list[str]) -> int:
    if op in _REPEATS:
        return _repeat(argument, inside, found)
    if op is sre.SUBPATTERN:
        return _walk(argument[3], inside, found)
    if op is sre.BRANCH:
        return max((_walk(branch, inside, found) for branch in argument[1]), default=0)
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        return _walk(argument[1], inside, found)
    if op is sre.ATOMIC_GROUP:
        return _walk(argument, inside, found)
    if op in (sre.GROUPREF, sre.GROUPREF_EXISTS):
        found.append("refers back to a group; not allowed, it can backtrack without bound")
    return 0


def _repeat(argument: Any, inside: bool, found: list[str]) -> int:
    _, most, body = argument
    if most > SHORT and inside:
        found.append("a repeat inside a repeat can backtrack without bound; bound the inner one or drop one")
    return int(most > LONG) + _walk(body, inside or most > SHORT, found)
