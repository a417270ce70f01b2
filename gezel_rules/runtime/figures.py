"""What an engine says of itself while it runs: its own buffer sizes, and how many drafted tokens were accepted.

Lines are looked at as they come and added up: a server may run for weeks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gezel_rules.engines.family import BufferPool
from gezel_rules.policy.model import PolicySet
from gezel_rules.record import NamedTuple
from gezel_rules.regex import Match, Regex

MOST_BUFFERS = 64
"""Names that are kept: a log may print anything."""
NONE_NAMED = "none named"
DEVICE = "pool"
"""The part of a buffer's name that is its pool's, where a row of ``buffer_pools`` names none."""
_MIB = 1 << 20
_MOST = 1 << 40  # beyond it a figure is none: tokens, or MiB


class FigureLines(NamedTuple):
    """How such lines read (the tables of a family's ``figures`` policy); a family that has none tells nothing.
    ``buffers``, ``drafts``: the patterns; ``parts``: the engine's word for what a buffer is for → the plan's;
    ``pools``: names of buffers, and the pool where they lie."""

    buffers: tuple[Regex, ...] = ()
    parts: Mapping[str, str] = {}
    pools: tuple[tuple[Regex, str | None], ...] = ()
    drafts: tuple[Regex, ...] = ()


def figure_lines(policies: PolicySet) -> FigureLines:
    """Those of a set. Raises BadInput for a line that does not name the parts that are read of it."""
    tables = policies.tables
    pools = policies.rows_if_any("buffer_pools", BufferPool).values()
    return FigureLines(
        tuple(map(Regex, tables.get("buffer_lines", ()))),
        tables.get("buffer_parts", {}),
        tuple((Regex(row.matches), row.pool) for row in pools),
        tuple(map(Regex, tables.get("draft_lines", ()))),
    )


class Figures:
    """Adds up what the lines of one engine tell."""

    def __init__(self, lines: FigureLines) -> None:
        self._lines = lines
        self._buffers: dict[tuple[str, str, str], int] = {}
        self._accepted, self._drafted = 0, 0

    def take(self, line: str) -> None:
        """Look at one line of the log."""
        for pattern in self._lines.buffers:
            if found := pattern.search(line):
                self._add(found)
        for pattern in self._lines.drafts:
            if found := pattern.search(line):
                self._accepted += round(_number(found["accepted"]) or 0)
                self._drafted += round(_number(found["drafted"]) or 0)

    def _add(self, found: Match) -> None:
        name, part = found["name"], self._lines.parts.get(found["part"] or NONE_NAMED)
        pool, size = self._pool(name), _number(found["mib"])
        key = (pool, part or "", name)
        if part and pool and size is not None and (key in self._buffers or len(self._buffers) < MOST_BUFFERS):
            self._buffers[key] = self._buffers.get(key, 0) + round(size * _MIB)

    def _pool(self, name: str) -> str:
        for pattern, pool in self._lines.pools:
            if found := pattern.match(name):
                return pool or (str(found[DEVICE]) if DEVICE in pattern.groups else name)
        return ""

    def data(self) -> dict[str, Any]:
        """As the record keeps it; empty while the engine has told nothing."""
        buffers = [
            {"pool": pool, "part": part, "name": name, "bytes": size}
            for (pool, part, name), size in list(self._buffers.items())
        ]
        drafts = {"drafts": {"accepted": self._accepted, "drafted": self._drafted}} if self._drafted else {}
        return {"buffers": buffers, **drafts} if buffers or drafts else {}


def _number(text: str | None) -> float | None:
    """A figure of a line; ``None`` for what a pattern found that is none."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < _MOST else None
