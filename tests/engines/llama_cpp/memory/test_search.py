"""Searches for the largest value that fits: they agree with trying every value, and ask far less often."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.engines.llama_cpp.memory.search import highest, largest


def tried(limit: int, least: int, most: int, step: int) -> int:
    """By trying all: the most, or a multiple of the step not below the least, that is no more than the limit."""
    values = {most, *range(-(-least // step) * step, most, step)} if most >= least else set()
    return max((value for value in values if value <= limit), default=0)


@given(st.integers(0, 3000), st.integers(1, 3000), st.sampled_from([1, 7, 256]))
def test_all_find_the_largest_that_fits(limit, most, step):
    for search in (largest, highest):
        assert search(lambda value: value <= limit, step, most, step) == tried(limit, step, most, step)


@given(st.integers(0, 9), st.integers(40, 4000))
def test_just_below_the_most_few_are_asked(short, most):
    asked = []
    highest(lambda value: asked.append(value) or value <= most - short, 1, most, 1)
    assert len(asked) <= 2 + 2 * 4
