"""A machine that is described instead of probed: ``hosts/*.yaml``, for what-if plans and for tests.

It gives the same facts as the probes of the host, the devices and the engine, each with its ``file:line``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.documents.declare import (
    FLAG,
    TEXT,
    WORDING,
    List,
    Name,
    Shape,
    Text,
    Word,
    optional,
    required,
    whole,
)
from gezel_rules.documents.kept import load_kept
from gezel_rules.documents.node import did_you_mean
from gezel_rules.documents.read import Value, in_file_order, read, unknown_names
from gezel_rules.errors import BadInput, Problem
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.facts.family import engine_family
from gezel_rules.places import shown

PREFIXES = "device_prefixes"
"""Policy's table of the letters that names of devices begin with."""
NOT_HERE = ("rpc", "software")
"""Kinds of devices that say nothing of the backend a build was made for."""
_LETTERS = re.compile(r"[A-Za-z]+")
LEVEL = "probe"  # a description stands where the probe would: it beats and is beaten by the same levels
_SIZE = r"([0-9]{1,12})(?:\.([0-9]{1,9}))? ?(B|[kKMGT]B|[KMGT]iB)"
_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def bytes_of(text: str) -> int | None:
    """``24 GiB``, ``23.5 GiB``, ``24564 MiB``, ``24 GB`` in bytes, a fraction of a byte dropped; ``None``: no size."""
    match = re.fullmatch(_SIZE, text)
    if match is None:
        return None
    unit, decimals = _UNITS[match[3]], match[2] or "0"
    size: int = int(match[1]) * unit + int(decimals) * unit // 10 ** len(decimals)
    return size


SIZE = Text("a size", ("24 GiB", "24564 MiB"), pattern=_SIZE, means=bytes_of)
VERSION = Text("a version", ("0.6.0",), pattern=r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}((a|b|rc|\.dev|\.post)[0-9]{1,9})?")
OPTION = Text("a long option", ("--ctx-size",), pattern=r"--[a-z0-9][a-z0-9-]*")
_MEMORY = {"total": required(SIZE, "All of it."), "free": required(SIZE, "What is free of it.")}

ENGINE = Shape(
    "'engine'",
    {
        "family": engine_family("The engine family it belongs to."),
        "kind": required(TEXT, "Which program of the family."),
        "backend": required(Name("backends", "backend"), "One of the policy's backends."),
        "version": required(VERSION, "Its release."),
        "build": optional(whole(least=0), "Build number; unknown when left out."),
        "flags": optional(List(OPTION), "Long options its --help knows; unknown when left out."),
        "processor": optional(
            Name("processors", "processor"),
            "The best instructions its code packs weights for on the CPU, a row of the policy's processors; unknown "
            "when left out.",
        ),
    },
)
DEVICE = Shape(
    "a device",
    {
        "name": required(TEXT, "As the engine spells it: CUDA0, Vulkan0, MTL0, …"),
        "description": required(TEXT, "The card's name."),
        "kind": required(Word(("discrete", "integrated", "unified", "rpc", "software"), "kind"), "What its memory is."),
        **_MEMORY,
        "arch": optional(TEXT, "What kernels must be compiled for: sm_89, gfx1100, …"),
    },
    "One device.",
)
HOST = Shape(
    "a host",
    {
        "host": required(WORDING, "Name of the machine and of this file."),
        "summary": required(WORDING, "One sentence."),
        "os": required(Word(("linux", "macos", "windows"), "system"), "Operating system."),
        "cpus": required(whole(least=1), "CPUs a process may use."),
        "ram": required(Shape("'ram'", _MEMORY), "Memory of the machine."),
        "unified": optional(FLAG, "Whether the GPU shares the RAM. Left out: true if a device is of kind unified."),
        "engine": required(ENGINE, "The engine that would run there."),
        "devices": required(List(DEVICE), "GPUs as the engine lists them; empty for none."),
    },
    "A machine described instead of probed, for what-if plans.",
)


def load_host(path: Path, known: Mapping[str, Collection[str]] = {}, cache: Path | None = None) -> dict[str, Fact]:
    """``host.*``, ``engine.*`` and ``devices`` as described; what the description leaves out is unknown.

    ``known``: the words there are of each kind that is checked: ``backends`` and ``processors`` as policy has them,
    ``engine_families``; and its table ``device_prefixes``. Raises BadInput with every problem of the file.
    """
    problems: list[Problem] = []
    host = read(load_kept(path, shown(path), cache), HOST, problems)
    problems += unknown_names(host, known)
    _check(host, path, problems)
    problems += foreign_devices(host, known.get(PREFIXES, {}), known.get("backends"))
    if problems:
        raise BadInput(in_file_order(problems))
    return _host(host) | _engine(host["engine"]) | {"devices": _fact(_devices(host), host["devices"])}


