"""Launches that failed and have not been answered: no later launch of that model on that engine build went well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from gezel_rules.record import NamedTuple
from gezel_rules.runtime import journal
from gezel_rules.runtime.state_files import each_json, seconds

INCIDENTS = "incidents"


class Failure(NamedTuple):
    """What failed alike: a model under an engine build (empty: nobody knows it), with a failure class or in words for
    an exit status; how often, when last (seconds since 1970), and what can be done."""

    model: str
    build: str
    what: str
    times: int
    last: float
    advice: str


def standing(state_dir: Path) -> list[Failure]:
    """The failures that still stand, one for each model, build and kind, the latest first."""
    found: dict[tuple[str, str, str], Failure] = {}
    good = _last_good_starts(state_dir)
    for _, incident in each_json(state_dir / INCIDENTS):
        model, build, when = (
            str(incident.get("model")),
            str(incident.get("build") or ""),
            seconds(incident.get("time")) or 0.0,
        )
        if when < _answered(good, model, build):
            continue
        what = str(incident.get("failure") or f"exit status {incident.get('exit_status')}")
        times = found[key].times if (key := (model, build, what)) in found else 0
        found[key] = Failure(*key, times + 1, when, str(incident.get("advice") or ""))
    return sorted(found.values(), key=lambda failure: -failure.last)


def _last_good_starts(state_dir: Path) -> dict[tuple[str, str], float]:
    """Model and build → when a launch that became ready was begun last."""
    found: dict[tuple[str, str], float] = {}
    for _, record in journal.records(state_dir):
        begun, outcome = record.get("launch"), record.get("outcome")
        if isinstance(begun, Mapping) and isinstance(outcome, Mapping) and outcome.get("ready") is True:
            key = str(begun.get("model")), str(begun.get("build") or "")
            found[key] = max(found.get(key, 0.0), seconds(begun.get("started")) or 0.0)
    return found


def _answered(good: Mapping[tuple[str, str], float], model: str, build: str) -> float:
    """When this model last started well on this build; a build that nobody wrote down may have been any."""
    starts: Iterable[float] = (
        when for (name, other), when in good.items() if name == model and (build == other or not (build and other))
    )
    return max(starts, default=0.0)
