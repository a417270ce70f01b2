"""How a model is to be loaded, as far as memory depends on it: what policies decide of it, in one record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.decisions.decide import Trace


class Loading(NamedTuple):
    """How the model is to be loaded, as far as memory depends on it: KV type, window (tokens), slots, speculative type,
    bytes beside the model on the first device, placement mode. Policies' functions take them in this order."""

    kv: str
    window: int
    slots: int
    spec: str
    beside: int
    mode: str


DECIDED_BY = ("kv.type", "window.tokens", "slots.count", "spec.type", "memory.beside", "placement.mode")
"""The decisions a ``Loading`` consists of, in its order."""


def loading_of(trace: Trace) -> Loading:
    """The loading that was decided."""
    return Loading(*(trace.value(name) for name in DECIDED_BY))
