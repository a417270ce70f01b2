"""What this machine offers this process: operating system, usable CPUs, memory. Limits of containers are honoured.

On Linux the kernel's own files are read: importing psutil would cost 15 ms of a plan that takes 40. Elsewhere psutil.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

from gezel_rules.facts import cgroups
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.record import NamedTuple

_SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}


class Memory(NamedTuple):
    """RAM installed, and RAM available without swapping, in bytes."""

    total: Fact
    free: Fact


def host_facts(
    root: Path = Path("/"), *, platform: str = sys.platform, affinity: Callable[[], int | None] | None = None
) -> dict[str, Fact]:
    """``host.os``, ``host.cpus`` (at least 1), ``host.ram_total`` and ``host.ram_free`` (bytes).

    ``root`` holds ``proc`` and the control groups; ``affinity`` counts the CPUs this process may run on.
    """
    linux = platform == "linux"
    memory = _meminfo(root) if linux else _psutil_memory()
    tree = cgroups.read_tree(root) if linux else cgroups.Tree(root, "", "")
    limits = list(cgroups.memory_limits(tree))
    return {
        "host.os": Fact(_SYSTEMS.get(platform, platform), "this Python", "probe"),
        "host.cpus": _cpus(tree, affinity or _affinity),
        "host.ram_total": _ram_total(memory.total, limits, root),
        "host.ram_free": _ram_free(memory.free, limits, root),
    }


def _affinity() -> int | None:
    """The CPUs this process may be scheduled on; ``None`` when the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    if sys.platform == "win32":
        import psutil

        return len(psutil.Process().cpu_affinity() or ()) or os.cpu_count()
    return os.cpu_count()


def _cpus(tree: cgroups.Tree, affinity: Callable[[], int | None]) -> Fact:
    """Affinity, cut to the smallest quota. A fraction is rounded down: the engine's threads wait for each other
    after every operation, so one throttled thread holds up all of them."""
    count = affinity()
    fact = Fact(UNKNOWN, "CPU affinity", "probe", settle="run where the system counts CPUs")
    if count:
        fact = Fact(count, "CPU affinity of this process", "probe")
    for quota in cgroups.cpu_quotas(tree):
        allowed = max(1, math.floor(quota.cpus))
        if fact.value is UNKNOWN or allowed < fact.value:
            fact = Fact(allowed, f"cgroup {_shown(quota.file, tree.root)}", "probe")
    return fact


def _meminfo(root: Path) -> Memory:
    """``MemTotal`` and ``MemAvailable`` of proc_meminfo(5), which counts in KiB."""
    sizes: dict[str, int] = {}
    for line in (cgroups.read(root / "proc/meminfo") or "").splitlines():
        key, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            sizes[key] = int(words[0]) << 10
    return Memory(*(_measured(sizes.get(key), f"/proc/meminfo {key}") for key in ("MemTotal", "MemAvailable")))


def _psutil_memory() -> Memory:
    import psutil

    memory = psutil.virtual_memory()
    return Memory(_measured(memory.total, "psutil total"), _measured(memory.available, "psutil available"))


def _measured(value: int | None, source: str) -> Fact:
    if value is None:
        return Fact(UNKNOWN, source, "probe", settle="run where the system reports its memory")
    return Fact(value, source, "probe")


def _ram_total(whole: Fact, limits: list[cgroups.MemoryLimit], root: Path) -> Fact:
    fact = whole
    for limit in limits:
        if fact.value is not UNKNOWN and limit.limit < fact.value:
            fact = Fact(limit.limit, f"cgroup {_shown(limit.file, root)}", "probe")
    return fact


def _ram_free(whole: Fact, limits: list[cgroups.MemoryLimit], root: Path) -> Fact:
    """What the machine has free, cut to what each group has left. A group alone is only an upper bound: when the
    machine does not say what is free, that stays unknown."""
    fact = whole
    for limit in limits:
        if limit.used is None or fact.value is UNKNOWN:
            continue
        left = max(0, limit.limit - limit.used)
        if left < fact.value:
            fact = Fact(left, f"cgroup {_shown(limit.file, root)} less what the group holds", "probe")
    return fact


def _shown(path: Path, root: Path) -> str:
    """The path as the process itself knows it."""
    return "/" + path.relative_to(root).as_posix()
