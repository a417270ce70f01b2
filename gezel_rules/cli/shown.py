"""A report on its way to the person, or to the program that asked for JSON."""

from __future__ import annotations

from gezel_rules.engines.family import Report


def show(report: Report, as_json: bool) -> int:
    """Print it; returns the exit status."""
    if as_json:
        import json

        print(json.dumps(report.data, indent=2))
    else:
        print("\n".join(report.lines))
    return 0
