"""Control group limits over this process: which groups it is in, and what each of them allows.

Read from ``proc/self/cgroup`` and ``proc/self/mountinfo`` (cgroups(7)); version 2 and version 1, also side by side.
A limit of any ancestor binds, so every group from the process's own up to the mount point is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from gezel_rules.record import NamedTuple

MAX_FILE_BYTES = 4 << 20  # mountinfo of a busy container host is long; nothing here is longer


class Group(NamedTuple):
    """One control group: ``version`` 1 or 2, and its directory."""

    version: int
    directory: Path


class MemoryLimit(NamedTuple):
    """What a group allows and what it holds now, in bytes; ``used`` leaves out file cache that can be dropped
    (``inactive_file``) and is ``None`` when the kernel does not say; ``file`` is where the limit stands."""

    limit: int
    used: int | None
    file: Path


class OomKills(NamedTuple):
    """How many processes of a group the kernel has killed for lack of memory, and the file that says so."""

    killed: int
    file: Path


class CpuQuota(NamedTuple):
    """How many CPUs' worth of time a group may use (a fraction is possible), and the file that says so."""

    cpus: float
    file: Path


def read(path: Path) -> str | None:
    """A small kernel file's text; ``None`` when it is missing or may not be read."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


class Tree(NamedTuple):
    """What the kernel says of this process's groups and of where the hierarchies are mounted, below ``root``."""

    root: Path
    memberships: str
    mounts: str


def read_tree(root: Path) -> Tree:
    """Read once what both controllers need."""
    return Tree(root, read(root / "proc/self/cgroup") or "", read(root / "proc/self/mountinfo") or "")


def groups(tree: Tree, controller: str) -> list[Group]:
    """The groups that bind this process for a controller (``cpu``, ``memory``), innermost first."""
    paths = dict(_memberships(tree.memberships, controller))
    found: list[Group] = []
    for version, mounted_path, mount_point in _mounts(tree.mounts, controller):
        if version in paths:
            top = tree.root / mount_point.lstrip("/")
            found += (Group(version, d) for d in _up(top, _below(paths[version], mounted_path)))
    return found


def _memberships(text: str, controller: str) -> Iterator[tuple[int, str]]:
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon and number == "0" and not controllers:
            yield 2, path
        elif colon and controller in controllers.split(","):
            yield 1, path


def _mounts(text: str, controller: str) -> Iterator[tuple[int, str, str]]:
    """(version, path inside the hierarchy that is mounted, mount point), as proc(5) lays mountinfo out."""
    for line in text.splitlines():
        if " - cgroup" not in line:
            continue
        before, dash, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if not dash or len(fields) < 6 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            yield 2, _unescape(fields[3]), _unescape(fields[4])
        elif kind[0] == "cgroup" and controller in kind[2].split(","):
            yield 1, _unescape(fields[3]), _unescape(fields[4])


def _unescape(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), field) if "\\" in field else field


def _below(path: str, mounted: str) -> list[str]:
    """The steps from the mount point down to the group; a path outside what is mounted leaves the mount point."""
    steps, base = [s for s in path.split("/") if s], [s for s in mounted.split("/") if s]
    if ".." in steps:
        return []
    return steps[len(base) :] if steps[: len(base)] == base else []


def _up(top: Path, steps: list[str]) -> Iterator[Path]:
    for depth in range(len(steps), -1, -1):
        yield top.joinpath(*steps[:depth])


def cpu_quotas(tree: Tree) -> Iterator[CpuQuota]:
    """Every CPU quota over this process, innermost first."""
    for group in groups(tree, "cpu"):
        name = "cpu.max" if group.version == 2 else "cpu.cfs_quota_us"
        text = read(group.directory / name) or ""
        if group.version == 1:
            text += " " + (read(group.directory / "cpu.cfs_period_us") or "")
        numbers = _whole_numbers(text)
        if len(numbers) == 2 and numbers[0] > 0 and numbers[1] > 0:
            yield CpuQuota(numbers[0] / numbers[1], group.directory / name)


def memory_limits(tree: Tree) -> Iterator[MemoryLimit]:
    """Every memory limit over this process, innermost first; ``memory.high`` throttles, so it binds too."""
    for group in groups(tree, "memory"):
        names = ("memory.max", "memory.high") if group.version == 2 else ("memory.limit_in_bytes",)
        for name in names:
            numbers = _whole_numbers(read(group.directory / name) or "")
            if len(numbers) == 1 and numbers[0] >= 0:
                yield MemoryLimit(numbers[0], _used(group), group.directory / name)


def oom_kills(tree: Tree) -> OomKills | None:
    """The count of this process's own group; ``None`` where the kernel keeps none. Those of the groups above count
    strangers too."""
    for group in groups(tree, "memory"):
        path = group.directory / ("memory.events" if group.version == 2 else "memory.oom_control")
        for line in (read(path) or "").splitlines():
            key, _, value = line.partition(" ")
            if key == "oom_kill" and value.isdecimal():
                return OomKills(int(value), path)
    return None


def _used(group: Group) -> int | None:
    usage = "memory.current" if group.version == 2 else "memory.usage_in_bytes"
    cache = "inactive_file" if group.version == 2 else "total_inactive_file"
    numbers = _whole_numbers(read(group.directory / usage) or "")
    if len(numbers) != 1:
        return None
    droppable = 0
    for line in (read(group.directory / "memory.stat") or "").splitlines():
        key, _, value = line.partition(" ")
        if key == cache:
            droppable = sum(_whole_numbers(value))
    return max(0, numbers[0] - droppable)


def _whole_numbers(text: str) -> list[int]:
    """The file's whole numbers, or nothing when it holds anything else (``max`` is no limit)."""
    try:
        return [int(word) for word in text.split()]
    except ValueError:
        return []
