"""The memory a launch may take: one pool per card, or one for unified memory, and one for the RAM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gezel_rules.decisions.words import say_bytes
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.record import NamedTuple

MIB = 1 << 20
SHARES_RAM = ("unified", "integrated")
"""Kinds of devices whose memory is the machine's RAM."""


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


def gpus(devices: Any) -> list[dict[str, Any]]:
    """The devices that count as GPUs of this machine. One that shares the RAM takes no part beside a card of its own
    memory: the engine leaves it out then (llama.cpp 0.6.0-dev)."""
    cards = [d for d in devices or () if d["kind"] in ("discrete", "rpc")]
    return cards or [d for d in devices or () if d["kind"] in SHARES_RAM]


def device_pools(facts: Mapping[str, Fact], kinds: Mapping[str, PoolKind], held: Mapping[str, int]) -> tuple[Pool, ...]:
    """The pools of the cards the engine offers, in its order."""
    devices = facts["devices"].value
    return tuple(
        _pool(d["name"], d["kind"], d.get("total_bytes"), d.get("free_bytes"), kinds, held)
        for d in gpus(None if devices is UNKNOWN else devices)
    )


def lessened(pool: Pool, share: float) -> Pool:
    """The pool with only a share of it counted on."""
    usable = None if pool.usable is None else int(pool.usable * share)
    return pool._replace(usable=usable, why=f"{share:.0%} of ({pool.why}), for it ran out of memory")


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
