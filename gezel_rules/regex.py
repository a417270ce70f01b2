"""Regular expressions that policies hold, in the language of RE2 (https://github.com/google/re2/wiki/Syntax).

They are held against what others write: logs, names of devices and files. RE2 never backtracks: the time grows with the
text and with the ``steps`` of an expression, and with nothing else. What would need backtracking it does not have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Protocol

STEPS = 1000
"""What an expression may compile to: RE2 takes at most 13 ns for a step and a byte (2 vCPUs, google-re2 1.1.20251105,
2026-12: 0.1 s for 8 KiB in the worst case)."""
LENGTH = 4000  # characters of an expression
_MEMORY = 1 << 20  # bytes for a compiled expression and what it learns of texts; RE2 goes on without when they are full
_MEMORY_OF_MANY = 8 << 20  # the same for hundreds at once
_NAME = re.compile(r"\(\?P?<(\w+)>")
_NO_LEAST = re.compile(r"\{,\d+\}")
_NO_LOOK = "there is no looking ahead or behind: write what may stand there itself ([^x], or $ for the end)"
_NO_BACKTRACKING = "leave it out: nothing is ever tried again here"
_INSTEAD = {
    "(?=": _NO_LOOK, "(?!": f"{_NO_LOOK}; a log policy's 'but_not' says what must not", "(?<=": _NO_LOOK,
    "(?<!": _NO_LOOK, "(?P": "nothing refers back to a group; (?P<name>…) names one", "(?>": _NO_BACKTRACKING,
    "(?(": "write both cases with | between them", "(?#": "put it into a comment of the file", "++": _NO_BACKTRACKING,
    "*+": _NO_BACKTRACKING, "?+": _NO_BACKTRACKING, "\\Z": "write \\z", "\\u": "write \\x{…} or the character itself",
    "\\N": "write the character itself",
}  # fmt: skip
"""What stands in an expression and is not in the language → what to write."""


class Match(Protocol):
    """Where an expression was found; groups that took no part are ``None``."""

    def __getitem__(self, group: str) -> Any: ...
    def groupdict(self) -> dict[str, str | None]: ...
    def start(self, group: int) -> int: ...
    def end(self) -> int: ...


class Regex:
    """An expression that is compiled when it is first used: few of them are. It must be without ``faults``."""

    __slots__ = ("_compiled", "ignore_case", "text")

    def __init__(self, text: str, ignore_case: bool = False) -> None:
        self.text, self.ignore_case = text, ignore_case
        self._compiled: Any = None

    @property
    def compiled(self) -> Any:
        """RE2's own object."""
        if self._compiled is None:
            self._compiled = _compile(self.text, self.ignore_case)
        return self._compiled

    def search(self, text: str) -> Match | None:
        """The first place in a text, if there is one."""
        return self.compiled.search(_whole(text))  # type: ignore[no-any-return]

    def match(self, text: str) -> Match | None:
        """The same, at the start of the text alone."""
        return self.compiled.match(_whole(text))  # type: ignore[no-any-return]

    def remove(self, text: str) -> str:
        """The text without what is found in it."""
        return self.compiled.sub("", _whole(text)) if self.search(text) else text

    @property
    def groups(self) -> frozenset[str]:
        """The names of its groups."""
        return frozenset(self.compiled.groupindex)

    def start_of(self, group: str, match: Match) -> int | None:
        """Where a named group begins; ``None`` when there is none, or it took no part."""
        number = self.compiled.groupindex.get(group)
        return None if number is None or match[group] is None else match.start(number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Regex) and (other.text, other.ignore_case) == (self.text, self.ignore_case)

    def __hash__(self) -> int:
        return hash(self.text)


class Choice:
    """Expressions that are asked all at once which of them a text holds: ``anywhere``, or at its start."""

    __slots__ = ("_set", "anywhere", "expressions")

    def __init__(self, expressions: Iterable[Regex], anywhere: bool = False) -> None:
        self.expressions, self.anywhere = tuple(expressions), anywhere
        self._set: Any = None

    def found_in(self, text: str | bytes) -> list[int]:
        """The places of those expressions in ``expressions``, in that order."""
        if self._set is None:
            self._set = _set(self)
        found = self._set.Match(_whole(text).encode() if isinstance(text, str) else text)
        if found is None:  # not even the empty one, which every text holds: it did not get the memory it needs
            found = range(len(self.expressions))
        return sorted(at for at in found if at < len(self.expressions))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and (other.expressions, other.anywhere) == (self.expressions, self.anywhere)

    def __hash__(self) -> int:
        return hash(self.expressions)


