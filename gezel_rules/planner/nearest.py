"""What would fit instead: the file with less around it, another quant, another model. Each is planned, to prove it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gezel_rules.decisions.words import say, say_bytes
from gezel_rules.engines.llama_cpp.capacity import Capacity
from gezel_rules.errors import BadInput
from gezel_rules.planner.plan import Plan, make_plan, plan_with
from gezel_rules.record import NamedTuple

NOTHING = "nothing in the catalog fits this machine"


class Nearest(NamedTuple):
    """A launch that fits: in words, the model, and the settings to give (``None``: to drop) on top of the request's."""

    says: str
    model: str | None
    settings: dict[str, Any]


def nearest(plan: Plan) -> Nearest:
    """The nearest launch that this machine can hold, or that the catalog has none."""
    return _with_less(plan) or _other_entry(plan) or Nearest(NOTHING, None, {})


def _with_less(plan: Plan) -> Nearest | None:
    """The same file, one of policy's steps on top of the other."""
    settings: dict[str, Any] = {}
    last = plan
    for row in plan.trace.policies.tables["nearest_steps"].values():
        tried = settings | {row["setting"]: row.get("value")}
        after = plan_with(plan, tried)
        if after.argv == last.argv:
            continue
        settings, last = tried, after
        if not after.refused:
            return Nearest(f"{plan.subject.id} with {_said(settings)}", plan.subject.id, settings)
    return None


def _said(settings: dict[str, Any]) -> str:
    given = [f"{name}={value if isinstance(value, int) else say(value)}" for name, value in settings.items()
             if value is not None and not isinstance(value, bool)]  # fmt: skip
    given += [f"{name}={'on' if value else 'off'}" for name, value in settings.items() if isinstance(value, bool)]
    dropped = [f"{name} left to the plan" for name, value in settings.items() if value is None]
    return ", ".join([*dropped, *given])


def _other_entry(plan: Plan) -> Nearest | None:
    """Another quant of the family, largest first; else the largest model that fits."""
    entry = plan.subject.entry
    sized = sorted(_sized(plan), key=lambda pair: -pair[0])
    family = entry.family if entry else None
    for same_family in (True, False):
        for size, other in sized:
            if (other.family == family) is same_family and not (entry and other.id == entry.id) and _fits(plan, other):
                what = f"{other.quant} of it" if same_family else f"{other.name} {other.quant}"
                return Nearest(f"{what}: {other.id}, {say_bytes(size)} of weights", other.id, {})
    return None


def _sized(plan: Plan) -> Iterator[tuple[int, Any]]:
    from gezel_rules.catalog.find import find, ids
    from gezel_rules.engines.llama_cpp.described_header import header_of

    catalog = plan.request.places.catalog
    for model in ids(catalog):
        try:
            entry = find(catalog, model)
            header = header_of(entry)
        except BadInput:
            continue  # a broken entry is no suggestion; 'catalog check' names it
        if header is not None:
            yield sum(tensor.nbytes for tensor in header.tensors), entry


def _fits(plan: Plan, other: Any) -> bool:
    """Whether it might by its size, and does when planned."""
    from gezel_rules.engines.llama_cpp.described_header import header_of

    floor = int(plan.trace.policies.tables["windows"]["floor"]["tokens"])
    header = header_of(other)
    if header is None or _window(plan.capacity.of(header), floor) < floor:
        return False
    try:
        return not make_plan(plan.request._replace(model=other.id)).refused
    except BadInput:
        return False


def _window(capacity: Capacity, wanted: int) -> int:
    modes = ("resident", "offloaded") if capacity.cards else ("cpu",)
    finest = next(name for name, row in capacity.policies.tables["kv_types"].items() if row["automatic"])
    return max(capacity.window_that_fits(finest, wanted, "none", 0, mode) for mode in modes)
