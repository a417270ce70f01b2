"""``gezel-rules devices``: the engine found, the devices it sees, what this machine has, and who else steers it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from gezel_rules.cli.arguments import add_engine, add_family, session_of
from gezel_rules.cli.shown import json_text, tell
from gezel_rules.engines.family import OutsideSetting
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.facts.printable import printable
from gezel_rules.session.offer import Offer, look

GIB = 1 << 30

Facts = Mapping[str, Fact]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_engine(parser)
    add_family(parser)


def run(args: argparse.Namespace) -> int:
    """Show the offer; 1 when there is no engine. Raises GezelError when the engine asked for is not one or fails."""
    session = session_of(args)
    offer = look(session, session.family(args.family), args.engine)
    if args.json:
        print(json_text(as_json(offer)))
    else:
        tell(as_text(offer))
    return 0 if offer.command else 1


def as_json(offer: Offer) -> dict[str, Any]:
    """Plain JSON: every fact with its source; an unknown one is ``null`` and says what would settle it."""
    return {
        "engine": {"command": offer.command} if offer.command else {"command": None, "why": offer.why},
        "facts": {name: _fact(fact) for name, fact in offer.facts.items()},
        "foreign": [setting._asdict() for setting in offer.outside],
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
    if offer.outside:
        yield ""
        yield from _outside(offer.outside)


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
    flags = facts["engine.flags"]
    yield _row("options", "unknown" if flags.value is UNKNOWN else f"{len(flags.value)}", flags)
    devices = facts["devices"]
    if devices.value is UNKNOWN or not devices.value:
        yield _row("devices", "unknown" if devices.value is UNKNOWN else "none", devices)
    for device in devices.value if devices.value is not UNKNOWN else ():
        yield "  " + _device(device)


def _version(facts: Facts) -> str:
    number = facts.get("engine.build")
    version, build = facts["engine.version"].value, number.value if number else UNKNOWN
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


def _outside(settings: list[OutsideSetting]) -> Iterator[str]:
    yield "set outside (a flag of the plan beats each of these)"
    for setting in settings:
        what = " ".join(part for part in (setting.option, setting.value) if part)
        yield f"  {what:35} {setting.source}{f' · {setting.why}' if setting.why else ''}"
