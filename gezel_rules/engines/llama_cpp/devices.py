"""The devices an engine lists: names, memory now, and what kind of memory it is.

llama.cpp prints ``Available devices:`` and then ``  NAME: DESCRIPTION (TOTAL MiB, FREE MiB free)`` for each GPU, or
``  (none)``. Which names belong to which backend, and which descriptions betray an integrated GPU or a software
renderer, is policy's knowledge and comes in as ``DeviceRules``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gezel_rules.engines.llama_cpp.rows import DeviceName, DevicePrefix
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.facts.printable import printable
from gezel_rules.record import NamedTuple
from gezel_rules.regex import Regex

MIB = 1 << 20
MAX_DEVICES = 128

_HEADER = re.compile(r"^Available devices:\s*$", re.MULTILINE)
_DEVICE = re.compile(r"^  (\S+): (.*) \((\d{1,12}) MiB, (\d{1,12}) MiB free\)\s*$")
_PREFIX = re.compile(r"[A-Za-z]+")
_MARKS = re.compile(r"\((?:R|TM|C)\)", re.IGNORECASE)
_SHARED = ("unified", "integrated")
_LAST = ("rpc", "software")


class DeviceRules(NamedTuple):
    """Policy's tables: ``backends`` and ``kinds`` by the letters a device's name begins with; ``names`` are (pattern,
    kind): the first that is found is above ``kinds``; ``lines``: what the engine writes about a device while it
    starts, by the same letters, with the groups ``number`` and ``says``."""

    backends: Mapping[str, str]
    kinds: Mapping[str, str | None]
    names: Sequence[tuple[Regex, str]] = ()
    lines: Mapping[str, Regex] = {}


def device_rules(
    prefixes: Mapping[str, DevicePrefix], names: Mapping[str, DeviceName] = {}, lines: Mapping[str, str] = {}
) -> DeviceRules:
    """The rules as policy writes them: its tables ``device_prefixes``, ``device_names`` and ``device_lines``."""
    return DeviceRules(
        {prefix: row.backend for prefix, row in prefixes.items()},
        {prefix: row.kind for prefix, row in prefixes.items()},
        [(Regex(row.matches, ignore_case=True), row.kind) for row in names.values()],
        {prefix: Regex(pattern) for prefix, pattern in lines.items()},
    )


class Device(NamedTuple):
    """``total_bytes`` and ``free_bytes`` are ``None`` when the engine cannot tell (it prints 0 for both); ``kind`` is
    ``discrete``, ``integrated``, ``unified``, ``rpc`` or ``software``, and ``None`` when no rule knows."""

    name: str
    description: str
    total_bytes: int | None
    free_bytes: int | None
    kind: str | None


def parse_devices(text: str, rules: DeviceRules, beside: str = "") -> list[Device] | None:
    """The devices of a ``--list-devices`` answer, in the engine's order; ``None`` when it is no such answer.
    ``beside``: what the engine wrote elsewhere while its backends started."""
    header = _HEADER.search(text)
    if header is None:
        return None
    said = _said(f"{text[: header.start()]}\n{beside}", rules)
    matches = map(_DEVICE.match, text[header.end() :].splitlines())
    return [_device(match, rules, said) for match in matches if match][:MAX_DEVICES]


def _said(text: str, rules: DeviceRules) -> dict[str, str]:
    """The engine's own words about its devices, by their names."""
    return {
        prefix + found["number"]: found["says"]
        for line in text.splitlines()
        for prefix, pattern in rules.lines.items()
        if (found := pattern.search(line))
    }


def _device(match: re.Match[str], rules: DeviceRules, said: Mapping[str, str]) -> Device:
    name, description = printable(match[1]), printable(match[2].strip())
    total, free = int(match[3]) * MIB, int(match[4]) * MIB
    known = total > 0
    kind = _kind(name, f"{name}: {description} {said.get(name, '')}", rules)
    return Device(name, description, total if known else None, free if known else None, kind)


def _kind(name: str, words: str, rules: DeviceRules) -> str | None:
    plain = " ".join(_MARKS.sub("", words).split())
    found = (kind for pattern, kind in rules.names if pattern.search(plain))
    return next(found, rules.kinds.get(_prefix(name)))


def _prefix(name: str) -> str:
    """The letters a name begins with, before its number."""
    match = _PREFIX.match(name)
    return match[0] if match else ""


def device_facts(devices: list[Device] | None, rules: DeviceRules, cpu_backend: str, source: str) -> dict[str, Fact]:
    """``devices`` (a list of plain mappings), ``host.unified`` and ``engine.backend``; ``cpu_backend`` is what an
    engine without devices runs on; ``source`` is the question that was asked."""
    if devices is None:
        unknown = Fact(UNKNOWN, source, "probe", settle="an engine that knows --list-devices")
        return {"devices": unknown, "host.unified": unknown, "engine.backend": unknown}
    plain = [device._asdict() for device in devices]
    names = ", ".join(device.name for device in devices)
    return {
        "devices": Fact(plain, f"{source}: {names or '(none)'}", "probe"),
        "host.unified": _unified(devices, source),
        "engine.backend": _backend(devices, rules, cpu_backend, source),
    }


def _unified(devices: list[Device], source: str) -> Fact:
    shared = [device.name for device in devices if device.kind in _SHARED]
    unsorted = [device.name for device in devices if device.kind is None]
    if unsorted and not shared:
        return Fact(UNKNOWN, f"{source}: {', '.join(unsorted)}", "probe", settle="a device rule for this name")
    return Fact(bool(shared), f"{source}: {', '.join(shared) or 'no device shares RAM'}", "probe")


def _backend(devices: list[Device], rules: DeviceRules, cpu_backend: str, source: str) -> Fact:
    """The backend of the first device whose name a rule knows; GPUs that share the RAM come after the others, other
    machines and software renderers last."""
    if not devices:
        return Fact(cpu_backend, f"{source}: (none)", "probe")
    for device in sorted(devices, key=lambda device: (device.kind in _LAST, device.kind in _SHARED)):
        if backend := rules.backends.get(_prefix(device.name)):
            return Fact(backend, f"{source}: {device.name}", "probe")
    return Fact(UNKNOWN, f"{source}: {devices[0].name}", "probe", settle="a device rule for this name")
