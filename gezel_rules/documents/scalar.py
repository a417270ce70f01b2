"""Where each character of a YAML scalar stands in the raw text: quotes, escapes, folding and indentation undone."""

from __future__ import annotations

import re

_FOLD = re.compile(r"[ \t]*\r?\n(?:[ \t]*\r?\n)*[ \t]*")
_ESCAPED_BREAK = re.compile(r"\\\r?\n[ \t]*")
_ESCAPE_LENGTHS = {"x": 4, "u": 6, "U": 10}


def raw_index(raw: str, start: int, end: int, value: str, offset: int) -> int:
    """The raw offset of ``value[offset]`` (one past the last character for the end of the value).

    ``raw[start:end]`` is the scalar as written, indicator or quotes included; ``value`` what it means.
    """
    style = raw[start : start + 1]
    if style in ("|", ">") and "\n" in raw[start:end]:
        places = _block(raw, start, end, value)
    elif style in ("'", '"'):
        places = _flow(raw, start + 1, end - 1, style)
    else:
        places = _flow(raw, start, end, "")
    if offset < len(places):
        return places[offset]
    return places[-1] + 1 if places else start


def _flow(raw: str, index: int, stop: int, quote: str) -> list[int]:
    """Plain and quoted scalars. A line end is one space; with empty lines after it, one line end for each."""
    places: list[int] = []
    while index < stop:
        fold = _FOLD.match(raw, index, stop) if raw[index] in " \t\r\n" else None
        if fold:
            places += [index] * max(1, fold[0].count("\n") - 1)
            index = fold.end()
        elif quote == '"' and (joined := _ESCAPED_BREAK.match(raw, index, stop)):
            index = joined.end()
        else:
            places.append(index)
            index += _length(raw, index, quote)
    return places


def _length(raw: str, index: int, quote: str) -> int:
    """How many raw characters one character of the value takes here."""
    if quote == '"' and raw[index] == "\\":
        return _ESCAPE_LENGTHS.get(raw[index + 1 : index + 2], 2)
    return 2 if quote == "'" and raw[index] == "'" else 1


def _block(raw: str, start: int, end: int, value: str) -> list[int]:
    """Literal and folded scalars: what becomes of each line end is read off the value."""
    index = raw.index("\n", start) + 1
    lines = raw[index:end].split("\n")
    indent = _indent(lines, value)
    places = [index] * (len(value) - len(value.lstrip("\n")))
    for line in lines:
        text = line.rstrip("\r")
        if len(text) > indent:
            places += range(index + indent, index + len(text))
            _line_ends(places, value, index + len(text))
        index += len(line) + 1
    return places


def _indent(lines: list[str], value: str) -> int:
    """Spaces that belong to the file and not to the value: seen at the first line that holds anything."""
    written = next((line for line in lines if line.strip()), "")
    meant = next((line for line in value.split("\n") if line.strip()), "")
    return max(0, _lead(written) - _lead(meant))


def _lead(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _line_ends(places: list[int], value: str, index: int) -> None:
    """A folded line end is one space; every other is itself, the empty lines after it included."""
    if value[len(places) : len(places) + 1] == " ":
        places.append(index)
        return
    while value[len(places) : len(places) + 1] == "\n":
        places.append(index)
