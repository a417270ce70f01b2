"""What the policies of one engine family may read and call, and what they must give because the program reads it.

Rules are free to come and go; the decisions a plan is made of and the tables that code looks things up in are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gezel_rules.lang.types import Function, Type
from gezel_rules.record import NamedTuple


class TableNeed(NamedTuple):
    """What is read of a table: ``record``, whose fields are columns that the table declares alike, or single values
    (``of``: their annotation, such as ``str``), or its row names alone; the ``rows`` that must be there; whether it is
    a ``listed`` one (else a mapping); and the ``groups`` that its values, which are patterns then, must name."""

    rows: tuple[str, ...] = ()
    record: type | None = None
    of: str = ""
    listed: bool = False
    groups: tuple[str, ...] = ()


class Needs(NamedTuple):
    """What the program reads by name: tables, and decisions."""

    tables: Mapping[str, TableNeed]
    decisions: tuple[str, ...]

    def plus(self, other: Needs) -> Needs:
        """Both together; where both read a table, ``self`` says how."""
        return Needs({**other.tables, **self.tables}, (*self.decisions, *other.decisions))


NOTHING = Needs({}, ())


class Language(NamedTuple):
    """``facts``: every name a rule may read, with its type; ``functions`` it may call; what the set must give
    (``needs``, asked for when a set is compiled)."""

    facts: Mapping[str, Type]
    functions: Mapping[str, Function]
    needs: Callable[[], Needs] = lambda: NOTHING


Languages = Mapping[str, Callable[[], Language]]
"""The language of every engine family there is, by its name; only that of the family at work is made."""
