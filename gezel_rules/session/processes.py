"""Work shared out to processes, one for each CPU this one may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")
WORTH_IT = 8
"""Items from which processes are started; fewer are done faster by one."""


def mapped(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """A function of each item, by as many processes as there are CPUs to this one where the system can fork."""
    listed = list(items)
    workers = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, len(listed))
    if workers < 2 or len(listed) < WORTH_IT or not hasattr(os, "fork"):
        return list(map(function, listed))
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("fork")  # the work is inherited: policies that were read are not read again
    with ProcessPoolExecutor(workers, context, initializer=_inherit, initargs=(function, listed)) as pool:
        return list(pool.map(_do, range(len(listed))))


_work: list[Any] = []


def _inherit(function: Callable[[Any], Any], items: Sequence[Any]) -> None:
    _work[:] = [function, items]


def _do(number: int) -> Any:
    function, items = _work
    return function(items[number])
