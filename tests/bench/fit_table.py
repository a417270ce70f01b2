"""The table of plans beside the engine's own ``--fit``, printed when the session ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from engine_fit import Fit

from gezel_rules.record import NamedTuple

GOOD, PART, WORSE = "at least as good", "less by part of one layer", "WORSE"


def benching(config: pytest.Config) -> bool:
    """Whether the whole table is wanted."""
    return bool(config.getoption("benchmark_enable"))


class Row(NamedTuple):
    """One model on one host. ``share``: of the weights that can lie on GPUs, how much does; ``None`` without any.
    ``settings``: what was asked for to reach theirs, where that was tried and reached; ``fine``: where that
    took a coarser cache, whether one slot with the engine's own reaches it as well;
    ``over``: what --fit settles on takes more of a card than is free (it interpolates, and does not try the result)."""

    model: str
    host: str
    ours: str
    share: float | None
    theirs: str
    their_share: float | None
    source: str
    verdict: str
    settings: dict[str, Any]
    fine: bool | None
    over: bool


class Table:
    """The rows, printed when the session ends."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.agreed: list[tuple[str, str, bool]] = []
        self.answers: dict[tuple[str, str], Fit] = {}
        self.overlooked: dict[str, int] = {}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Called by pytest."""
        if not (benching(config) or config.getoption("capture") == "no"):
            return
        if self.rows:
            terminalreporter.section("our plan beside the engine's own --fit")
            for line in lines(self.rows):
                terminalreporter.write_line(line)
        if self.agreed:
            same = sum(right for _, _, right in self.agreed)
            wrong = ", ".join(f"{model} ({cards})" for model, cards, right in self.agreed if not right)
            terminalreporter.write_line(f"computed = asked on {same} of {len(self.agreed)}; not on: {wrong or 'none'}")


def lines(rows: list[Row]) -> Iterator[str]:
    """The table as text."""
    yield f"{'model':22} {'host':19} {'ours':25} {'GPU':>6}   {'--fit':10} {'GPU':>6} {'from':8} verdict"
    for row in rows:
        ours, theirs = (f"{x:6.1%}" if x is not None else "     –" for x in (row.share, row.their_share))
        both = f"{row.ours:25} {ours}   {row.theirs:10} {theirs} {row.source:8}"
        yield f"{row.model:22} {row.host:19} {both} {row.verdict}"
    good = sum(row.verdict == GOOD for row in rows)
    part, worse = (sum(row.verdict.startswith(word) for row in rows) for word in (PART, WORSE))
    reasons = len(rows) - good - part - worse
    yield f"{len(rows)} rows: {good} {GOOD}, {reasons} with a reason, {part} less by part of a layer, {worse} worse"
    over = ", ".join(f"{row.model} on {row.host}" for row in rows if row.over)
    yield f"--fit itself takes more of a card than is free: {over or 'nowhere'}"
    coarse = [row for row in rows if row.fine is not None]
    short = ", ".join(f"{row.model} on {row.host}" for row in coarse if not row.fine)
    yield f"{len(coarse)} of ours with a coarser cache; with the engine's own and one slot not on: {short or 'none'}"
