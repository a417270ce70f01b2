"""A fact: plain JSON data, where it comes from, and the level that set it. Unknown is a value of its own."""

from __future__ import annotations

from typing import Any

from gezel_rules.record import NamedTuple
from gezel_rules.unknown import UNKNOWN, Unknown

__all__ = ["UNKNOWN", "Fact", "Unknown"]


class Fact(NamedTuple):
    """``value`` is plain JSON or UNKNOWN; ``source`` is for people (a key of the model's header, ``probe CUDA0``,
    ``environment GEZEL_WINDOW``, ``site.yaml:3``); ``level`` is the precedence level that set it; ``beaten`` are the
    lower levels' values, highest first, as (level, value, source); ``settle`` says what would make an unknown known."""

    value: Any
    source: str
    level: str = ""
    beaten: tuple[tuple[str, Any, str], ...] = ()
    settle: str = ""
