"""What an engine says about itself: ``--version``, ``--help``, its log, in the formats of several years.

llama.cpp has printed ``version: 5123 (abc1234)`` (a build number) since 2023 and ``version: 0.6.0-dev (build 0,
commit unknown)`` since it has releases, after whatever its backends print while starting.
"""

from __future__ import annotations

import re

from gezel_rules.record import NamedTuple

_VERSION = re.compile(r"^version: +(\S+)(?: +\((.*)\))?\s*$", re.MULTILINE)
_BUILD = re.compile(r"\bbuild (\d{1,9})\b")
_RELEASE = re.compile(r"v?(\d{1,9}(?:\.\d{1,9})*)(?:[-.]?(dev|alpha|beta|pre|rc|a|b)\.?(\d{0,9}))?(?:[-+](.+))?")
_PHASES = {"dev": ".dev", "alpha": "a", "a": "a", "beta": "b", "b": "b", "pre": "rc", "rc": "rc"}
_OPTION_LINE = re.compile(r" {0,2}-")
_NAME = re.compile(r"(--?[A-Za-z][\w.-]*)(?:[ =][^\s,]+)?(,\s+(?=-))?")
_VARIABLE = re.compile(r"\(env: ([A-Z][A-Z0-9_]*)\)")
_LISTED = re.compile(
    r"^ {0,2}(?:-.{0,80}?[ ,])?(--[a-z][\w-]*) \{?([a-z][a-z0-9-]*(?:,[a-z][a-z0-9-]*)+)\}?(?:\s|$)", re.MULTILINE
)
_SYSTEM = re.compile(r"\bsystem_info: (.*)")
_FEATURE = re.compile(r"\b([A-Z][A-Z0-9_]*) = ([1-9]\d*)\b")
_REMOVED = "the argument has been removed"  # such options are listed, and refused when given


class Version(NamedTuple):
    """``version`` as PEP 440 (``0.6.0.dev0``) and the build number; ``None`` for what the engine does not say."""

    version: str | None
    build: int | None


class Help(NamedTuple):
    """``flags`` are all option names the engine takes, long and short, sorted; ``variables`` maps an environment
    variable to the names of its option, in the engine's order; ``words`` an option to the words it may be given, where
    they are listed right behind its name."""

    flags: tuple[str, ...]
    variables: dict[str, tuple[str, ...]]
    words: dict[str, tuple[str, ...]]


def parse_version(text: str) -> Version | None:
    """The version line wherever it stands; ``None`` when there is none (not an engine we know)."""
    match = _VERSION.search(text)
    if match is None:
        return None
    word, inside = match[1], match[2] or ""
    if word.isdecimal():
        return Version(None, int(word[:12]) or None)
    number = _BUILD.search(inside)
    # Build 0 is what a build outside a git checkout calls itself: not a number.
    return Version(pep440(word), (int(number[1]) or None) if number else None)


def pep440(word: str) -> str | None:
    """``0.6.0-dev`` → ``0.6.0.dev0``; ``None`` for what is no version."""
    match = _RELEASE.fullmatch(word)
    if match is None:
        return None
    release = ".".join(str(int(part)) for part in match[1].split("."))
    phase = f"{_PHASES[match[2]]}{int(match[3] or 0)}" if match[2] else ""
    local = ".".join(re.findall(r"[a-z0-9]+", (match[4] or "").lower()))
    return release + phase + (f"+{local}" if local else "")


def parse_features(text: str) -> tuple[str, ...] | None:
    """What the build's code uses of this processor, from the line ``system_info: … | CPU : AVX2 = 1 | …`` of its log:
    the names that are not 0, sorted; ``None`` when there is no such line."""
    match = _SYSTEM.search(text)
    return tuple(sorted({name for name, _ in _FEATURE.findall(match[1])})) if match else None


def parse_help(text: str) -> Help:
    """The options a ``--help`` lists, without those it lists only to say that they are gone."""
    flags: set[str] = set()
    variables: dict[str, tuple[str, ...]] = {}
    for names, description in _options(text):
        if _REMOVED in description:
            continue
        flags.update(names)
        for variable in _VARIABLE.findall(description):
            variables[variable] = names
    words = {match[1]: tuple(match[2].split(",")) for match in _LISTED.finditer(text)}
    return Help(tuple(sorted(flags)), variables, words)


def _options(text: str) -> list[tuple[tuple[str, ...], str]]:
    """(names, description) of each option; its description runs on until the next option or an empty line."""
    found: list[tuple[tuple[str, ...], str]] = []
    for line in text.splitlines():
        if _OPTION_LINE.match(line) and not line.startswith("-----"):
            names, rest = _names(line.strip())
            found.append((names, rest))
        elif found and line.startswith(" "):
            names, description = found[-1]
            found[-1] = names, f"{description} {line.strip()}"
    return found


def _names(line: str) -> tuple[tuple[str, ...], str]:
    """The option names at the start of a line, and what follows them."""
    names, at = [], 0
    while match := _NAME.match(line, at):
        names.append(match[1])
        at = match.end()
        if not match[2]:
            break
    return tuple(names), line[at:]
