"""What the memory arithmetic rests on, and the same after the cards ran out of memory: less of each is counted on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gezel_rules.engines.family import MemoryUse
from gezel_rules.engines.llama_cpp.rows import Degradation
from gezel_rules.engines.pools import Pool, PoolKind, device_pools, lessened, ram_pool
from gezel_rules.facts.fact import Fact
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.gguf.records import Header
    from gezel_rules.policy.model import PolicySet


class Inputs(NamedTuple):
    """The model, the policies, the facts, and the pools of the machine (of the cards ``offered``, the launch may take
    ``cards``). ``steps_down``: how often the cards were lessened after they ran out of memory; ``share``: what is left
    of each since."""

    header: Header
    policies: PolicySet
    facts: Mapping[str, Fact]
    offered: tuple[Pool, ...]
    cards: tuple[Pool, ...]
    ram: Pool
    steps_down: int = 0
    share: float = 1.0


def exceeds(memory: MemoryUse, cards: tuple[Pool, ...], share: float = 1.0) -> bool:
    """Whether a launch takes more of some card than that share of it."""
    usable = {card.name: card.usable for card in cards if card.usable is not None}
    return any(pool.used > int(usable[pool.name] * share) for pool in memory.pools if pool.name in usable)


def less(inputs: Inputs, memory: MemoryUse) -> Inputs | None:
    """The same with less of each card, after a launch that took ``memory`` ran out: so many steps at once that it would
    not fit, since its cards have less than it took. ``None`` when policy has no step left, or no card's use is known.
    """
    rule = inputs.policies.row("degradation", "step", Degradation)
    if inputs.steps_down >= rule.most or rule.share >= 1 or not exceeds(memory, inputs.cards, 0):
        return None
    share = rule.share
    while not exceeds(memory, inputs.cards, share):
        share *= rule.share
    cards = tuple(lessened(card, share) for card in inputs.offered)
    steps, left = inputs.steps_down + 1, inputs.share * share
    return inputs._replace(offered=cards, cards=cards, steps_down=steps, share=left)


def measured(inputs: Inputs, facts: Mapping[str, Fact], held: Mapping[str, int]) -> Inputs:
    """The same on memory as it is now, by these facts and what other launches hold: of a card never more than was
    counted on before, so that what ran out of memory does not grow back."""
    kinds = inputs.policies.rows("pool_kinds", PoolKind)
    found = {card.name: card for card in device_pools(facts, kinds, held)}
    cards = tuple(_smaller(card, found.get(card.name), inputs.share) for card in inputs.offered)
    return inputs._replace(facts=facts, offered=cards, cards=cards, ram=ram_pool(facts, kinds, held, cards))


def _smaller(before: Pool, now: Pool | None, share: float) -> Pool:
    """What was counted of a card, or that share of what it says now where this is less."""
    if now is None or now.usable is None:
        return before
    if share < 1:
        now = lessened(now, share)
    return now if before.usable is None or (now.usable or 0) < before.usable else before
