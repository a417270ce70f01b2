"""Which engine family a catalog entry or a described host speaks of."""

from __future__ import annotations

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.documents.declare import Field, Name, optional


def engine_family(says: str) -> Field:
    """The key that names it. Any text will do here: which families there are, ``engines`` knows."""
    return optional(Name("engine_families", "engine family"), says, default=DEFAULT_FAMILY)
