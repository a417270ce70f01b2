"""``gezel-rules devices``: the engine found, the devices it sees, what this machine has, and who else steers it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from gezel_rules import places
from gezel_rules.engines.llama_cpp.foreign import Foreign
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.facts.printable import printable
from gezel_rules.record import NamedTuple

GIB = 1 << 30

Facts = Mapping[str, Fact]


class Offer(NamedTuple):
    """What this machine offers: the engine's ``command`` (``None``: none found, and ``why``), facts, foreign settings,
    and policy's labels for backends."""

    command: tuple[str, ...] | None
    why: str
    facts: Facts
    foreign: list[Foreign]
    labels: Mapping[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("--engine", metavar="PATH", help="a llama-server, or 'embedded' (default: the one found)")


def run(args: argparse.Namespace, out: TextIO | None = None) -> int:
    """Show the offer; 1 when there is no engine. Raises GezelError when the engine asked for is not one or fails."""
    sink = out or sys.stdout
    policies = getattr(args, "policies", None)
    offer = look(getattr(args, "engine", None), os.environ, Path(policies) if policies else None, places.cache_dir())
    if getattr(args, "json", False):
        sink.write(json.dumps(as_json(offer), indent=2) + "\n")
    else:
        sink.writelines(f"{line}\n" for line in as_text(offer))
    return 0 if offer.command else 1


def look(choice: str | None, environ: Mapping[str, str], policies: Path | None, cache: Path | None) -> Offer:
    """Ask the machine and its engine; devices are asked anew, whatever was kept."""
    from gezel_rules.engines.llama_cpp.find import VARIABLE, find_engine, judged_by
    from gezel_rules.errors import BadInput
    from gezel_rules.facts.host import host_facts
    from gezel_rules.planner.launch import read_policies

    tables = read_policies(policies or places.policies_dir(), cache).tables
    labels = {name: row["label"] for name, row in tables["backends"].items()}
    try:
        engine = judged_by(find_engine(choice, environ), policies)
    except BadInput as error:
        if choice or environ.get(VARIABLE):
            raise
        return Offer(None, str(error), host_facts(), [], labels)
    facts, foreign = _asked(engine.kind, engine.command, environ, tables, cache)
    return Offer(engine.command, "", {**host_facts(), **facts}, foreign, labels)


def _asked(
    kind: str, command: tuple[str, ...], environ: Mapping[str, str], tables: Mapping[str, Any], cache: Path | None
) -> tuple[Facts, list[Foreign]]:
    from gezel_rules.engines.llama_cpp.builds import build_facts, engine_at, read_build
    from gezel_rules.engines.llama_cpp.devices import device_rules
    from gezel_rules.engines.llama_cpp.foreign import foreign_settings

    rules = device_rules(tables["device_prefixes"], tables["software_renderers"], tables["integrated_gpus"])
    cpu = next(name for name, row in tables["backends"].items() if not row["gpu"])
    facts = build_facts(command, cache, environ, kind=kind, rules=rules, cpu_backend=cpu, fresh=True)
    build = read_build(engine_at(kind, command, cache, environ))
    return facts, foreign_settings(environ, flags=build.flags, variables=build.variables)


def as_json(offer: Offer) -> dict[str, Any]:
    """Plain JSON: every fact with its source; an unknown one is ``null`` and says what would settle it."""
    return {
        "engine": {"command": offer.command} if offer.command else {"command": None, "why": offer.why},
        "facts": {name: _fact(fact) for name, fact in offer.facts.items()},
        "foreign": [setting._asdict() for setting in offer.foreign],
    }


def _fact(fact: Fact) -> dict[str, Any]:
    if fact.value is UNKNOWN:
        return {"value": None, "unknown": True, "source": fact.source, "settle": fact.settle}
    return {"value": fact.value, "source": fact.source}


def as_text(offer: Offer) -> Iterator[str]:
    """For people: what, how much, and where that was read."""
    yield from _engine(offer)
    yield ""
    yield from _host(offer.facts)
    if offer.foreign:
        yield ""
        yield from _foreign(offer.foreign)


def _engine(offer: Offer) -> Iterator[str]:
    if offer.command is None:
        yield f"engine   none: {offer.why}"
        return
    facts = offer.facts
    yield f"engine   {printable(' '.join(offer.command))}"
    yield _row("version", _version(facts), facts["engine.version"])
    backend = facts["engine.backend"].value
    yield _row(
        "backend", "unknown" if backend is UNKNOWN else offer.labels.get(backend, backend), facts["engine.backend"]
    )
    yield _row("options", f"{len(facts['engine.flags'].value)}", facts["engine.flags"])
    devices = facts["devices"]
    if devices.value is UNKNOWN or not devices.value:
        yield _row("devices", "unknown" if devices.value is UNKNOWN else "none", devices)
    for device in devices.value if devices.value is not UNKNOWN else ():
        yield "  " + _device(device)


def _version(facts: Facts) -> str:
    version, build = facts["engine.version"].value, facts["engine.build"].value
    if build is UNKNOWN:
        return "unknown" if version is UNKNOWN else str(version)
    return f"build {build}" if version is UNKNOWN else f"{version} (build {build})"


def _device(device: Mapping[str, Any]) -> str:
    total, free = device["total_bytes"], device["free_bytes"]
    memory = "memory unknown" if total is None else f"{_gib(free)} free of {_gib(total)}"
    return f"{device['name']:8} {device['description']} · {device['kind'] or 'kind unknown'} · {memory}"


def _host(facts: Facts) -> Iterator[str]:
    yield f"host     {facts['host.os'].value}"
    cpus = facts["host.cpus"]
    yield _row("CPUs", "unknown" if cpus.value is UNKNOWN else str(cpus.value), cpus)
    for label, name in (("RAM", "host.ram_total"), ("free", "host.ram_free")):
        fact = facts[name]
        yield _row(label, "unknown" if fact.value is UNKNOWN else _gib(fact.value), fact)


def _row(label: str, value: str, fact: Fact) -> str:
    settle = f"; settled by: {fact.settle}" if fact.value is UNKNOWN and fact.settle else ""
    return f"  {label:8} {value:26} {fact.source}{settle}"


def _gib(size: int) -> str:
    return f"{size / GIB:,.1f} GiB"


def _foreign(settings: list[Foreign]) -> Iterator[str]:
    yield "set outside (a flag of the plan beats each of these)"
    for setting in settings:
        what = " ".join(part for part in (setting.option, setting.value) if part)
        yield f"  {what:35} {setting.source}{f' · {setting.why}' if setting.why else ''}"
