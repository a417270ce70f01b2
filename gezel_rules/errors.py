"""What can go wrong, said in one line, with the place at fault and the exit status it deserves."""

from __future__ import annotations

from gezel_rules.record import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import ClassVar


class Span(NamedTuple):
    """A place in a file a person can open: 1-based line and column; ``width`` characters are at fault."""

    file: str
    line: int
    column: int
    width: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Problem(NamedTuple):
    """One thing wrong with an input: what, where, and the source line for a caret (``None`` when there is none), of
    which ``left_out`` characters at its start are not quoted.

    ``misses``: the name that is not there, when that is what is wrong: problems that miss one name are one mistake.
    ``check``: the id of the check that found it ("": what keeps a file from being read).
    """

    message: str
    span: Span | None = None
    line_text: str | None = None
    left_out: int = 0
    misses: str = ""
    check: str = ""

    def __str__(self) -> str:
        return f"{self.span}: {self.message}" if self.span else self.message

    @property
    def place(self) -> tuple[str, int, int]:
        """File, line and column to sort by; what has no place comes first."""
        return self.span[:3] if self.span else ("", 0, 0)

    def with_caret(self) -> str:
        """The one-line form, then the source line with a caret under the fault."""
        if self.span is None or self.line_text is None:
            return str(self)
        before = self.span.column - 1 - self.left_out
        under = "".join("\t" if c == "\t" else " " for c in self.line_text[:before])
        return f"{self}\n    {self.line_text}\n    {under}{'^' * max(1, self.span.width)}"


class GezelError(Exception):
    """Base of every error a person may see. ``problems`` in file order; ``exit_status`` as the command line has it."""

    exit_status: ClassVar[int] = 2

    def __init__(self, problems: str | Problem | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = (Problem(problems),)
        elif isinstance(problems, Problem):
            problems = (problems,)
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(str(self))

    def __str__(self) -> str:
        more = len(self.problems) - 1
        return str(self.problems[0]) + (f" (and {more} more)" if more else "")


class BadInput(GezelError):
    """Usage or input at fault: nothing was touched (exit 2)."""


class Refused(GezelError):
    """The honest answer is no: it does not fit, is not healthy, is not allowed (exit 1)."""

    exit_status = 1


class EngineFailed(GezelError):
    """The engine did not start or died (exit 3)."""

    exit_status = 3


class TransferFailed(GezelError):
    """A download could not be completed or did not verify (exit 3)."""

    exit_status = 3


def why(error: OSError) -> str:
    """What went wrong with a file or a socket, to stand behind a colon."""
    said = error.strerror or str(error)
    return said[:1].lower() + said[1:]
