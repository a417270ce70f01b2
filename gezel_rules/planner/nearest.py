"""What would fit instead: a smaller window, a coarser cache, another quant, another model of the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.engine.words import say_bytes
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import Fact
from gezel_rules.planner.capacity import Capacity

if TYPE_CHECKING:
    from gezel_rules.catalog import Entry
    from gezel_rules.engine.decide import Trace


def nearest(capacity: Capacity, trace: Trace, entry: Entry | None, catalog: Path, facts: dict[str, Fact]) -> str:
    """In words, the nearest launch that fits this machine, or that the catalog has none."""
    return (
        _smaller(capacity, trace)
        or _other_entry(capacity, entry, catalog, facts)
        or "nothing in the catalog fits this machine"
    )


def _smaller(capacity: Capacity, trace: Trace) -> str | None:
    """The same file with less around it."""
    kv_types = capacity.policies.tables["kv_types"]
    for kv in [name for name, row in kv_types.items() if row["automatic"]]:
        window = _window(capacity, kv, trace.value("window.wanted"))
        if window:
            return f"a window of {window:,} tokens with a cache of {kv}, without drafter and projector"
    return None


def _window(capacity: Capacity, kv: str, wanted: int) -> int:
    modes = ("resident", "offloaded") if capacity.cards else ("cpu",)
    return max(capacity.window_that_fits(kv, wanted, "none", 0, mode) for mode in modes)


def _other_entry(capacity: Capacity, entry: Entry | None, catalog: Path, facts: dict[str, Fact]) -> str | None:
    """Another quant of the family, largest first; else the largest model that fits with the smallest window."""
    floor = int(capacity.policies.tables["windows"]["floor"]["tokens"])
    sized = sorted(_sized(catalog), key=lambda pair: -pair[0])
    family = entry.family if entry else None
    for same_family in (True, False):
        for size, other in sized:
            if (other.family == family) is not same_family or (entry and other.id == entry.id):
                continue
            if _fits(capacity, other, floor, facts):
                what = f"{other.quant} of it" if same_family else f"{other.name} {other.quant}"
                return f"{what}: {other.id}, {say_bytes(size)} of weights"
    return None


def _sized(catalog: Path) -> Iterator[tuple[int, Any]]:
    from gezel_rules.catalog.find import find, ids
    from gezel_rules.catalog.header import header_of

    for model in ids(catalog):
        try:
            entry = find(catalog, model)
            header = header_of(entry)
        except BadInput:
            continue  # a broken entry is no suggestion; 'catalog check' names it
        if header is not None:
            yield sum(tensor.nbytes for tensor in header.tensors), entry


def _fits(capacity: Capacity, other: Any, floor: int, facts: dict[str, Fact]) -> bool:
    from gezel_rules.catalog.header import header_of

    backend = facts["engine.backend"].value
    if any(excluded.backend == backend for excluded in other.excluded):
        return False
    header = header_of(other)
    return header is not None and _window(capacity.of(header), "f16", floor) >= floor
