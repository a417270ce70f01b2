"""A launch explained as one page: no script, no network, everything that is quoted escaped."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from gezel_rules.author.html import rendered
from gezel_rules.record import NamedTuple

COLUMN, ROW, PAD = 250, 24, 12
"""Pixels from one column of the graph to the next, from one row to the next, and around all of it."""


class Part(NamedTuple):
    """A stretch of a memory bar: what it is for, how much in words, and its share of the bar in percent."""

    label: str
    size: str
    percent: float


class Bar(NamedTuple):
    """The memory of one device: what is taken of what may be, in words; ``limit``: where what may be taken ends, in
    percent of the bar (``None``: nobody knows)."""

    name: str
    says: str
    parts: tuple[Part, ...]
    limit: float | None


class Explained(NamedTuple):
    """One decision: its value, what it was decided by, and the ``source`` of that rule as it stands in its file."""

    name: str
    flag: str
    value: str
    decided_by: str
    because: str
    level: str
    facts: tuple[tuple[str, str], ...]
    beaten: tuple[tuple[str, str], ...]
    evidence: str
    source: str
    reads: tuple[str, ...]


class Launch(NamedTuple):
    """What stands above the decisions: the model, the launch as it would be typed or why there is none, notes."""

    model: str
    on: str
    command: str
    refused: str
    headlines: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


class Box(NamedTuple):
    """A decision in the graph, at the left middle of its box, in pixels."""

    decision: Explained
    x: int
    y: int


class Graph(NamedTuple):
    """Boxes and the curves between them (from what is read to what reads it), and the whole size in pixels."""

    boxes: tuple[Box, ...]
    curves: tuple[str, ...]
    width: int
    height: int


def page(launch: Launch, bars: Sequence[Bar], decisions: Sequence[Explained]) -> str:
    """The page; ``decisions`` each after those it reads."""
    return rendered(
        "explain_page.html", launch=launch, bars=bars, decisions=decisions, graph=graph(decisions), column=COLUMN
    )


def graph(decisions: Sequence[Explained]) -> Graph:
    """Decisions in columns: each stands one column to the right of the furthest that it reads."""
    depth: dict[str, int] = {}
    for each in decisions:
        depth[each.name] = 1 + max((depth[name] for name in each.reads if name in depth), default=-1)
    ordered = sorted(decisions, key=lambda each: depth[each.name])
    boxes = {
        each.name: Box(each, PAD + column * COLUMN, PAD + row * ROW + ROW // 2)
        for column, alike in groupby(ordered, key=lambda each: depth[each.name])
        for row, each in enumerate(alike)
    }
    curves = [_curve(boxes[name], boxes[each.name]) for each in decisions for name in each.reads if name in boxes]
    right = max((box.x for box in boxes.values()), default=0)
    bottom = max((box.y for box in boxes.values()), default=0)
    return Graph(tuple(boxes.values()), tuple(curves), right + COLUMN, bottom + ROW)


def _curve(start: Box, end: Box) -> str:
    """From the right side of one box to the left side of another."""
    out, into, bend = start.x + COLUMN - 40, end.x, 20
    return f"M{out} {start.y}C{out + bend} {start.y} {into - bend} {end.y} {into} {end.y}"
