"""A machine that is described instead of probed: ``hosts/*.yaml``, for what-if plans and for tests.

It gives the same facts as the probes of the host, the devices and the engine, each with its ``file:line``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from gezel_rules.errors import BadInput, Problem
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.kept_yaml import load_kept
from gezel_rules.places import shown
from gezel_rules.shape import FLAG, INTEGER, LIST, MAP, TEXT, fields, items
from gezel_rules.source import Node, did_you_mean

LEVEL = "probe"  # a description stands where the probe would: it beats and is beaten by the same levels
SYSTEMS = ("linux", "macos", "windows")
DEVICE_KINDS = ("discrete", "integrated", "unified", "rpc", "software")
_SIZE = re.compile(r"(\d{1,12})(?:\.(\d{1,9}))? ?([kKMGT]?i?B)", re.ASCII)
_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_VERSION = re.compile(r"\d{1,9}(\.\d{1,9}){0,3}((a|b|rc|\.dev|\.post)\d{1,9})?", re.ASCII)
_FLAG_NAME = re.compile(r"--[a-z0-9][a-z0-9-]*")
_REQUIRED = {"host": TEXT, "summary": TEXT, "os": TEXT, "cpus": INTEGER, "ram": MAP, "engine": MAP, "devices": LIST}


def bytes_of(text: str) -> int | None:
    """``24 GiB``, ``23.5 GiB``, ``24564 MiB``, ``24 GB`` in bytes, a fraction of a byte dropped; ``None``: no size."""
    match = _SIZE.fullmatch(text)
    if match is None or match[3] not in _UNITS:
        return None
    unit, decimals = _UNITS[match[3]], match[2] or "0"
    size: int = int(match[1]) * unit + int(decimals) * unit // 10 ** len(decimals)
    return size


def load_host(
    path: Path,
    backends: Collection[str] | None = None,
    cache: Path | None = None,
    processors: Collection[str] | None = None,
) -> dict[str, Fact]:
    """``host.*``, ``engine.*`` and ``devices`` as described; what the description leaves out is unknown.

    ``backends`` and ``processors`` are those that policy knows (``None``: not checked). Raises BadInput with every
    problem of the file.
    """
    root = load_kept(path, shown(path), cache)
    problems: list[Problem] = []
    got = fields(root, "a host", problems, _REQUIRED, {"unified": FLAG})
    if "host" in got and got["host"].value != path.stem:
        problems.append(got["host"].problem(f"'host' is {got['host'].value!a}, but the file is named '{path.name}'"))
    devices = _devices(got["devices"], problems) if "devices" in got else []
    known = {"backend": backends, "processor": processors}
    facts = _host(got, devices, problems) | (_engine(got["engine"], known, problems) if "engine" in got else {})
    if problems:
        raise BadInput(sorted(problems, key=lambda problem: problem.span or ()))
    return facts | {"devices": _fact(devices, got["devices"])}


def _fact(value: Any, node: Node) -> Fact:
    return Fact(value, f"{node.text.name}:{node.line}", LEVEL)


def _host(got: dict[str, Node], devices: list[dict[str, Any]], problems: list[Problem]) -> dict[str, Fact]:
    facts = {f"host.{key}": _fact(got[key].value, got[key]) for key in ("os", "cpus", "unified") if key in got}
    if "os" in got:
        _one_of(got["os"], "system", SYSTEMS, problems)
    if "cpus" in got and got["cpus"].value < 1:
        problems.append(got["cpus"].problem("'cpus' must be at least 1"))
    if "ram" in got:
        sizes, _ = _pair(got["ram"], "'ram'", {}, {}, problems)
        for key, (value, node) in sizes.items():
            facts[f"host.ram_{key}"] = _fact(value, node)
    if "unified" not in got and "devices" in got:
        shared = any(device.get("kind") == "unified" for device in devices)
        facts["host.unified"] = _fact(shared, got["devices"])
    return facts


def _engine(node: Node, known: Mapping[str, Collection[str] | None], problems: list[Problem]) -> dict[str, Fact]:
    required = {"kind": TEXT, "backend": TEXT, "version": TEXT}
    got = fields(node, "'engine'", problems, required, {"build": INTEGER, "flags": LIST, "processor": TEXT})
    if "version" in got and not _VERSION.fullmatch(got["version"].value):
        problems.append(got["version"].problem("'version' must be a version such as 0.6.0"))
    for key, words in known.items():
        if key in got and words is not None:
            _one_of(got[key], key, words, problems)
    facts = {f"engine.{key}": _fact(child.value, child) for key, child in got.items() if key != "flags"}
    if "build" not in got:
        facts["engine.build"] = _left_out(node, "'engine.build' in the description")
    facts["engine.flags"] = _flags(got["flags"], problems) if "flags" in got else _left_out(node, "the engine's --help")
    return facts


def _left_out(node: Node, settle: str) -> Fact:
    return _fact(UNKNOWN, node)._replace(settle=settle)


def _flags(node: Node, problems: list[Problem]) -> Fact:
    flags = items(node, "'flags'", TEXT, problems)
    for flag in flags:
        if not _FLAG_NAME.fullmatch(flag.value):
            problems.append(flag.problem(f"{flag.value!a} is not a long option such as --ctx-size"))
    return _fact(sorted({flag.value for flag in flags}), node)


def _devices(node: Node, problems: list[Problem]) -> list[dict[str, Any]]:
    seen: dict[str, Node] = {}
    devices = []
    for item in items(node, "'devices'", MAP, problems):
        required = {"name": TEXT, "description": TEXT, "kind": TEXT}
        sizes, got = _pair(item, "a device", required, {"arch": TEXT}, problems)
        if "kind" in got:
            _one_of(got["kind"], "kind", DEVICE_KINDS, problems)
        if "name" in got and (first := seen.setdefault(got["name"].value, got["name"])) is not got["name"]:
            problems.append(got["name"].problem(f"a second device named {first.value!a}"))
        device = {key: got[key].value for key in ("name", "description", "kind", "arch") if key in got}
        devices.append(device | {f"{key}_bytes": value for key, (value, _) in sizes.items()})
    return devices


def _pair(
    node: Node, what: str, required: dict[str, str], optional: dict[str, str], problems: list[Problem]
) -> tuple[dict[str, tuple[int, Node]], dict[str, Node]]:
    """``total`` and ``free`` of a memory in bytes, and all fields; free memory is part of the total."""
    got = fields(node, what, problems, {**required, "total": TEXT, "free": TEXT}, optional)
    sizes: dict[str, tuple[int, Node]] = {}
    for key in ("total", "free"):
        if key in got and (size := bytes_of(got[key].value)) is None:
            problems.append(got[key].problem(f"'{key}' must be a size such as 24 GiB or 24564 MiB"))
        elif key in got and size is not None:
            sizes[key] = (size, got[key])
    if len(sizes) == 2 and sizes["free"][0] > sizes["total"][0]:
        problems.append(got["free"].problem("'free' is more than 'total'"))
    return sizes, got


def _one_of(node: Node, what: str, known: Collection[str], problems: list[Problem]) -> None:
    if node.value not in known:
        hint = did_you_mean(node.value, known) or f"; it is one of: {', '.join(sorted(known))}"
        problems.append(node.problem(f"unknown {what} {node.value!a}{hint}"))
