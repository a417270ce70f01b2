"""Ask a program one question: run it with bounded time and output, and leave no process behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from gezel_rules.engines.patience import Patience, SilentError
from gezel_rules.errors import BadInput, EngineFailed
from gezel_rules.facts.printable import printable
from gezel_rules.record import NamedTuple

MAX_OUTPUT = 4 << 20  # bytes of each stream; the longest --help seen is 60 KB
_PDEATHSIG = 1  # PR_SET_PDEATHSIG, linux/prctl.h
_ENDING = (signal.SIGINT, signal.SIGTERM)
_GRACE = 5.0  # seconds for the pipes to close once the process is gone
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Answer(NamedTuple):
    """What a program printed, decoded, terminal colours removed."""

    out: str
    err: str


def ask(
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    patience: Patience | None = None,
    limit: int = MAX_OUTPUT,
    any_status: bool = False,
) -> Answer:
    """Run ``argv`` with empty input and collect what it says.

    Raises BadInput when it cannot be started; SilentError when it does not end while there is ``patience`` (``None``:
    without end); EngineFailed when it says more than ``limit`` bytes on a stream, or exits with another status than 0
    (unless ``any_status`` will do).
    """
    begun, before, process = time.monotonic(), _hold_signals(), None
    streams: list[_Stream] = []
    silent = True
    try:
        process = _start(argv, environ)
        streams = [_Stream(pipe, limit, process) for pipe in (process.stdout, process.stderr) if pipe]
        _let_signals(before)  # one that came meanwhile arrives here, where it ends the program too
        silent = patience is not None and not patience.wait(process)
        status = None if silent else process.wait()
    finally:
        _let_signals(before)
        if process is not None:
            _end(process)
        for stream in streams:
            stream.finish(0 if silent else _GRACE)
    if silent:
        hint = "start it by hand to see why, or name another engine"
        raise SilentError(f"{_asked(argv)} gave no answer within {time.monotonic() - begun:.1f} s: {hint}")
    if any(stream.overflowed for stream in streams):
        raise EngineFailed(f"{_asked(argv)} printed more than {limit:,} bytes: not the answer of a model engine")
    out, err = (stream.text() for stream in streams)
    if status and not any_status:
        raise EngineFailed(f"{_asked(argv)} {_ended(status)}{_last_words(err or out)}")
    return Answer(out, err)


def _hold_signals() -> set[int]:
    """Keep signals from cutting a start short; gives what was held before. Not where a system has no such thing."""
    if sys.platform == "win32":
        return set()
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING))


def _let_signals(before: set[int]) -> None:
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _tie() -> Callable[[], None] | None:
    """What a child does before it becomes the program: it hears signals again, and dies with us (prctl(2),
    PR_SET_PDEATHSIG) where there is such a call. All it needs is loaded before the fork."""
    if sys.platform == "win32":
        return None
    if sys.platform != "linux":
        return lambda: _let_signals(set())
    import ctypes

    prctl, us = ctypes.CDLL(None).prctl, os.getpid()

    def tie() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        prctl(_PDEATHSIG, 9, 0, 0, 0)
        if os.getppid() != us:  # we died before it asked
            os._exit(143)

    return tie


def _start(argv: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """In a process group of its own, so that whatever it starts can be ended with it; no console window on Windows."""
    windows = sys.platform == "win32"
    try:
        return subprocess.Popen(
            list(argv),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=not windows,
            preexec_fn=_tie(),
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0) if windows else 0,
        )
    except FileNotFoundError:
        raise BadInput(f"{printable(argv[0])}: no such program") from None
    except PermissionError:
        what = "is a directory, not a program" if Path(argv[0]).is_dir() else "may not be executed"
        raise BadInput(f"{printable(argv[0])}: {what}") from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{printable(argv[0])}: cannot be started: {said.lower()}") from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and what it started. Its group keeps its number while any member lives."""
    try:
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, 9)
    except OSError:
        pass  # nothing of it is left
    process.wait()


class _Stream:
    """Collects one pipe in a thread, up to a limit; beyond it the process is ended."""

    def __init__(self, pipe: IO[bytes], limit: int, process: subprocess.Popen[bytes]) -> None:
        self._pipe, self._limit, self._process = pipe, limit, process
        self._data = bytearray()
        self.overflowed = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while chunk := os.read(self._pipe.fileno(), 1 << 16):
            self._data += chunk
            if len(self._data) > self._limit:
                self.overflowed = True
                self._process.kill()
                return

    def finish(self, seconds: float) -> None:
        self._thread.join(seconds)
        if not self._thread.is_alive():
            self._pipe.close()

    def text(self) -> str:
        return _ANSI.sub("", self._data.decode("utf-8", "replace"))


def _asked(argv: Sequence[str]) -> str:
    return printable(" ".join(argv))


def _ended(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    names = {number.value: number.name for number in signal.Signals}
    return f"died of {names.get(-status, f'signal {-status}')}"


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {printable(lines[-1])}" if lines else ""
