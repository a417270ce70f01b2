"""``gezel-rules catalog list``: what there is, what runs here, what is installed; ``catalog check [DIR]`` and ``catalog
header FILE``: for those who maintain it.

Exit status of ``check``: 0 when every entry and every described host is in order, 2 when one is not.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gezel_rules.cli.arguments import session_of
from gezel_rules.cli.shown import count, json_text, problem_json
from gezel_rules.cli.stored import size_words
from gezel_rules.errors import BadInput
from gezel_rules.facts.printable import printable

if TYPE_CHECKING:
    from gezel_rules.session.listing import Listed

HEADINGS = ("MODEL", "QUANT", "WEIGHTS", "RUNS", "INSTALLED", "NAME")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("action", metavar="ACTION", choices=tuple(ACTIONS), help=" or ".join(ACTIONS))
    parser.add_argument(
        "what", metavar="DIR|FILE|ID", nargs="?",
        help="check: the catalog (default: the one in use); header: a model on disk, described as an entry's 'header'; "
        "list: one model (default: all)",
    )  # fmt: skip
    parser.add_argument("--host", metavar="FILE", help="list: what runs on a described host")
    parser.add_argument("--origin", metavar="TEXT", help="header: where it was read (default: the file's name)")


def run(args: argparse.Namespace) -> int:
    """Do it. Raises BadInput."""
    return ACTIONS[args.action](args)


def _list(args: argparse.Namespace) -> int:
    from gezel_rules.session.listing import listing

    rows = list(listing(session_of(args), args.host, (args.what,) if args.what else ()))
    if args.json:
        print(json_text([row._asdict() for row in rows]))
        return 0
    table = [HEADINGS, *(_row(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
    return 0


def _row(row: Listed) -> tuple[str, ...]:
    runs = {True: "yes", False: "no", None: "?"}[row.runs_here]
    size = size_words(row.weights_bytes) if row.weights_bytes is not None else "?"
    name = f"{row.name}: {row.why}" if row.why and row.name else row.name or row.why
    return row.model, row.quant, size, runs, "yes" if row.installed else "-", printable(name)


def _check(args: argparse.Namespace) -> int:
    """Problems, each with its line and a caret, then what was checked: all of it is the answer."""
    from gezel_rules.session.catalog_check import check_catalog

    session = session_of(args)
    if args.what is not None:
        named = Path(os.path.abspath(args.what))  # noqa: PTH100 - resolve() would follow links and rename it
        session = session._replace(catalog=named)
    found = check_catalog(session)
    looked_at = f"{count(found.entries, 'entry', 'entries')} and {count(found.hosts, 'host')}"
    problems = [problem_json(problem) for problem in found.problems]
    if args.json:
        print(json_text({"problems": problems, "entries": found.entries, "hosts": found.hosts}))
    else:
        said = count(len(problems), "problem") if problems else "no problems"
        print(*(problem.with_caret() for problem in found.problems), f"checked {looked_at}: {said}", sep="\n")
    return 2 if problems else 0


def _header(args: argparse.Namespace) -> int:
    """The block as an entry has it; what it says of itself is held against the rest of it first."""
    from gezel_rules.engines import registry

    if args.what is None:
        raise BadInput("catalog header: which model on disk?")
    block = registry.of_file(args.what).describe_file(args.what, args.origin or Path(args.what).name)
    print(json_text({"header": block.plain()}) if args.json else block.text.text.rstrip("\n"))
    return 0


ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {"check": _check, "header": _header, "list": _list}
