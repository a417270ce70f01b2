"""Lines written to keep the watch busy: no line takes long, whatever the pattern it is held against."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator

import pytest
from exploding_patterns import EXPLODING
from log_cases import cases, shipped

from gezel_rules.logs.lines import LONGEST, ignored, matches, opens, unwrap
from gezel_rules.logs.watch import Watch
from gezel_rules.regex import Regex

LINES = int(os.environ.get("GEZEL_HOSTILE_LINES", "40000"))
MOST = 0.050
"""Seconds of CPU for a line, which is what is promised: of CPU, since other work on the machine says nothing of a
pattern; the worst line seen takes a fifth of it; a line beyond it is tried twice more, since one try may be unlucky."""


def hostile(count: int, seed: int) -> Iterator[str]:
    """Lines that hold every literal there is, or nearly what a pattern wants, again and again; up to the longest."""
    dice = random.Random(seed)
    needs = sorted({literal for pattern in shipped().patterns.values() for literal in pattern.needs})
    lines = [line for case in cases() for line in case["lines"]]
    pieces = [
        *needs,
        *"aAx01 _.:/\\-'\"([{|>,=\t",
        "aa",
        "ab",
        "a1,",
        "ggml_",
        "\x1b[0m",
        "0.00.000.000 I ",
        "é",
        "\ud800",
    ]
    for _ in range(count):
        length = LONGEST if dice.random() < 0.05 else dice.randrange(1, 400)
        first = dice.choice(lines) if dice.random() < 0.5 else ""
        few = dice.sample(pieces, dice.randrange(1, 5)) if dice.random() < 0.7 else pieces
        filler = "".join(dice.choices(few, k=40))
        yield (first[: dice.randrange(200)] + filler * (length // max(1, len(filler)) + 1))[:length]


def held_against_everything(line: str, every: bool = True) -> None:
    """What a log line meets at most: everything a watch asks; ``every``: also the patterns of which no literal stands
    in it, which a watch leaves out."""
    policy = shipped()
    words = unwrap(line, policy.lines)
    for quote in policy.lines.quotes:
        opens(quote, words)
        quote.then.search(words.text)
    ignored(words.text, policy.lines)
    for pattern in policy.patterns.values():
        if every or any(literal in line for literal in pattern.needs):
            matches(pattern, words)


def held_against_its_patterns(line: str) -> None:
    held_against_everything(line, every=False)


def seconds(work: Callable[[str], object], line: str) -> float:
    begun = time.thread_time()
    work(line)
    return time.thread_time() - begun


def worst(work: Callable[[str], object], lines: Iterator[str]) -> tuple[float, str]:
    """The slowest line, at its fastest."""
    found = (0.0, "")
    for line in lines:
        taken = seconds(work, line)
        if taken > MOST:
            taken = min(seconds(work, line) for _ in range(2))
        found = max(found, (taken, line))
    return found


@pytest.mark.slow
def test_no_line_keeps_the_shipped_patterns_busy() -> None:
    held_against_everything("compiles them all")
    taken, line = max(
        worst(held_against_its_patterns, hostile(LINES, 1)), worst(held_against_everything, hostile(LINES // 20, 2))
    )
    assert taken < MOST, line


@pytest.mark.slow
def test_no_line_keeps_a_pattern_busy_that_explodes_elsewhere() -> None:
    assert len(EXPLODING) == 40
    for number, pattern in enumerate(EXPLODING):
        expression = Regex(pattern)
        expression.search("")
        taken, line = worst(expression.search, hostile(LINES // len(EXPLODING), number))
        assert taken < MOST, (pattern, line)


def test_a_hostile_log_is_judged_as_a_whole() -> None:
    """Through the watch itself, with what others put around lines: it ends, and says something."""
    watch = Watch(shipped())
    for line in hostile(LINES // 20, 3):
        watch.feed(line.encode("utf-8", "replace") + b"\n")
    assert watch.verdict().gpu in ("in-use", "init-failed", "no-devices", "not-loaded", "unknown")
