"""How a process ended, as a number: one form for what Python, shells and Windows write. Pure."""

from __future__ import annotations

import re
import signal

_SHELL = 128  # a shell adds this to the number of a signal
_UNSIGNED = {64: 1 << 64, 32: 1 << 32}
_SUM = re.compile(rf"{_SHELL} ?\+ ?(\d{{1,2}})")


def signed(status: int) -> int:
    """The status with Windows' unsigned forms as signed ones: 0xC0000005 (3221225477) is -1073741819."""
    for bits, range_ in _UNSIGNED.items():
        if range_ >> 1 <= status < range_ and (bits == 32 or status >= range_ - _UNSIGNED[32]):
            return status - range_
    return status


def read_exit_status(text: str) -> int:
    """A status in anybody's words: ``139``, ``-11``, ``128+11``, ``0xC0000005``, ``SIGSEGV``. Raises ValueError."""
    word = text.strip()
    if (sum_ := _SUM.fullmatch(word)) is not None:
        return _SHELL + int(sum_[1])
    name = word.upper() if word.upper().startswith("SIG") else "SIG" + word.upper()
    if name in signal.Signals.__members__:
        return -signal.Signals[name]
    status = int(word, 16) if word.lower().startswith("0x") else int(word)
    if not -_UNSIGNED[32] < status < _UNSIGNED[64]:
        raise ValueError(f"{text} is no exit status")
    return signed(status)
