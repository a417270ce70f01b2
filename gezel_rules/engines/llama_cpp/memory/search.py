"""The value nearest to a limit that still fits, in few steps: memory grows nearly in proportion to what is searched."""

from __future__ import annotations

from collections.abc import Callable


def largest(fits: Callable[[int], bool], least: int, most: int, step: int) -> int:
    """The largest value between the two for which ``fits`` holds (it must not come back once it failed); 0 when not
    even the least does. Values are ``most`` or multiples of ``step``."""
    return widest(lambda value: 0 if fits(value) else 1, least, most, step)


def widest(excess: Callable[[int], int], least: int, most: int, step: int) -> int:
    """The same by what is too much, in bytes (0 or less: it fits)."""
    if most < least:
        return 0
    over = excess(most)
    if over <= 0:
        return most
    under = excess(least)
    if under > 0:
        return 0
    below = -(-most // step)  # the first multiple that is not below the most: known not to fit
    return max(least, step * boundary(lambda n: excess(n * step), (least // step, under), (below, over)))


def highest(fits: Callable[[int], bool], least: int, most: int, step: int) -> int:
    """The same as ``largest`` where the answer is expected just below the most, and each question is dear: down in
    strides that double, then by halves."""
    if most < least:
        return 0
    if fits(most):
        return most
    if not fits(least):
        return 0
    lowest, fails, stride = least // step, -(-most // step), 1
    while (good := fails - stride) > lowest and not fits(good * step):
        fails, stride = good, stride * 2
    return max(least, step * _between(fits, max(good, lowest), fails, step))


def _between(fits: Callable[[int], bool], good: int, fails: int, step: int) -> int:
    """The last multiple that fits, from one that does and one that does not."""
    while fails - good > 1:
        middle = (good + fails) // 2
        good, fails = (middle, fails) if fits(middle * step) else (good, middle)
    return good


def boundary(excess: Callable[[int], int], fits: tuple[int, int], fails: tuple[int, int]) -> int:
    """The number next to the limit that fits, from one that fits and one that does not, each with its excess.

    It goes where a straight line between the two crosses nothing; where that gains little, halfway.
    """
    (good, under), (bad, over) = fits, fails
    halve = False
    while abs(bad - good) > 1:
        width = abs(bad - good)
        guess = good + (bad - good) // 2 if halve else _crossing(good, under, bad, over)
        found = excess(guess)
        if found <= 0:
            good, under = guess, found
        else:
            bad, over = guess, found
        halve = abs(bad - good) * 2 > width and not halve
    return good


def _crossing(good: int, under: int, bad: int, over: int) -> int:
    """Where the line between the two crosses 0, on the side that fits, strictly between them."""
    away = (bad - good) * -under // (over - under) if bad > good else -((good - bad) * -under // (over - under))
    inside = min(max(abs(away), 1), abs(bad - good) - 1)
    return good + inside if bad > good else good - inside
