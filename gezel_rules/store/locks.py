"""One installer per model. The kernel holds the lock and drops it with the process: no stale locks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from gezel_rules.errors import BadInput, Refused, why
from gezel_rules.store.names import LOCKS

LOCK_SECONDS = 24 * 3600.0  # a large model on a slow line


@contextlib.contextmanager
def locked(
    store: Path, directory: str, note: Callable[[str], None] = lambda _: None, wait: float = LOCK_SECONDS
) -> Iterator[None]:
    """Hold a model's lock, waiting for another installer (``wait`` seconds). Raises Refused when that is too long,
    BadInput when the store cannot be written."""
    from filelock import FileLock, Timeout

    path = store / LOCKS / f"{directory}.lock"
    for place in (path.parent, path):
        if place.is_symlink():
            raise BadInput(f"{place}: is a symbolic link; the store only writes into files of its own")
    lock = FileLock(path)
    try:
        (store / LOCKS).mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            note(f"{directory}: waiting for another process that works on it")
            lock.acquire(timeout=wait, poll_interval=0.1)
    except Timeout:
        raise Refused(f"{directory}: another process still works on it after {wait:.0f} s") from None
    except OSError as error:
        raise BadInput(f"{store}: cannot be written ({why(error)})") from None
    try:
        yield
    finally:
        lock.release()
