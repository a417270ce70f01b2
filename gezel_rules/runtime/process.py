"""Who a process is: a pid alone is no identity, since the kernel hands it out again."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def started(pid: int) -> str | None:
    """A token for when a process began, ``None`` when there is none (a zombie counts as none). Two processes never
    share pid and token."""
    if sys.platform == "linux":
        return _started_linux(pid)
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.Error:
        return None


def _started_linux(pid: int) -> str | None:
    """Boot id and field 22 of ``/proc/PID/stat`` (clock ticks since boot), as proc(5) has it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        boot = _BOOT_ID.read_text()[:8]
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else f"{boot}-{fields[19].decode()}"


def alive(pid: int, token: str) -> bool:
    """Whether the process that had this token still runs."""
    return started(pid) == token


def listens(pid: int, port: int) -> bool | None:
    """Whether a process or a descendant of it listens on a TCP port; ``None`` where the system does not tell."""
    import psutil

    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        held = [c.laddr.port for p in family for c in p.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    except psutil.NoSuchProcess:
        return False
    except (psutil.Error, OSError):
        return None
    return port in held


def signal_group(pid: int, number: int) -> None:
    """Signal a process group led by ``pid``; where there are no groups, the process. One that is gone is no error."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def end(pid: int, token: str, grace: float) -> bool:
    """End a group led by a process that is not our child: politely, after ``grace`` seconds by force. False when it
    still runs."""
    if not alive(pid, token):
        return True
    signal_group(pid, signal.SIGTERM)
    if gone(pid, token, grace):
        return True
    signal_group(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    return gone(pid, token, 5.0)


def gone(pid: int, token: str, seconds: float) -> bool:
    """Wait until a process is gone; False when it still runs after so many seconds."""
    deadline = time.monotonic() + seconds
    while alive(pid, token):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True
