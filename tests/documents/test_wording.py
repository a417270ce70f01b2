"""Kinds in words: what a value must be, and how much of it."""

from __future__ import annotations

import pytest

from gezel_rules.documents.declare import FLAG, SINGLE, TEXT, Either, Kind, List, Map, Number, whole
from gezel_rules.documents.wording import bounds, wanted


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (TEXT, "text"),
        (whole(), "whole number"),
        (Number(), "number"),
        (Either((TEXT, FLAG, TEXT)), "text or true or false"),
        (Either((SINGLE, List(SINGLE), Map(TEXT))), "a single value or list or mapping"),
    ],
)
def test_what_yaml_must_hold(kind: Kind, said: str) -> None:
    assert wanted(kind) == said


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Number(), ""),
        (whole(least=1, unit="tokens"), "at least 1 token"),
        (whole(least=0, unit="tokens"), "at least 0 tokens"),
        (whole(above=0, most=4096), "more than 0 and at most 4,096"),
        (Number(least=0, most=1, unit="parts"), "from 0 to 1 part"),
    ],
)
def test_bounds_in_words(kind: Number, said: str) -> None:
    assert bounds(kind) == said
