"""What a log policy is, once loaded: how lines are unwrapped, what they are evidence of, and which verdict follows.

Everything here is data from the log policies of a set; ``load`` reads and checks it, ``watch`` applies it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gezel_rules.record import NamedTuple
from gezel_rules.regex import Choice, Regex

GPU_VERDICTS = ("in-use", "init-failed", "no-devices", "not-loaded", "unknown")


class Place(NamedTuple):
    """Where a person finds a rule: file as shown (``policies/logs/process.yaml``) and 1-based line."""

    file: str
    line: int


class Prefix(NamedTuple):
    """What stands before an engine's words: removed at the start of a line, up to the group ``words`` where ``match``
    has one. ``but_not``: what such a line must not hold; ``stamp``: the engine itself writes it, so once one was seen,
    a line without it is the rest of a longer message, written by others."""

    id: str
    match: Regex
    but_not: Regex | None
    stamp: bool


class Quote(NamedTuple):
    """A message that prints somebody else's text over several lines: evidence within it does not count.

    It ends before the first line of the engine that matches ``then``, if the line before that matches ``closes``
    (None: any, and a stamped line always ends what a stamped one opened); a line that holds ``but_not`` opens none;
    ``lines`` bounds how far that may be; when it does not end in that reach nothing is quoted."""

    id: str
    needs: tuple[str, ...]
    opens: Regex
    but_not: Regex | None
    closes: Regex | None
    then: Regex
    lines: int


class Lines(NamedTuple):
    """How lines of all versions and wrappers become the engine's words. ``objects``: keys of JSON lines that hold
    the text, and the keys that hold its level; ``ignored``: lines that only repeat names and paths; ``leads``: the
    expressions of the prefixes."""

    strip: Choice
    prefixes: tuple[Prefix, ...]
    texts: tuple[str, ...]
    levels: tuple[str, ...]
    quotes: tuple[Quote, ...]
    ignored: Choice
    leads: Choice


class Pattern(NamedTuple):
    """One kind of line.

    ``needs``: literals, one of which stands in every match; ``gpu`` or ``failure``: what it supports; ``backends``:
    whom it speaks of (empty: any); ``engine``: versions that print it (None: any); ``levels``: levels it is printed
    at (empty: any); ``raw``: printed without the engine's stamp; ``fatal``: whether this line ends the start (None:
    as its failure class); ``until``: patterns that take it back when they come later."""

    id: str
    needs: tuple[str, ...]
    match: Regex
    but_not: Regex | None
    gpu: str | None
    failure: str | None
    detail: str | None
    backends: frozenset[str]
    engine: Range | None
    levels: str
    raw: bool
    fatal: bool | None
    until: frozenset[str]
    place: Place


class Exit(NamedTuple):
    """Exit statuses (as Python, a shell and Windows give them) that are evidence in themselves."""

    id: str
    statuses: frozenset[int]
    failure: str | None
    place: Place


class Rule(NamedTuple):
    """A verdict on the GPU and the condition it needs (see ``holds``); rules are tried in order."""

    id: str
    gpu: str
    condition: Condition
    detail: str | None
    advice: str | None
    place: Place


class Failure(NamedTuple):
    """A failure class. Without a ``condition`` any of its own patterns will do; classes are tried in order.
    ``fatal``: it ends the start (else the engine goes on without something)."""

    id: str
    says: str
    advice: str
    fatal: bool
    condition: Condition | None
    place: Place


class LogPolicy(NamedTuple):
    """All log policies of a set.

    ``without_gpu``: backends that use none by design; ``settled_by``: patterns after which an earlier fatal failure
    was not final; ``versions``: policy name → version."""

    lines: Lines
    patterns: Mapping[str, Pattern]
    exits: tuple[Exit, ...]
    groups: Mapping[str, tuple[str, ...]]
    rules: tuple[Rule, ...]
    failures: tuple[Failure, ...]
    backends: frozenset[str]
    without_gpu: frozenset[str]
    settled_by: frozenset[str]
    versions: Mapping[str, str]


class Condition(NamedTuple):
    """``all`` of these hold, ``any`` of those (if there are any), and ``none`` of the rest. A part is the id of a
    pattern, exit or group, a ``('backend', name)`` pair, or a condition."""

    all: tuple[Any, ...] = ()
    any: tuple[Any, ...] = ()
    none: tuple[Any, ...] = ()


def holds(condition: Condition, seen: Callable[[str], bool], backend: str | None) -> bool:
    """Whether a condition holds on the evidence ``seen``, for the backend the caller named."""

    def part(item: Any) -> bool:
        if isinstance(item, Condition):
            return holds(item, seen, backend)
        return seen(item) if isinstance(item, str) else item[1] == backend

    if not all(part(item) for item in condition.all) or any(part(item) for item in condition.none):
        return False
    return not condition.any or any(part(item) for item in condition.any)


def named(condition: Condition) -> tuple[str, ...]:
    """The evidence a condition asks for (not what it excludes), in reading order."""
    found: list[str] = []
    for item in (*condition.all, *condition.any):
        if isinstance(item, Condition):
            found.extend(named(item))
        elif isinstance(item, str):
            found.append(item)
    return tuple(found)


_VERSION = re.compile(r"(?:v?(\d+)\.(\d+)(?:\.(\d+))?|b(\d+))\b")


def version_of(text: str) -> tuple[int, ...] | None:
    """Order of engine versions: build tags (``b4799``) came before numbered versions (``0.6.0``); None if neither."""
    match = _VERSION.match(text)
    if match is None:
        return None
    if match[4]:
        return (0, 0, int(match[4]))
    return (int(match[1]), int(match[2]), int(match[3] or 0))


class Range(NamedTuple):
    """Engine versions between two bounds: ``at_least`` inclusive, ``below`` exclusive."""

    at_least: tuple[int, ...] | None
    below: tuple[int, ...] | None

    def holds(self, version: tuple[int, ...] | None) -> bool:
        """Whether a version lies within; a version nobody knows may."""
        if version is None:
            return True
        return (self.at_least is None or version >= self.at_least) and (self.below is None or version < self.below)


def range_of(text: str) -> Range | None:
    """``>=0.4``, ``<b5400`` or ``>=b4000, <0.1.0``; None when it is neither."""
    bounds: dict[str, tuple[int, ...]] = {}
    for part in text.replace(" ", "").split(","):
        sign = ">=" if part.startswith(">=") else "<"
        version = version_of(part.removeprefix(sign))
        if version is None or not part.startswith(sign) or sign in bounds:
            return None
        bounds[sign] = version
    return Range(bounds.get(">="), bounds.get("<"))