class Literals:
    """Texts that are looked for all at once in bytes, as they stand."""

    __slots__ = ("_any", "_each")

    def __init__(self, texts: Iterable[str]) -> None:
        escaped = [_escaped(text) for text in texts]
        self._any = _compile("|".join(escaped), memory=_MEMORY_OF_MANY) if escaped else None
        self._each = Choice((Regex(text) for text in escaped), anywhere=True)

    def next_in(self, data: bytes, start: int) -> int:
        """Where the first of them begins at or behind ``start``; -1 when none does."""
        match = self._any.search(data, start) if self._any else None
        return match.start() if match else -1

    def found_in(self, data: bytes) -> list[int]:
        """The places of those that stand in the data, in the order they were given in."""
        return self._each.found_in(data)


def faults(text: str, groups: Collection[str] = ()) -> list[tuple[str, int]]:
    """What is wrong with an expression that must name these groups, each as (message, offset in the expression)."""
    import re2

    if len(text) > LENGTH:
        return [(f"has {len(text):,} characters, at most {LENGTH:,}", 0)]
    try:
        compiled = _compile(text)
    except re2.error as error:
        return [_explained(text, _words(error))]
    except UnicodeEncodeError as error:
        return [("not a regular expression: half a character", error.start)]
    found = _other_than_meant(text)
    if compiled.programsize > STEPS:
        said = f"takes {compiled.programsize:,} steps, at most {STEPS:,}: write + or * for a long repeat"
        found.append((said, 0))
    missing = [f"(?P<{name}>…)" for name in groups if name not in compiled.groupindex]
    return [*found, (f"must name {' and '.join(missing)}", 0)] if missing else found


def _compile(text: str, ignore_case: bool = False, memory: int = _MEMORY) -> Any:
    import re2

    return re2.compile(text, _options(ignore_case, memory))


def _escaped(text: str) -> str:
    import re2

    return str(re2.escape(text))


def _set(choice: Choice) -> Any:
    import re2

    options = _options(False, _MEMORY_OF_MANY)
    made = re2.Set.SearchSet(options) if choice.anywhere else re2.Set.MatchSet(options)
    for expression in choice.expressions:
        made.Add(expression.text)
    made.Add("")
    made.Compile()
    return made


def _options(ignore_case: bool, memory: int) -> Any:
    import re2

    options = re2.Options()
    options.max_mem, options.log_errors, options.case_sensitive = memory, False, not ignore_case
    return options


def _whole(text: str) -> str:
    """The text with a mark for each half of a character (JSON may hold one), which UTF-8 cannot write."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _explained(text: str, error: str) -> tuple[str, int]:
    said, _, what = error.partition(": ")
    hint = next((f"; {instead}" for start, instead in _INSTEAD.items() if what.startswith(start)), "")
    quoted = f" '{what}'" if what and len(what) < len(text) else ""
    offset = _unclosed(text) if _lacks_bracket(text) else _where(text, error, what)
    return f"not a regular expression: {said}{quoted}{hint}", offset


def _words(error: Exception) -> str:
    said = error.args[0]
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _error(text: str) -> str:
    """What RE2 has against an expression: the fault, a colon, and the part that shows it; else nothing."""
    import re2

    try:
        _compile(text)
    except re2.error as error:
        return _words(error)
    return ""


def _where(text: str, error: str, what: str) -> int:
    """The offset of the part that RE2 names: of its places the first up to which, or just beyond, the text has this
    fault."""
    at = text.find(what) if what else -1
    while at >= 0 and _error(text[: at + len(what) + 2]) != error:
        at = text.find(what, at + 1)
    return max(at, 0)


def _unclosed(text: str) -> int:
    """The offset of the last bracket that is opened and not closed: what stands before it has no other fault."""
    for at in range(len(text) - 1, -1, -1):
        if text[at] == "(" and _lacks_bracket(text[at:]) and (_lacks_bracket(text[:at]) or not _error(text[:at])):
            return at
    return 0


def _lacks_bracket(text: str) -> bool:
    return _error(text).startswith("missing )")


def _other_than_meant(text: str) -> list[tuple[str, int]]:
    """What RE2 takes otherwise than whoever knows Python's expressions means it."""
    found = [(f"'{m[0]}' stands for itself here: write {{0{m[0][1:]}", m.start()) for m in _NO_LEAST.finditer(text)]
    seen: set[str] = set()
    for name in _NAME.finditer(text):
        if name[1] in seen:
            found.append((f"a second group is called '{name[1]}'", name.start()))
        seen.add(name[1])
    return found
