"""Which of several cards a launch takes: none that would get no layer, and one alone where policy says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gezel_rules.engines.llama_cpp.memory.placement import Placement
from gezel_rules.engines.llama_cpp.memory.placement import Pool as MemoryPool
from gezel_rules.engines.pools import Pool
from gezel_rules.record import NamedTuple

ENDLESS = 1 << 62
"""Bytes of a pool whose size is unknown."""
BORROWED = "rpc"
"""The kind of a device that another machine lends."""


class OnCards(NamedTuple):
    """A placement, and the cards it is on, in the engine's order."""

    placement: Placement
    cards: tuple[Pool, ...]


def on_busy_cards(place: Callable[[tuple[Pool, ...]], Placement], cards: tuple[Pool, ...]) -> OnCards:
    """The placement on the cards that get a layer: one without any would only take compute buffers. Where what runs
    beside the model fits no other card, the card stays."""
    found = place(cards)
    while len(busy := _busy(found, cards)) < len(cards):
        fewer = place(busy)
        if found.fits and not fewer.fits:
            break
        found, cards = fewer, busy
    return OnCards(found, cards)


def _busy(found: Placement, cards: tuple[Pool, ...]) -> tuple[Pool, ...]:
    split = found.launch.tensor_split
    return tuple(card for card, share in zip(cards, split, strict=True) if share) if any(split) else cards


def largest(cards: Sequence[Pool]) -> Pool:
    """The card with most memory to give, the engine's first among equals: no engine tells how fast a card is, but of
    cards sold together the one with more memory is the faster."""
    return max(cards, key=lambda card: card.usable or 0)


def memory_pools(cards: Sequence[Pool], ram: Pool) -> list[MemoryPool]:
    """The pools that placement counts with. One whose size nobody knows is taken as endless: the engine's own fit
    decides then.

    A GPU that shares the RAM is a pool of its own here: it may take its share, and the RAM pool has the rest.
    A card that is full keeps one byte: layers are shared out by proportions, and those of nothing there are none.
    A borrowed card takes no weights over from this host (llama.cpp 0.6.0-dev: its backend offers no such copy).
    """
    devices = [
        MemoryPool(c.name, "device", ENDLESS if c.usable is None else max(1, c.usable), c.kind != BORROWED)
        for c in cards
    ]
    return [*devices, MemoryPool(ram.name, "ram", ENDLESS if ram.usable is None else ram.usable)]
