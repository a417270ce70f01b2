"""Why a process got SIGKILL: what the system shows of a lack of memory, told as a line for the log policies.

Three witnesses, each read where it can be: the kernel's log, the count of kills for memory in the control group
(memory.events in version 2, memory.oom_control in version 1), and the share of time in which every task waited for
memory (PSI, ``full avg10``). Without any of them the kill is not called one for memory.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from gezel_rules.facts.cgroups import OomKills, oom_kills, read, read_tree
from gezel_rules.record import NamedTuple

_KERNEL_LOG = "dev/kmsg"
_RECORD = re.compile(r"\d+,\d+,(\d+),[^;]*;(.*)")  # priority, sequence, microseconds since boot, flags; message
_FULL = re.compile(r"^full avg10=(\d+\.\d+)", re.MULTILINE)


class Before(NamedTuple):
    """What was so when the process was started: its group's count of kills for memory, the monotonic clock, and the
    root that system files are read below."""

    kills: OomKills | None
    clock: float
    root: Path


def look(root: Path = Path("/")) -> Before:
    """Take note before a process is started."""
    return Before(oom_kills(read_tree(root)), time.monotonic(), root)


def line_on(exit_status: int | None, pid: int, before: Before, pressure: float) -> tuple[str, ...]:
    """A line for the log policies when SIGKILL ended the process, else none. ``pressure``: percent of PSI's
    ``full avg10`` from which memory was short."""
    number = getattr(signal, "SIGKILL", None)
    if number is None or exit_status not in (-number, 128 + number):
        return ()
    seen = next(_evidence(pid, before, pressure), None)
    if seen is None:
        return ("supervisor: SIGKILL, and no sign that memory was short",)
    return (f"supervisor: SIGKILL for lack of memory: {seen}",)


def _evidence(pid: int, before: Before, pressure: float) -> Iterator[str]:
    """What speaks for a lack of memory, the surest first."""
    for message in _kernel_lines(before):
        if re.search(rf"\bKilled process {pid} ", message):
            yield f"the kernel says '{message[:120]}'"
    now = oom_kills(read_tree(before.root))
    if now and before.kills and now.file == before.kills.file and now.killed > before.kills.killed:
        yield f"oom_kill in {now.file} rose from {before.kills.killed} to {now.killed}"
    full = _FULL.search(read(before.root / "proc/pressure/memory") or "")
    if full and float(full[1]) >= pressure:
        yield f"every task waited for memory {full[1]} % of the last 10 s (PSI, full avg10)"


def _kernel_lines(before: Before) -> Iterator[str]:
    """The kernel's messages since the start, where they may be read: one record for each read, until none is left."""
    try:
        file = os.open(before.root / _KERNEL_LOG, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return
    try:
        while record := _record(file):
            if (found := _RECORD.match(record)) and int(found[1]) >= before.clock * 1e6:
                yield found[2]
    finally:
        os.close(file)


def _record(file: int) -> str:
    """The next record; empty when there is none. One that was overwritten meanwhile is passed over."""
    while True:
        try:
            return os.read(file, 8192).decode("utf-8", "replace")
        except BrokenPipeError:
            continue
        except OSError:
            return ""
