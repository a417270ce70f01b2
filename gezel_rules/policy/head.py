"""What every policy file may hold, a log policy too: its head, and where figures come from."""

from __future__ import annotations

from gezel_rules.documents.declare import TEXT, Shape, Text, optional, required

ID = Text("lower case words joined by '-'", ("not-enough",), pattern=r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
VERSION = Text("MAJOR.MINOR.PATCH", ("1.2.0",), pattern=r"[0-9]+\.[0-9]+\.[0-9]+")


def _day(text: str) -> str | None:
    """A day of the calendar, as it is written."""
    from datetime import date

    try:
        return text if date.fromisoformat(text).isoformat() == text else None
    except ValueError:
        return None


DATE = Text("a date", ("2027-08-29",), pattern=r"[0-9]{4}-[0-9]{2}-[0-9]{2}", means=_day)
EVIDENCE = Shape(
    "evidence",
    {
        "note": required(TEXT, "What was found."),
        "measured": optional(DATE, "When it was measured."),
        "where": optional(TEXT, "On what machine, engine and model."),
        "expires": optional(DATE, "From this day on 'policy check' asks for a new measurement."),
    },
    "Where a figure comes from.",
)
HEAD = {
    "engine": optional(
        TEXT, "The engine family these policies are for, by its name. Without it they are for every family."
    ),
    "version": required(VERSION, "Raise it with every change of meaning: records carry it."),
    "summary": required(TEXT, "One sentence: the question this file answers."),
}
