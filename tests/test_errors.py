"""Errors as people see them: one line, a place, a caret, an exit status."""

from __future__ import annotations

import pytest

from gezel_rules.errors import BadInput, EngineFailed, GezelError, Problem, Refused, Span, TransferFailed


def test_exit_statuses_are_the_promised_ones() -> None:
    statuses = {kind.__name__: kind.exit_status for kind in (BadInput, Refused, EngineFailed, TransferFailed)}
    assert statuses == {"BadInput": 2, "Refused": 1, "EngineFailed": 3, "TransferFailed": 3}


@pytest.mark.parametrize("given", ["no", Problem("no"), [Problem("no")]])
def test_one_problem_in_any_form(given: str | Problem | list[Problem]) -> None:
    assert str(BadInput(given)) == "no"


def test_several_problems_are_counted() -> None:
    error = GezelError([Problem("first", Span("x.yaml", 3, 7)), Problem("second"), Problem("third")])
    assert str(error) == "x.yaml:3:7: first (and 2 more)"
    assert len(error.problems) == 3


def test_the_caret_is_as_wide_as_the_fault() -> None:
    problem = Problem("unknown", Span("x.yaml", 3, 9, 4), "  when: settings")
    assert problem.with_caret() == "x.yaml:3:9: unknown\n      when: settings\n            ^^^^"


def test_without_a_line_there_is_no_caret() -> None:
    assert Problem("no").with_caret() == "no"
    assert Problem("no", Span("x.yaml", 1, 1)).with_caret() == "x.yaml:1:1: no"
