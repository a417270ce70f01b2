"""What would fit instead: the file with less around it, another quant, another model. Each is planned, to prove it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gezel_rules.decisions.words import say, say_bytes
from gezel_rules.engines.family import NearestStep
from gezel_rules.errors import BadInput
from gezel_rules.planner.plan import Plan, make_plan, plan_with
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.catalog.records import Entry

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
    for row in plan.trace.policies.rows_if_any("nearest_steps", NearestStep).values():
        tried = settings | {row.setting: row.value}
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


def _sized(plan: Plan) -> Iterator[tuple[int, Entry]]:
    """Every entry of the same engine family whose weights are known, with their bytes."""
    from gezel_rules.catalog.find import ids

    known, family = plan.known, plan.subject.family
    for name in ids(plan.request.places.catalog):
        try:
            entry = known.entries.entry(name)
            model = known.entries.model(entry) if entry.engine == family.name else None
        except BadInput:
            continue  # a broken entry is no suggestion; 'catalog check' names it
        if model is not None:
            yield model.weights_bytes, entry


def _fits(plan: Plan, other: Entry) -> bool:
    """Whether it might by its size, and does when planned."""
    model = plan.known.entries.model(other)
    if model is None or not plan.fit.might_hold(model):
        return False
    try:
        return not make_plan(plan.request._replace(model=other.id)).refused
    except BadInput:
        return False
