"""The kinds of values that YAML knows, which are not mixed up."""

from __future__ import annotations

import pytest

from gezel_rules.documents.kinds import FLAG, INTEGER, LIST, MAP, NOTHING, NUMBER, TEXT, fits, kind_of


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, NOTHING), (True, FLAG), (3, INTEGER), (3.5, NUMBER), ("x", TEXT), ([], LIST), ({}, MAP)],
)
def test_kinds(value: object, kind: str) -> None:
    assert kind_of(value) == kind
    assert fits(kind, value)
    assert fits(f"{TEXT}|{kind}", value)


@pytest.mark.parametrize(("kind", "value"), [(INTEGER, True), (NUMBER, False), (INTEGER, 3.0), (TEXT, 3), (FLAG, 1)])
def test_kinds_are_not_mixed_up(kind: str, value: object) -> None:
    assert not fits(kind, value)


def test_a_whole_number_is_a_number() -> None:
    assert fits(NUMBER, 3)
