"""The catalog as somebody looks it through: what there is, what runs here, what is installed."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gezel_rules.errors import BadInput, GezelError
from gezel_rules.record import NamedTuple
from gezel_rules.session.session import Conditions, Session


class Listed(NamedTuple):
    """One entry. ``runs_here``: whether a launch would be planned, ``None`` when nobody can tell; ``why`` it would not;
    ``weights_bytes``: ``None`` when nobody knows."""

    model: str
    name: str
    family: str
    quant: str
    summary: str
    weights_bytes: int | None
    runs_here: bool | None
    why: str
    installed: bool


def listing(session: Session, host: str | None = None, named: Collection[str] = ()) -> Iterator[Listed]:
    """Every entry by id, or those ``named``; judged for this machine and the engine found, or for a described host. An
    entry that is broken is listed as one that does not run. Raises BadInput."""
    from gezel_rules.catalog import find, ids

    for model in named or ids(session.catalog):
        try:
            entry = find(session.catalog, model)
        except BadInput as error:
            if model in named:
                raise
            yield Listed(model, "", "", "?", "", None, False, str(error), session.on_shelf(model) is not None)
            continue
        here = session.on_shelf(model) is not None
        size, runs, why = _planned(session, model, host)
        if runs is False and entry.header is None and not here:
            runs = None  # nothing is known of it yet
        yield Listed(model, entry.name, entry.family, entry.quant, entry.summary, size, runs, why, here)


def _planned(session: Session, model: str, host: str | None) -> tuple[int | None, bool | None, str]:
    """Bytes of weights, whether a plan is made, and why not."""
    try:
        plan = session.plan(model, Conditions(host=host))
    except BadInput as error:
        return None, False, str(error)
    except GezelError as error:
        return None, None, str(error)
    size = plan.subject.model.weights_bytes
    if plan.program is None and host is None:
        return size, None, "no engine found"
    if not plan.refused:
        return size, True, ""
    from gezel_rules.planner.report import explainer

    return size, False, explainer(plan).because(plan.trace.judgements["refusal"])
