"""Signals that arrive once more: what a handler raises is not heard everywhere.

While a module is loaded it may be swallowed (by a callback of a lock that goes) or become another error (the compiler
makes a SyntaxError of what comes while it looks for a name). There a handler raises nothing; the signal is sent again.
"""

import _thread
import signal
import sys
import time

TYPE_CHECKING = False  # type checkers know this name; what only they need is not imported
if TYPE_CHECKING:
    from types import FrameType

waiting: list[int] = []
"""Signals that are about to arrive once more."""
_SOON = 0.01  # seconds until then
_LOADING = "<frozen importlib._bootstrap>"


def postponed(number: int, frame: "FrameType | None", outer: "FrameType | None" = None) -> bool:
    """Whether a signal found a module being loaded, so that it will arrive once more. ``outer``: where somebody began
    to listen; what is loaded around that is not looked at."""
    while frame is not None and frame is not outer:
        if frame.f_code.co_filename == _LOADING:
            send_again(number)
            return True
        frame = frame.f_back
    return False


def send_again(number: int) -> None:
    """Have a signal arrive once more, soon, in the thread that calls: the main one."""
    waiting.append(number)
    _thread.start_new_thread(_send, (number, _thread.get_ident()))


def _send(number: int, thread: int) -> None:
    time.sleep(_SOON)
    if sys.platform == "win32":
        _thread.interrupt_main(number)
    else:
        signal.pthread_kill(thread, number)
    waiting.remove(number)
