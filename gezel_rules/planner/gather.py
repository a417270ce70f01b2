"""All facts of one plan, each with its source: host, engine build, settings, catalog entry, model, and the launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.engines.pools import SHARES_RAM, gpus, named_devices
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.facts.vocabulary import unknown_fact
from gezel_rules.planner.policies import LANGUAGES
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.engines.family import Program
    from gezel_rules.engines.protocol import Family
    from gezel_rules.policy.model import PolicySet

Facts = dict[str, Fact]
OF_THE_MACHINE = ("host", "gpu", "ram", "engine")
"""Areas of the vocabulary that a probe or a described host answers."""
SETTING = "settings."
CHECKED = ("backends", "processors", "device_prefixes")
"""Tables whose rows are the words a described host may use."""


class Machine(NamedTuple):
    """Where the launch is to run: a described host (``description``), or this machine with a program of the family
    (``None``: none was found)."""

    description: Path | None
    program: Program | None
    cache: Path | None
    environ: Mapping[str, str]


class Said(NamedTuple):
    """What the operator said: variables, site files (lowest first), and ``NAME=VALUE`` assignments."""

    environ: Mapping[str, str]
    sites: Sequence[Path]
    assignments: Sequence[str]


def is_memory(name: str) -> bool:
    """Whether a fact of the machine tells of its memory, which other programs take and give back."""
    return name == "devices" or name.startswith(("gpu.", "host.ram_"))


def setting_facts(family: Family, policies: PolicySet, said: Said, model: str) -> Facts:
    """The operator's settings by level. Raises BadInput for an unknown setting or a value of the wrong type; one that
    another family knows is left to that family."""
    from gezel_rules.facts.settings import SettingSpec, settings

    specs = {}
    for word in family.vocabulary():
        if word.name.startswith(SETTING):
            choices = tuple(map(str, policies.tables[word.rows_of])) if word.rows_of else None
            name = word.name.removeprefix(SETTING)
            specs[name] = SettingSpec(name, word.kind, choices, word.unit, word.minimum, word.maximum)
    return settings(specs, said.environ, said.sites, said.assignments, model, lambda: _of_others(family))


def _of_others(family: Family) -> dict[str, str]:
    """Settings of the other families: name → the family's label."""
    from gezel_rules.engines import registry

    others = [registry.family(name) for name in registry.names() if name != family.name]
    words = ((word.name, other.label) for other in others for word in other.vocabulary())
    return {name.removeprefix(SETTING): label for name, label in words if name.startswith(SETTING)}


def machine_facts(machine: Machine, family: Family, policies: PolicySet, settings: Facts) -> Facts:
    """Host, engine and devices: described, or probed. What nobody can tell is unknown, with what would settle it."""
    found = (
        _described(machine, family, policies) if machine.description else _probed(machine, family, policies, settings)
    )
    words = [word for word in family.vocabulary() if word.name.partition(".")[0] in OF_THE_MACHINE]
    facts = {word.name: found.get(word.name) or unknown_fact(word) for word in words}
    facts["devices"] = found.get("devices", Fact([], "no engine"))
    return facts | gpu_facts(found.get("devices"), named_devices(settings))


def _described(machine: Machine, family: Family, policies: PolicySet) -> Facts:
    """A described host. What it says of an engine of another family says nothing of this one's."""
    from gezel_rules.facts.described_host import load_host

    assert machine.description is not None
    found = load_host(machine.description, host_words(policies), machine.cache)
    theirs = found.pop("engine.family").value
    if theirs != family.name:
        return {name: fact for name, fact in found.items() if not name.startswith("engine.")}
    found["engine.flags"] = _spelled_out(found["engine.flags"], policies.tables.get("option_spellings", {}))
    return found


def host_words(policies: PolicySet) -> dict[str, Any]:
    """What a described host is held against."""
    known = {table: policies.tables[table] for table in CHECKED if table in policies.tables}
    return {**known, "engine_families": LANGUAGES}


def _spelled_out(flags: Fact, spellings: Mapping[str, Sequence[str]]) -> Fact:
    """A description lists an option under one of its names; a build knows it under all of them."""
    if flags.value is UNKNOWN:
        return flags
    listed = set(flags.value)
    rows = [{name, *others} for name, others in spellings.items()]
    return flags._replace(value=sorted(listed.union(*(row for row in rows if row & listed))))


def _probed(machine: Machine, family: Family, policies: PolicySet, settings: Facts) -> Facts:
    from gezel_rules.engines.family import Probe
    from gezel_rules.facts.host import host_facts

    facts = host_facts()
    if machine.program is None:
        return facts
    return facts | family.probe(Probe(machine.program, policies, machine.environ, machine.cache, settings))


def gpu_facts(devices: Fact | None, named: Sequence[str] | None) -> Facts:
    if devices is None or devices.value is UNKNOWN:
        return {}
    found = gpus(devices.value, named)
    cards = found.cards
    return {
        "gpu.count": Fact(len(cards), devices.source, "probe"),
        "gpu.total": _sum(cards, "total_bytes", devices.source),
        "gpu.free": _sum(cards, "free_bytes", devices.source),
        "gpu.names": Fact([f"{d['name']} {d['description']}" for d in cards], devices.source, "probe"),
        "gpu.devices": Fact([d["name"] for d in cards], devices.source, "probe"),
        "gpu.alike": Fact(found.alike, devices.source, "probe"),
        "gpu.unsure": Fact(found.unsure, devices.source, "probe"),
        "gpu.seen_twice": Fact(found.seen_twice, devices.source, "probe"),
        "gpu.shares_ram": Fact(any(d["kind"] in SHARES_RAM for d in cards), devices.source, "probe"),
    }


def _sum(cards: list[dict[str, Any]], key: str, source: str) -> Fact:
    sizes = [card.get(key) for card in cards]
    known = not any(size is None for size in sizes)
    return Fact(sum(size or 0 for size in sizes) if known else UNKNOWN, source, "probe")
