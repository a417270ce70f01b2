"""The largest value that fits, by bisection."""

from __future__ import annotations

from collections.abc import Callable


def largest(fits: Callable[[int], bool], least: int, most: int, step: int) -> int:
    """The largest value between the two for which ``fits`` holds (it must not come back once it failed); 0 when not
    even the least does. Values are ``most`` or multiples of ``step``."""
    if most >= least and fits(most):
        return most
    if most < least or not fits(least):
        return 0
    low, high = least // step, most // step
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle * step):
            low = middle
        else:
            high = middle - 1
    return max(least, low * step)
