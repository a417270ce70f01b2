"""``gezel-rules policy check``, ``policy test`` and ``policy show``: for those who maintain the rules.

Exit status of ``check``: 0 when everything loads (stale evidence is a warning), 2 when something is broken; of
``test``: 0 when all is as the tests expect, 1 when something is not, 2 for a file that is at fault.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from gezel_rules import places
from gezel_rules.author.check import Against, Report, check_directory, read_library
from gezel_rules.author.checks import severity
from gezel_rules.cli.arguments import add_family, session_of
from gezel_rules.cli.shown import count, json_text, problem_json, tell
from gezel_rules.errors import BadInput, Problem
from gezel_rules.facts.vocabulary import Word, fact_types
from gezel_rules.planner.policies import LANGUAGES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("action", metavar="ACTION", choices=("check", "test", "show"), help="check, test or show")
    parser.add_argument(
        "what", metavar="DIR|NAME", nargs="*",
        help="check: the directory; test: the directory, files, policies or decisions (default: everything); show: a "
        "decision, flag, table, policy, fact or area (default: all policies)",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("text", "json", "sarif", "github"), default="text",
        help="check: how findings are printed (default: text)",
    )  # fmt: skip
    parser.add_argument(
        "--effective", action="store_true", help="show: as they hold here, with what site and user lay over them"
    )
    parser.add_argument("--coverage", action="store_true", help="test: what no case shows of rules and conditions")
    parser.add_argument(
        "--mutation", "--mutate", action="store_true", help="test: changes to the policies that no case notices"
    )
    add_family(parser)


def parse(parser: argparse.ArgumentParser, argv: list[str], chosen: argparse.Namespace) -> argparse.Namespace:
    """NAME may look like an option: what this command does not know as one is the name of a flag."""
    args, rest = parser.parse_known_intermixed_args(argv, chosen)
    if args.action == "test":
        args.what += rest
        return args
    given = [*args.what, *rest]
    if len(given) > 1 or (rest and args.action != "show"):
        parser.error(f"unrecognized arguments: {' '.join(rest or given[1:])}")
    args.what = given[0] if given else None
    return args


def run(args: argparse.Namespace) -> int:
    """Check, test or show. Raises BadInput."""
    if args.action == "test":
        from gezel_rules.cli.tested import test

        return test(session_of(args), args.what, args)
    return _check(args) if args.action == "check" else _show(args)


def _check(args: argparse.Namespace, today: date | None = None) -> int:
    schemas = places.schemas_dir()
    schema, log_schema = schemas / "policy.schema.json", schemas / "log-policy.schema.json"
    against = Against(LANGUAGES, schema, log_schema, today or date.today())
    directory, layers = _checked(args)
    report = check_directory(directory, against, layers)
    _PRINTED["json" if args.json else args.format](report)
    return 2 if report.problems else 0


def _checked(args: argparse.Namespace) -> tuple[Path, tuple[Path, ...]]:
    """The directory that is named; else the policies as they hold here, with what is laid over them."""
    if args.what:
        return _directory(Path(args.what)), tuple(args.layer or ())
    session = session_of(args)
    return _directory(session.policies), session.layers


def _directory(path: Path) -> Path:
    """With a name of its own, also for ``.``: problems begin with it."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links and rename the directory


def _print_report(report: Report) -> None:
    """Problems, each with its line and a caret, and warnings, then what was checked: all of it is the answer."""
    for problem in report.problems:
        tell([problem.with_caret()])
        if problem.check:
            print(f"    found by: gezel-rules policy show {problem.check}")
    for warning in report.warnings:
        place = f"{warning.span}: " if warning.span else ""
        print(f"{place}warning: {warning.message} [{warning.check}]")
    checked = f"checked {count(report.files, 'file')}"
    if report.problems:
        print(f"{checked}: {count(len(report.problems), 'problem')}")
        return
    warned = f" ({count(len(report.warnings), 'warning')})" if report.warnings else ""
    print(f"{checked}, {count(report.decisions, 'decision')}, {count(report.tables, 'table')}: no problems{warned}")


def _print_github(report: Report) -> None:
    from gezel_rules.author.formats import github

    tell(github((*report.problems, *report.warnings)))


def _print_sarif(report: Report) -> None:
    from gezel_rules.author.formats import sarif

    print(json_text(sarif((*report.problems, *report.warnings))))


def _print_json(report: Report) -> None:
    print(json_text(_report_json(report)))


_PRINTED: Mapping[str, Callable[[Report], None]] = {
    "text": _print_report, "json": _print_json, "sarif": _print_sarif, "github": _print_github,
}  # fmt: skip


def _report_json(report: Report) -> dict[str, Any]:
    return {
        "problems": [_finding(problem) for problem in report.problems],
        "warnings": [_finding(problem) for problem in report.warnings],
        "files": report.files,
        "decisions": report.decisions,
        "tables": report.tables,
    }


def _finding(problem: Problem) -> dict[str, Any]:
    return {"check": problem.check or "broken", "severity": severity(problem), **problem_json(problem)}


def _show(args: argparse.Namespace) -> int:
    from gezel_rules.author.page import overview, page
    from gezel_rules.author.show import Index

    session = session_of(args)
    family = session.family(args.family)
    layers = session.layers if args.effective else ()
    library = read_library(_directory(session.policies), family.name, LANGUAGES, layers)
    if library.drafts.problems:
        raise BadInput(library.drafts.problems)
    index = Index(library, {word.name: _fact(word) for word in family.vocabulary()})
    entry = index.find(args.what) if args.what else index.overview()
    if args.json:
        print(json_text(entry))
    else:
        width = min(shutil.get_terminal_size((110, 24)).columns, 110)
        print("\n".join(page(entry, width) if isinstance(entry, dict) else overview(entry, width)))
    return 0


def _fact(word: Word) -> dict[str, Any]:
    kind = str(fact_types([word])[word.name])
    return {
        "name": word.name, "type": f"{kind} in {word.unit}" if word.unit else kind, "says": word.says,
        "source": word.source, "values": word.rows_of or None, "unknown": word.unknown, "settle": word.settle or None,
    }  # fmt: skip
