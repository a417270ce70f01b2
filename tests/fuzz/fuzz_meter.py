"""How many cases a fuzzer runs, and what each of them may take.

CI runs a seeded share; ``GEZEL_FUZZ_ROUNDS=full`` runs every case a fuzzer promises, a number so many.
"""

from __future__ import annotations

import io
import os
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import NamedTuple, TypeVar

from gezel_rules.cli import TRACE, main

T = TypeVar("T")
ROUNDS = "GEZEL_FUZZ_ROUNDS"
MOST_CPU = 2.0  # seconds of one case
MOST_MEMORY = 128 << 20  # bytes that one case may add
_GIVE_UP = 20.0  # seconds of CPU after which a case is a hang and is left


def rounds(share: int, full: int) -> int:
    """How many cases to run: ``share`` in CI, ``full`` or any other number when asked for."""
    asked = os.environ.get(ROUNDS, "")
    return share if not asked else full if asked == "full" else int(asked)


class Hang(BaseException):
    """A case that would not end."""


class Ran(NamedTuple):
    """One command, in this process: its exit status and what it printed."""

    status: int
    out: str
    err: str


def command(*argv: str) -> Ran:
    """Run a command; a fault of the program itself is raised (``GEZEL_TRACEBACK`` is set by ``Meter``)."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(argv)
        except SystemExit as error:  # argparse
            status = int(error.code or 0)
    return Ran(status, out.getvalue(), err.getvalue())


class Meter:
    """Runs cases, one by one, and keeps what was wrong with any: a fault inside, a hang, too much memory."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.faults: dict[str, str] = {}
        self.slowest = 0.0
        self.grown = 0

    def run(self, what: str, case: Callable[[], T]) -> T | None:
        """Run a case and give what it gives; ``what`` says how to make it again."""
        before, start, found = _from_now_on(), time.process_time(), None
        try:
            with _bounded():
                found = case()
        except Hang:
            self._fault(what, "HANG " + "".join(traceback.format_exc().splitlines(keepends=True)[-8:]))
        except Exception:
            self._fault(what, traceback.format_exc())
        spent, more = time.process_time() - start, _peak() - before
        self.slowest, self.grown = max(self.slowest, spent), max(self.grown, more)
        if spent > MOST_CPU:
            self._fault(what, f"{spent:.1f} s of CPU")
        if more > MOST_MEMORY:
            self._fault(what, f"{more >> 20} MiB more")
        return found

    def _fault(self, what: str, said: str) -> None:
        self.counts["faults"] += 1
        self.faults.setdefault(said.strip().splitlines()[-1], f"{what}\n{said}")

    def require_none(self) -> None:
        """Print the counts; fail with one example of each kind of fault."""
        print(*(f"{n} {name}" for name, n in self.counts.items()), f"slowest {self.slowest:.2f} s", sep=", ", end=", ")
        print(f"at most {self.grown / (1 << 20):.0f} MiB more")
        assert not self.faults, "\n\n".join(self.faults.values())


@contextmanager
def _bounded() -> Iterator[None]:
    def give_up(number: int, frame: FrameType | None) -> None:
        raise Hang

    traced, os.environ[TRACE] = os.environ.get(TRACE), "1"
    handler = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, _GIVE_UP)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
        if traced is None:
            os.environ.pop(TRACE, None)


def _from_now_on() -> int:
    """Bytes of this process that are in memory now; ``_peak`` forgets what it had before, as proc(5) has it."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    """The most bytes of it that were in memory since then."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
