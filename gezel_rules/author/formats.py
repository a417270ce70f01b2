"""Findings of ``policy check`` for other programs: SARIF 2.1.0 for code scanners, commands for GitHub's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gezel_rules import __version__
from gezel_rules.author.checks import CHECKS, severity
from gezel_rules.errors import Problem

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(found: Iterable[Problem]) -> dict[str, Any]:
    """A SARIF log with one run: every check as a rule with its page, every finding with its place."""
    rules = [
        {
            "id": name,
            "shortDescription": {"text": check.says},
            "help": {"text": check.remedy},
            "defaultConfiguration": {"level": check.severity},
        }
        for name, check in CHECKS.items()
    ]
    driver = {"name": "gezel-rules", "version": __version__, "rules": rules}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": _results(found)}]}


def _results(found: Iterable[Problem]) -> list[dict[str, Any]]:
    return [
        {
            "ruleId": problem.check or "broken",
            "level": severity(problem),
            "message": {"text": problem.message},
            "locations": [_location(problem)] if problem.span else [],
        }
        for problem in found
    ]


def _location(problem: Problem) -> dict[str, Any]:
    """Columns of SARIF count characters from 1, the end excluded; so do ours."""
    span = problem.span
    assert span is not None
    region = {"startLine": span.line, "startColumn": span.column, "endColumn": span.column + span.width}
    return {"physicalLocation": {"artifactLocation": {"uri": span.file}, "region": region}}


def github(found: Iterable[Problem]) -> Iterator[str]:
    """A workflow command for each finding, which GitHub shows at its line."""
    for problem in found:
        span = problem.span
        place = f"file={_property(span.file)},line={span.line},col={span.column}," if span else ""
        yield f"::{severity(problem)} {place}title={problem.check or 'broken'}::{_data(problem.message)}"


def _data(text: str) -> str:
    """What would end or break a command, as GitHub escapes it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
