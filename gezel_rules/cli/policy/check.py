"""``gezel-rules policy check [DIR]``: problems with a caret, warnings, and findings for other programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from gezel_rules import places
from gezel_rules.author.check import Against, Report, check_directory
from gezel_rules.author.checks import severity
from gezel_rules.cli.arguments import session_of
from gezel_rules.cli.policy.directory import named_directory
from gezel_rules.cli.shown import count, json_text, problem_json, tell
from gezel_rules.errors import Problem
from gezel_rules.planner.policies import LANGUAGES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action's own arguments."""
    parser.add_argument("what", metavar="DIR", nargs="?", help="the policies (default: those that hold here)")
    parser.add_argument(
        "--format", choices=("text", "json", "sarif", "github"), default="text",
        help="how findings are printed (default: text)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Check; 0, or 2 when something is broken. Raises BadInput when there is nothing to check."""
    return check(args, date.today())


def check(args: argparse.Namespace, today: date) -> int:
    """Check as on that day, which evidence may have expired on."""
    schemas = places.schemas_dir()
    schema, log_schema = schemas / "policy.schema.json", schemas / "log-policy.schema.json"
    against = Against(LANGUAGES, schema, log_schema, today)
    directory, layers = _checked(args)
    report = check_directory(directory, against, layers)
    _PRINTED["json" if args.json else args.format](report)
    return 2 if report.problems else 0


def _checked(args: argparse.Namespace) -> tuple[Path, tuple[Path, ...]]:
    """The directory that is named; else the policies as they hold here, with what is laid over them."""
    if args.what:
        return named_directory(Path(args.what)), tuple(args.layer or ())
    session = session_of(args)
    return named_directory(session.policies), session.layers


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
