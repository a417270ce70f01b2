"""What differs between two ways to decide a launch, in lines for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gezel_rules.decisions.words import say, say_bytes
from gezel_rules.planner.compare import ENDPOINT, ORDER, REFUSAL, Change, Difference, Ruling, Turn


def change_lines(changes: Sequence[Change]) -> Iterator[str]:
    """What changes, flags of one origin together, then the decisions it comes from with their rules then and now."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        groups.setdefault(tuple(turn.decision for turn in change.turns), []).append(change)
    for together in groups.values():
        yield ""
        yield from (f"  {changed(change)}" for change in together)
        for turn in together[0].turns:
            yield from turn_lines(turn)


def turn_lines(turn: Turn) -> Iterator[str]:
    """A decision that fell another way: its values, and the rule that gave each."""
    before, after = map(said, turn.values)
    yield f"    because {turn.decision} was {before} and is {after}:"
    yield f"      then  {ruling(turn.before)}"
    yield f"      now   {ruling(turn.after)}"


def changed(change: Change) -> str:
    """``--cache-type-k f16 → q8_0``; a flag that comes or goes is said to."""
    if change.decision == ORDER:
        return "the same flags in another order"
    if change.decision in (REFUSAL, ENDPOINT):
        return _word(change)
    before, after = (tokens or () for tokens in (change.before, change.after))
    if not before or not after:
        return f"{words(before or after)} {'is gone' if before else 'is new'}"
    if len(before) == len(after) == 2 and before[0] == after[0]:
        return f"{before[0]} {words(before[1:])} → {words(after[1:])}"
    return f"{words(before)} → {words(after)}"


def _word(change: Change) -> str:
    if change.decision == REFUSAL and change.before is None:
        return f"refused: {said(change.after)}"
    if change.decision == REFUSAL and change.after is None:
        return f"no longer refused ({said(change.before)})"
    return f"{change.decision} {said(change.before)} → {said(change.after)}"


def words(tokens: Sequence[str]) -> str:
    """Tokens as a shell takes them."""
    return " ".join(map(shlex.quote, tokens))


def ruling(found: Ruling | None) -> str:
    """A rule with its place and its reason."""
    if found is None:
        return "the record does not say which rule"
    name = f"rule {found.rule}" if found.rule else "no rule"
    return f"{name}, {found.file}:{found.line}" + (f": {found.because}" if found.because else "")


def effect_lines(difference: Difference) -> Iterator[str]:
    """What it does to the launch: memory of each pool, and its figures."""
    for name, (before, after) in difference.memory.items():
        yield f"  memory    {name} {say_bytes(before)} → {say_bytes(after)} ({_more(after - before)})"
    for name, pair in difference.figures.items():
        yield f"  {name:9} {figure(pair[0])} → {figure(pair[1])}"


def said(value: Any) -> str:
    """A value in a few words; of a record, its parts that are set."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {say(part)}" for key, part in value.items() if part not in (None, False)) or "nothing"
    return say(value)


def figure(value: Any) -> str:
    """A figure of a launch; what the engine is left to choose is not set."""
    return "not set" if value is None else say(value)


def _more(size: int) -> str:
    return f"{say_bytes(abs(size))} {'more' if size > 0 else 'less'}"