def family_of(path: Path) -> str:
    """The engine family a description speaks of, whatever else is wrong with it. Raises BadInput for a file that
    cannot be read."""
    host = read(load_kept(path, shown(path), None), HOST, [])
    return str(host["engine"].at("family")) if "engine" in host else DEFAULT_FAMILY


def _check(host: Value, path: Path, problems: list[Problem]) -> None:
    """What must hold between keys, or with the name of the file."""
    if "host" in host and host.at("host") != path.stem:
        node = host["host"].node
        problems.append(node.problem(f"'host' is {node.value!a}, but the file is named '{path.name}'"))
    devices = host.at("devices") or []
    for memory in ([host["ram"]] if "ram" in host else []) + devices:
        if "total" in memory and "free" in memory and memory.at("free") > memory.at("total"):
            problems.append(memory["free"].node.problem("'free' is more than 'total'"))
    seen: set[str] = set()
    for name in [device["name"] for device in devices if "name" in device]:
        if name.value in seen:
            problems.append(name.node.problem(f"a second device named {name.value!a}"))
        seen.add(name.value)


def foreign_devices(host: Value, prefixes: Collection[str], backends: Collection[str] | None) -> list[Problem]:
    """Devices that this engine cannot list: their names are misspelt, or another backend's. A build may have several
    backends; it then counts the devices of each from 0, and has some of the backend it is known by. ``prefixes``: the
    letters names begin with, with the ``backend`` and ``kind`` of each where that is known. Nothing is said where the
    engine's backend is none of the ``backends``."""
    rows: Mapping[str, Any] = prefixes if isinstance(prefixes, Mapping) else {}
    backend = host["engine"].at("backend") if "engine" in host else None
    if backend is None or backend not in (backends or (backend,)):
        return []
    devices = [device for device in host.at("devices") or () if "name" in device]
    listed = [device["name"] for device in devices if device.at("kind") not in NOT_HERE]
    of = {name.value: rows.get(_letters(name), {}).get("backend") for name in listed}
    if len(listed) > 1 and set(of.values()).isdisjoint((None, backend)) and len(set(of.values())) == 1:
        said = f"'engine.backend' is {backend}, but its devices are of {of[listed[0].value]}"
        return [host["engine"]["backend"].problem(said)]
    problems = []
    for name in listed:
        letters = _letters(name)
        if of[name.value] is None and (near := did_you_mean(letters, rows)):
            problems.append(name.problem(f"no engine calls a device {name.value!a}{near}", len(letters)))
        elif of[name.value] not in (None, backend) and not (backend in of.values() and f"{letters}0" in of):
            said = f"{name.value!a} is a device of {of[name.value]}, but 'engine.backend' is {backend}"
            problems.append(name.problem(said))
    return problems


def _letters(name: Value) -> str:
    """What a device's name begins with, before its number."""
    found = _LETTERS.match(name.value)
    return found[0] if found else ""


def _fact(meant: Any, value: Value) -> Fact:
    return Fact(meant, value.place, LEVEL)


def _host(host: Value) -> dict[str, Fact]:
    ram = host["ram"]
    facts = {f"host.{key}": _fact(host.at(key), host[key]) for key in ("os", "cpus", "unified") if key in host}
    facts |= {f"host.ram_{key}": _fact(value.value, value) for key, value in ram.value.items()}
    if "unified" not in host:
        shared = any(device.at("kind") == "unified" for device in host.at("devices"))
        facts["host.unified"] = _fact(shared, host["devices"])
    return facts


def _engine(engine: Value) -> dict[str, Fact]:
    facts = {f"engine.{key}": _fact(value.value, value) for key, value in engine.value.items()}
    facts.setdefault("engine.family", _fact(engine.at("family"), engine))
    left_out = _fact(UNKNOWN, engine)
    facts.setdefault("engine.build", left_out._replace(settle="'engine.build' in the description"))
    flags = left_out._replace(settle="the engine's --help")
    if "flags" in engine:
        flags = _fact(sorted({flag.value for flag in engine.at("flags")}), engine["flags"])
    return facts | {"engine.flags": flags}


def _devices(host: Value) -> list[dict[str, Any]]:
    """As a probe lists them."""
    return [
        {f"{key}_bytes" if key in _MEMORY else key: value.value for key, value in device.value.items()}
        for device in host.at("devices")
    ]
