"""Answers on their way to the person, or to the program that asked for JSON."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # type checkers know this name; typing itself is left to those who need it

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import Any

    from gezel_rules.engines.family import Report
    from gezel_rules.errors import Problem


def json_text(data: Any) -> str:
    """JSON: indented, and as people write, on a terminal; on one line for a program, in a seventh of the time."""
    import json

    return json.dumps(data, indent=2, ensure_ascii=False) if sys.stdout.isatty() else json.dumps(data)


def tell(lines: Iterable[str]) -> None:
    """Print lines that may quote files of other people: what would drive a terminal is shown instead."""
    from gezel_rules.facts.printable import visible

    print(visible("\n".join(lines)))


def count(number: int, what: str, many: str = "") -> str:
    """``1 file``, ``2 files``, ``2 entries``."""
    return f"{number} {what if number == 1 else many or what + 's'}"


def columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows of cells below each other, as wide as the widest."""
    table = [head, *rows]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def write_page(path: Path, page: str) -> None:
    """Write a page for a browser. Raises BadInput for a file that cannot be written."""
    from gezel_rules.errors import BadInput, why

    try:
        path.write_text(page, "utf-8", "backslashreplace")  # names of files may be no text
    except OSError as error:
        raise BadInput(f"{path}: {why(error)}") from None


def problem_json(problem: Problem) -> dict[str, Any]:
    """A problem with its place and the line it stands in."""
    span = problem.span._asdict() if problem.span else {}
    return {"message": problem.message, **span, "text": problem.line_text}


def show(report: Report, as_json: bool) -> int:
    """Print it; returns the exit status."""
    if as_json:
        print(json_text(report.data))
    else:
        tell(report.lines)
    return 0
