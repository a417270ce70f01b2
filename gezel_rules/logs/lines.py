"""From a line as it lies in a log to the engine's own words: colours, wrappers, stamps and JSON taken off.

What a prefix looks like stands in log policies; here only the order of the work. Bounded: a line counts up to
``LONGEST`` bytes, at most ``NESTED`` prefixes are taken off.
"""

from __future__ import annotations

import json
from typing import Any

from gezel_rules.facts.printable import printable
from gezel_rules.logs.model import Lines, Pattern, Prefix, Quote
from gezel_rules.record import NamedTuple
from gezel_rules.regex import Match

LONGEST = 8 << 10  # bytes of a line that are read
NESTED = 8  # prefixes around one message (compose, clock, port, stamp, …)


class Words(NamedTuple):
    """The engine's words: ``level`` is its letter (``''`` when not said), ``stamped`` whether its own stamp led it."""

    text: str
    level: str
    stamped: bool


def unwrap(line: bytes | str, lines: Lines) -> Words:
    """The engine's words in one line of a log (without its end)."""
    text = line[:LONGEST].decode("utf-8", "replace") if isinstance(line, bytes) else line[:LONGEST]
    text = _stripped(text.removeprefix("\ufeff"), lines)
    level, stamped = "", False
    for _ in range(NESTED):
        inner = _from_object(text, lines) if text.startswith("{") else None
        if inner is not None:
            text, level, stamped = _stripped(inner[0], lines), inner[1] or level, True
            continue
        step = _strip_prefix(text, lines)
        if step is None:
            break
        text, level, stamped = step[0], step[1] or level, stamped or step[2]
        if step[2]:  # what follows the engine's own stamp is its message, whatever it looks like
            break
    return Words(text.rstrip(), level, stamped)


def _stripped(text: str, lines: Lines) -> str:
    if lines.strip.found_in(text):
        for expression in lines.strip.expressions:
            text = expression.remove(text)
    return text


def _strip_prefix(text: str, lines: Lines) -> tuple[str, str, bool] | None:
    for at in lines.leads.found_in(text):
        prefix = lines.prefixes[at]
        match = prefix.match.match(text)
        end = _end(prefix, match) if match else 0
        if match and end and not _excluded(prefix, text):
            level = match.groupdict().get("level") or ""
            return text[end:], level[:1].upper(), prefix.stamp
    return None


def _end(prefix: Prefix, match: Match) -> int:
    words = prefix.match.start_of("words", match)
    return match.end() if words is None else words


def _excluded(what: Pattern | Prefix | Quote, text: str) -> bool:
    return what.but_not is not None and what.but_not.search(text) is not None


def _from_object(text: str, lines: Lines) -> tuple[str, str] | None:
    """Text and level of a line that is a JSON object holding one; None for any other line."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    said = next((value[key] for key in lines.texts if isinstance(value.get(key), str)), None)
    if said is None:
        return None
    level = next((value[key] for key in lines.levels if isinstance(value.get(key), str)), "")
    return said.rstrip("\r\n"), level[:1].upper()


def ignored(text: str, lines: Lines) -> bool:
    """Whether the line only repeats names, paths or text of others."""
    return lines.ignored.found_in(text) != []


def matches(pattern: Pattern, words: Words) -> bool:
    """Whether a line is what the pattern means: level, expression, and nothing it excludes."""
    if pattern.levels and words.level and words.level not in pattern.levels:
        return False
    return pattern.match.search(words.text) is not None and not _excluded(pattern, words.text)


def opens(quote: Quote, words: Words) -> bool:
    """Whether a line begins a quotation."""
    return quote.opens.search(words.text) is not None and not _excluded(quote, words.text)


def shown(text: str, longest: int = 240) -> str:
    """The first line of a text, fit for a terminal, cut at ``longest`` characters."""
    return printable(text.split("\n", 1)[0].replace("\t", " ").strip(), longest)
