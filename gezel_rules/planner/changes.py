"""Facts of a plan that may be otherwise for the same model: free memory, settings, and what is unknown today."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gezel_rules.decisions.words import say, say_bytes
from gezel_rules.engines.pools import SHARES_RAM, gpus, named_devices
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.planner.gather import SETTING, gpu_facts
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.facts.vocabulary import Word
    from gezel_rules.planner.plan import Plan

Facts = dict[str, Fact]
GIB = 1 << 30
MEMORY_STEP = GIB // 10
"""Bytes: the grid on which free memory is tried, as fine as explanations say it."""
TOKEN_STEP = 1024
"""Tokens: the same for windows."""
GROWS = 16
"""Up to how many times what there is a memory or a number is tried."""
NUMBERS = (0, 1, 32, 1 << 10, 1 << 17, 1 << 36)
"""What an unknown number is tried as: none, one, a common width of a head, and the sizes of windows and memories."""


class Change(NamedTuple):
    """``facts`` as they would be; ``fact`` is the one that is meant, and ``says`` the change in words."""

    fact: str
    facts: Facts
    says: str


class Scale(NamedTuple):
    """A number that may move by steps, from ``-down`` to ``up`` of them; ``at`` gives the change for a step."""

    down: int
    up: int
    at: Callable[[int], Change]


def memory(plan: Plan) -> Iterator[Scale]:
    """Free memory of the cards, as much on each (``gpu.free`` is their sum), and of the RAM."""
    yield from _free_on_cards(plan)
    yield from _free_ram(plan)


def numbers(plan: Plan, facts: Sequence[str]) -> Iterator[Scale]:
    """The numbers among the settings that ``facts`` names."""
    for word in _settings(plan, facts):
        if word.kind == "integer":
            yield from _number(plan, word)


def words(plan: Plan, facts: Sequence[str]) -> Iterator[Change]:
    """Every other word that the settings among ``facts`` may be, and none for one that is set."""
    for word in _settings(plan, facts):
        if word.kind in ("flag", "text"):
            today = plan.trace.facts[word.name].value
            yield from (_set(word, value) for value in (*possible(plan, word), None) if value != today)


def _settings(plan: Plan, facts: Sequence[str]) -> list[Word]:
    known = {word.name: word for word in plan.subject.family.vocabulary()}
    return [known[name] for name in facts if name in known and name.startswith(SETTING)]


def _free_on_cards(plan: Plan) -> Iterator[Scale]:
    facts = plan.trace.facts
    devices = facts["devices"].value
    cards = [] if devices is UNKNOWN else gpus(devices, named_devices(facts)).cards
    if cards and None not in [card.get(size) for card in cards for size in ("free_bytes", "total_bytes")]:
        least = min(card["free_bytes"] for card in cards)
        more = min(_room(card) for card in cards)
        yield Scale(least // MEMORY_STEP, more // MEMORY_STEP, lambda steps: _with_free(plan, cards, steps))


def _room(card: dict[str, Any]) -> int:
    """How much more of a card might be free: of one that shares the RAM, no more than it has."""
    if card["kind"] in SHARES_RAM:
        return max(0, int(card["total_bytes"]) - int(card["free_bytes"]))
    return GROWS * int(card["free_bytes"])


def _with_free(plan: Plan, cards: list[dict[str, Any]], steps: int) -> Change:
    """Each card with more or less of it free; one that would be more than full is a larger card."""
    more, names = steps * MEMORY_STEP, {card["name"] for card in cards}
    fact = plan.trace.facts["devices"]
    devices = [_larger(device, more) if device["name"] in names else device for device in fact.value]
    changed = fact._replace(value=devices)
    facts = {"devices": changed, **gpu_facts(changed, named_devices(plan.trace.facts))}
    shared = cards[0]["kind"] in SHARES_RAM
    if shared:
        facts |= _ram_beside(plan, more)
    grows = any(_larger(card, more)["total_bytes"] != card["total_bytes"] for card in cards)
    where = " on each card" if len(cards) > 1 else "" if shared else " on the card"
    return Change("gpu.free", facts, f"{_amount(more)} {'memory' if grows else 'free memory'}{where}")


def _larger(device: dict[str, Any], more: int) -> dict[str, Any]:
    free = max(0, device["free_bytes"] + more)
    return {**device, "free_bytes": free, "total_bytes": max(device["total_bytes"], free)}


def _ram_beside(plan: Plan, more: int) -> Facts:
    """The free RAM where a GPU shares it: it is the same memory."""
    free, total = plan.trace.facts["host.ram_free"], plan.trace.facts["host.ram_total"]
    if UNKNOWN in (free.value, total.value):
        return {}
    return {"host.ram_free": free._replace(value=min(total.value, max(0, free.value + more)))}


def _free_ram(plan: Plan) -> Iterator[Scale]:
    """The RAM, where no GPU shares it: what such a one has free is the same memory."""
    facts = plan.trace.facts
    free, devices = facts["host.ram_free"].value, facts["devices"].value
    shared = devices is UNKNOWN or any(device["kind"] in SHARES_RAM for device in devices)
    if free is not UNKNOWN and not shared:
        yield Scale(free // MEMORY_STEP, GROWS * free // MEMORY_STEP, lambda steps: _with_ram(plan, steps))


def _with_ram(plan: Plan, steps: int) -> Change:
    facts, more = plan.trace.facts, steps * MEMORY_STEP
    free, total = facts["host.ram_free"], facts["host.ram_total"]
    after = max(0, free.value + more)
    changed = {"host.ram_free": free._replace(value=after)}
    larger = total.value is not UNKNOWN and after > total.value
    if larger:
        changed["host.ram_total"] = total._replace(value=after)
    return Change("host.ram_free", changed, f"{_amount(more)} {'RAM' if larger else 'free RAM'}")


def _amount(more: int) -> str:
    return f"{say_bytes(abs(more))} {'more' if more > 0 else 'less'}"


def _number(plan: Plan, word: Word) -> Iterator[Scale]:
    """A setting, from what holds today: its own value, else that of the decision it would go before."""
    today = plan.trace.facts[word.name].value
    if today is None:
        today = next((value for value in _would_be(plan, word.name) if type(value) is int), None)
    if type(today) is int:
        step = TOKEN_STEP if word.unit == "tokens" and today > TOKEN_STEP else 1
        least = word.minimum or 0
        most = min(GROWS * max(today, 1), word.maximum or GROWS * max(today, 1))
        yield Scale((today - least) // step, (most - today) // step, lambda steps: _set(word, today + steps * step))


def _would_be(plan: Plan, setting: str) -> Iterator[Any]:
    for judgement in plan.trace.judgements.values():
        if any(rule.then == setting for rule in judgement.decision.rules):
            yield judgement.value


def _set(word: Word, value: Any) -> Change:
    name = word.name.removeprefix(SETTING)
    said = f"{name} left to the plan" if value is None else f"{name} = {say(value, word.unit)}"
    return Change(word.name, {word.name: Fact(value, "tried", "operator")}, said)


def possible(plan: Plan, word: Word) -> list[Any]:
    """Values that a fact of this type may have: all of a flag and of a word from a table, some of a number, of a list
    none and all; of other text nobody can tell."""
    rows = list(map(str, plan.trace.policies.tables[word.rows_of])) if word.rows_of else []
    if word.kind == "list":
        return [[], rows or [plan.trace.policies.decisions[name].flag for name in plan.trace.policies.flags]]
    of_kind: dict[str, list[Any]] = {"flag": [True, False], "integer": list(NUMBERS)}
    return of_kind.get(word.kind, rows)
