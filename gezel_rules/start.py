"""The command line as a process: a signal ends it without a traceback, from the first import to the last flush.

``cli.main`` is for whoever calls a command inside a program of theirs, whose signals are their own.
"""

import gc
import signal
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)  # until commands are there to catch it, Ctrl-C ends us without a word

from gezel_rules.arrival import postponed, send_again, waiting  # noqa: E402

TYPE_CHECKING = False  # type checkers know this name; what only they need is not imported
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType


def main() -> int:
    """Run the command of ``sys.argv``; returns its exit status. SIGINT ends it with 130, SIGTERM with 143; either way
    what was started is ended first. The interpreter looks for garbage as it ends; what is frozen it passes by, which
    saves a fifteenth of the instructions of a ``memory``."""
    from gezel_rules.cli import main as run

    sys.unraisablehook = _not_lost
    signal.signal(signal.SIGTERM, _arrived)
    signal.signal(signal.SIGINT, _arrived)
    try:
        status = run()
    except KeyboardInterrupt:  # just before it could be caught
        status = 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.freeze()
    return 128 + waiting[0] if waiting else status


def _arrived(number: int, frame: "FrameType | None") -> None:
    if not postponed(number, frame):
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _not_lost(fault: "UnraisableHookArgs") -> None:
    """What a signal raises in a callback of the interpreter reaches nobody: it arrives once more."""
    error = fault.exc_value
    if isinstance(error, KeyboardInterrupt):
        send_again(getattr(error, "number", signal.SIGINT))
    elif isinstance(error, SystemExit):
        send_again(signal.SIGTERM)
    else:
        sys.__unraisablehook__(fault)
