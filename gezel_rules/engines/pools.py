"""The memory a launch may take: one pool per card, or one for unified memory, and one for the RAM."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gezel_rules.decisions.words import say_bytes
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.record import NamedTuple

MIB = 1 << 20
SHARES_RAM = ("unified", "integrated")
"""Kinds of devices whose memory is the machine's RAM."""
NO_GPUS = ("software",)
"""Kinds of devices that are the CPU under another name."""
UNSURE = "integrated"
"""How the memory of a device is counted of which no rule knows the kind: as the kind of which least may be taken."""
SAME_CARD = 0.05
"""How far two cards of one name may differ in total memory: drivers and error correction keep some of it."""
_BRACKETS = re.compile(r"\((?:[^()]|\([^()]*\))*\)")
_EVERY_CARDS = frozenset({"nvidia", "amd", "ati", "intel", "graphics", "gpu", "series"})


class PoolKind(NamedTuple):
    """A row of ``pool_kinds``: how much of a pool's total counts, and the MiB kept free for others."""

    share: float
    headroom_mib: int


class Pool(NamedTuple):
    """``usable``: bytes a launch may take; ``None`` when the machine does not say. ``why`` shows the sum."""

    name: str
    kind: str
    usable: int | None
    why: str


class Gpus(NamedTuple):
    """The devices that count as GPUs of a launch, as they were listed. ``unsure``: of some device nobody knows whether
    it shares the RAM, so that the engine is left to choose; ``seen_twice``: a card was listed by two backends."""

    cards: list[dict[str, Any]]
    unsure: bool = False
    seen_twice: bool = False

    @property
    def alike(self) -> bool:
        """Whether they are one kind of card: the same description, and the same memory."""
        totals = [card.get("total_bytes") or 0 for card in self.cards]
        kinds = {(card["kind"], card["description"]) for card in self.cards}
        return len(kinds) <= 1 and max(totals, default=0) * (1 - SAME_CARD) <= min(totals, default=0)


def gpus(devices: Any, named: Sequence[str] | None = None) -> Gpus:
    """The GPUs among the listed devices; with ``named``, those that somebody named, in that order.

    A card that two backends list counts once, for the first. A device that shares the RAM takes no part beside a card
    of its own memory, and of several such only those of the first backend do: engines choose so by themselves. Raises
    BadInput for a name that was not listed.
    """
    if named is not None:
        return Gpus(_named(devices or (), named))
    listed = [d for d in devices or () if d["kind"] not in NO_GPUS]
    once = _once(listed)
    cards = [d for d in once if d["kind"] in ("discrete", "rpc")]
    unsure = [d for d in once if d["kind"] is None]
    shared = [d for d in once if d["kind"] in SHARES_RAM]
    of_first = [d for d in shared if _backend(d) == _backend(shared[0])]
    found = cards or sorted(unsure, key=lambda d: -(d.get("total_bytes") or 0))[:1] or of_first
    return Gpus(found, bool(unsure) and len(once) > 1, len(once) < len(listed))


def _named(devices: Sequence[dict[str, Any]], named: Sequence[str]) -> list[dict[str, Any]]:
    by_name = {device["name"]: device for device in devices}
    names = [name for words in named for name in words.split(",")]
    for name in names:
        if name not in by_name:
            raise BadInput(f"devices: the engine lists no {name!a}; it lists {', '.join(by_name) or 'none'}")
    return [by_name[name] for name in dict.fromkeys(names)]


def _once(devices: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The devices without those that a backend listed before, as their names tell."""
    first: dict[str, str] = {}
    for device in devices:
        if device["kind"] != "rpc":
            first.setdefault(_card_name(device), _backend(device))
    return [d for d in devices if d["kind"] == "rpc" or first[_card_name(d)] == _backend(d)]


def _backend(device: Mapping[str, Any]) -> str:
    """The letters before its number."""
    return str(device["name"]).rstrip("0123456789")


def _card_name(device: Mapping[str, Any]) -> str:
    """A card's name as every backend would write it: without marks, the driver's words in brackets, and the maker."""
    bare = _BRACKETS.sub(" ", device["description"].casefold())
    return " ".join(word for word in bare.split() if word not in _EVERY_CARDS) or device["name"]


def device_pools(facts: Mapping[str, Fact], kinds: Mapping[str, PoolKind], held: Mapping[str, int]) -> tuple[Pool, ...]:
    """The pools of the cards the launch may take, in the engine's order."""
    devices = facts["devices"].value
    found = gpus(None if devices is UNKNOWN else devices, named_devices(facts))
    return tuple(
        _pool(d["name"], d["kind"] or UNSURE, d.get("total_bytes"), d.get("free_bytes"), kinds, held)
        for d in found.cards
    )


def named_devices(facts: Mapping[str, Fact]) -> Sequence[str] | None:
    """The devices that the operator named, in families where that can be set."""
    fact = facts.get("settings.devices")
    return fact.value if fact else None


def lessened(pool: Pool, share: float) -> Pool:
    """The pool with only a share of it counted on."""
    usable = None if pool.usable is None else int(pool.usable * share)
    return pool._replace(usable=usable, why=f"{share * 100:.2g}% of ({pool.why}), for it ran out of memory")


def ram_pool(
    facts: Mapping[str, Fact], kinds: Mapping[str, PoolKind], held: Mapping[str, int], cards: tuple[Pool, ...]
) -> Pool:
    """The pool of the RAM; where a GPU shares it, what that GPU's pool leaves."""
    total, free = facts["host.ram_total"].value, facts["host.ram_free"].value
    pool = _pool("host", "ram", _known(total), _known(free), kinds, held)
    shared = sum(card.usable or 0 for card in cards if card.kind in SHARES_RAM)
    if pool.usable is None or not shared:
        return pool
    return pool._replace(usable=max(0, pool.usable - shared), why=f"{pool.why}, − {say_bytes(shared)} the GPU's share")


def _known(value: Any) -> int | None:
    return None if value is UNKNOWN else value


def _pool(
    name: str, kind: str, total: int | None, free: int | None, kinds: Mapping[str, PoolKind], held: Mapping[str, int]
) -> Pool:
    """The smaller of what policy leaves of the total, and what is free now."""
    rule = kinds[kind]
    headroom, reserved = rule.headroom_mib * MIB, held.get(name, 0)
    if total is None:
        return Pool(name, kind, None, f"{name}: size unknown")
    budget = int(total * rule.share) - headroom - reserved
    usable = max(0, budget if free is None else min(budget, free - headroom))
    words = f"{name} {say_bytes(total)} × {rule.share:.0%} − {say_bytes(headroom)} headroom"
    words += f" − {say_bytes(reserved)} held by others" if reserved else ""
    words += f", {say_bytes(free)} free now" if free is not None else ""
    return Pool(name, kind, usable, words)
