"""The command line as a process: a signal ends it without a traceback, from the first import to the last flush.

``cli.main`` is for whoever calls a command inside a program of theirs, whose signals are their own.
"""

import _thread
import gc
import signal
import sys
import time

signal.signal(signal.SIGINT, signal.SIG_DFL)  # until commands are there to catch it, Ctrl-C ends us without a word

TYPE_CHECKING = False  # type checkers know this name; what only they need is not imported
if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_SOON = 0.01  # seconds until a signal that was lost arrives again
_lost: list[int] = []


def main() -> int:
    """Run the command of ``sys.argv``; returns its exit status. SIGINT ends it with 130, SIGTERM with 143; either way
    what was started is ended first. The interpreter looks for garbage as it ends; what is frozen it passes by, which
    saves a fifteenth of the instructions of a ``memory``."""
    from gezel_rules.cli import main as run

    sys.unraisablehook = _not_lost
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        status = run()
    except KeyboardInterrupt:  # just before it could be caught
        status = 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.freeze()
    return 128 + _lost[0] if _lost else status


def _terminated(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def _not_lost(fault: "UnraisableHookArgs") -> None:
    """What a signal raises in a callback of the interpreter, as of a lock that an import is done with, reaches nobody:
    the signal is noted, and arrives once more."""
    error = fault.exc_value
    if not isinstance(error, (KeyboardInterrupt, SystemExit)):
        sys.__unraisablehook__(fault)
        return
    number = signal.SIGTERM if isinstance(error, SystemExit) else getattr(error, "number", signal.SIGINT)
    _lost[:] = [number]
    _thread.start_new_thread(_again, (number, _thread.get_ident()))


def _again(number: int, thread: int) -> None:
    time.sleep(_SOON)
    if sys.platform == "win32":
        _thread.interrupt_main(number)
    else:
        signal.pthread_kill(thread, number)
    _lost.clear()
