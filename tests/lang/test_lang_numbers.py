"""Whole numbers have a range: no policy can make a plan work out ever longer products."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from small_set import compile_set, decided

from gezel_rules.errors import BadInput

LARGEST = 2**63 - 1


@pytest.mark.parametrize("text", [f"{2**63}", f"{10**1900}", "9999999999 * 9999999999", "1e400", f"-{2**64}"])
def test_a_constant_out_of_range_is_found_at_load(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match=r"kv\.yaml:\d+:\d+: a number too large to mean anything"):
        compile_set(tmp_path, f"a: {{then: '{text}'}}")


def test_the_largest_number_is_one(tmp_path: Path) -> None:
    assert decided(tmp_path, f"a: {{then: '{LARGEST} + 0'}}").value("a") == LARGEST


@pytest.mark.parametrize(
    "more", [f"{LARGEST} + model.layers", f"{LARGEST} * model.layers", f"-{LARGEST} - model.layers"]
)
def test_a_result_out_of_range_is_said_with_its_place(tmp_path: Path, more: str) -> None:
    with pytest.raises(BadInput, match=r"kv\.yaml:\d+:\d+: .*the number is too large"):
        decided(tmp_path, f"a: {{then: '{more}'}}")


def test_squares_of_squares_end_soon(tmp_path: Path) -> None:
    """At the 24th square a plan hung."""
    rules = "a0: {then: model.layers * model.layers}\n" + "\n".join(
        f"a{n}: {{then: a{n - 1} * a{n - 1}}}" for n in range(1, 30)
    )
    begun = time.process_time()
    with pytest.raises(BadInput, match="the number is too large"):
        decided(tmp_path, rules)
    assert time.process_time() - begun < 2
