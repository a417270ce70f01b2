"""A comparison of policies as one page: no script, no network, everything that is quoted escaped."""

from __future__ import annotations

from collections.abc import Sequence

from gezel_rules.author.html import rendered
from gezel_rules.record import NamedTuple


class Row(NamedTuple):
    """One launch: its model, the host or recorded launch, the changes it does not share with its table, memory and
    other effects."""

    model: str
    on: str
    own: str
    memory: str
    effects: str


class Table(NamedTuple):
    """Launches whose flags change alike, and how."""

    title: str
    rows: tuple[Row, ...]


class Section(NamedTuple):
    """What some edits change together."""

    because_of: tuple[str, ...]
    tables: tuple[Table, ...]


def page(summary: str, sections: Sequence[Section]) -> str:
    """The page, with ``summary`` for its title."""
    return rendered("diff_page.html", summary=summary, sections=sections)
