"""Past launches, and how well their memory was estimated: each pool's parts, planned and as the engine had them.

Records are read for what they are worth: whatever is not what it should be is as good as not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gezel_rules.record import NamedTuple
from gezel_rules.runtime.journal import records
from gezel_rules.runtime.state_files import seconds

if TYPE_CHECKING:
    from gezel_rules.session.session import Session

WHOLE = "all"
"""The part of a row that is a whole pool: where something stands beside the model, the engine's lines do not tell
apart what belongs to which."""
BESIDE = "drafter and projector"


class Measured(NamedTuple):
    """One part of a pool (weights, context, compute): bytes as planned, and as the engine has them."""

    pool: str
    part: str
    estimate: int
    actual: int

    @property
    def ratio(self) -> float | None:
        """What the engine took for each byte that was planned; ``None`` where none was."""
        return self.actual / self.estimate if self.estimate else None


class Drafts(NamedTuple):
    """Drafted tokens, and those of them that the model accepted."""

    accepted: int
    drafted: int


class Past(NamedTuple):
    """One launch. ``on``: the engine's kind, version and backend; ``ready`` and ``exit_status`` are ``None`` while
    nobody knows; ``failure``: the class of the start's failure, or of the death after it; times in seconds since 1970;
    ``policy``: the digest; ``recovery``: steps before it; ``figures``: the launch as its plan summed it up."""

    id: str
    model: str
    started: float
    on: tuple[str, str, str]
    ready: bool | None
    seconds: float | None
    failure: str | None
    ended: float | None
    exit_status: int | None
    policy: str
    figures: Mapping[str, Any]
    recovery: tuple[str, ...]
    memory: tuple[Measured, ...]
    drafts: Drafts | None

    @property
    def rate(self) -> float | None:
        """The share of drafted tokens that were accepted."""
        return self.drafts.accepted / self.drafts.drafted if self.drafts else None


class Sum(NamedTuple):
    """One part of a pool over several launches: bytes of all of them, and the ratio furthest from 1 with its launch."""

    pool: str
    part: str
    launches: int
    estimate: int
    actual: int
    worst: float
    worst_id: str


def history(session: Session, model: str | None = None) -> list[Past]:
    """Launches of the journal, oldest first; those of one model where it is named."""
    found = (_past(path.stem, data) for path, data in records(session.state))
    return [past for past in found if past is not None and model in (None, past.model)]


def sums(launches: Iterable[Past]) -> list[Sum]:
    """Estimate against actual, summed up part by part, devices first."""
    rows: dict[tuple[str, str], list[tuple[Measured, str]]] = {}
    for past in launches:
        for row in past.memory:
            if row.ratio is not None:
                rows.setdefault((row.pool, row.part), []).append((row, past.id))
    return [_sum(*key, found) for key, found in sorted(rows.items(), key=lambda item: item[0][0] == "host")]


def _sum(pool: str, part: str, found: list[tuple[Measured, str]]) -> Sum:
    worst, worst_id = max(((row.ratio or 0, name) for row, name in found), key=lambda pair: abs(pair[0] - 1))
    estimate, actual = (sum(getattr(row, of) for row, _ in found) for of in ("estimate", "actual"))
    return Sum(pool, part, len(found), estimate, actual, worst, worst_id)


def _past(name: str, data: Mapping[str, Any]) -> Past | None:
    """A launch from its record; ``None`` for what is none."""
    launch, outcome, ended = (_map(data.get(key)) for key in ("launch", "outcome", "ended"))
    model, started = _text(data.get("model") or launch.get("model")), seconds(launch.get("started"))
    if model is None or started is None:
        return None
    policy = data.get("policy")
    ready = outcome.get("ready")
    return Past(
        name, model, started, _engine(_map(data.get("facts"))), ready if isinstance(ready, bool) else None,
        seconds(outcome.get("seconds")), _text(_map(data.get("death")).get("failure") or outcome.get("failure")),
        seconds(ended.get("time")), _status(ended, outcome),
        _text(policy) or _text(_map(policy).get("digest")) or "", _map(data.get("summary")),
        tuple(step for step in _list(launch.get("recovery")) if isinstance(step, str)), tuple(measured(data)),
        _drafts(_map(_map(data.get("figures")).get("drafts"))),
    )  # fmt: skip


def measured(data: Mapping[str, Any]) -> list[Measured]:
    """The parts of each pool of which the record has both the plan's figure and the engine's own."""
    actual: dict[str, dict[str, int]] = {}
    for buffer in map(_map, _list(_map(data.get("figures")).get("buffers"))):
        pool, part, size = _text(buffer.get("pool")), _text(buffer.get("part")), _size(buffer.get("bytes"))
        if pool and part:
            parts = actual.setdefault(pool, {})
            parts[part] = parts.get(part, 0) + size
    rows: list[Measured] = []
    for pool_said in map(_map, _list(_map(data.get("memory")).get("taken"))):
        name = _text(pool_said.get("pool")) or ""
        planned = {part: _size(size) for part, size in _map(pool_said.get("parts")).items()}
        if name in actual and planned and not _tells_less(data, planned):
            rows += _rows(name, planned, actual[name])
    return rows


def _rows(pool: str, planned: Mapping[str, int], actual: Mapping[str, int]) -> list[Measured]:
    if planned.get(BESIDE):
        return [Measured(pool, WHOLE, sum(planned.values()), sum(actual.values()))]
    parts = [part for part in planned if part != BESIDE and (planned[part] or actual.get(part))]
    return [Measured(pool, part, planned[part], actual.get(part, 0)) for part in parts]


def _tells_less(data: Mapping[str, Any], planned: Mapping[str, int]) -> bool:
    """Whether a projector stands beside the model: of its weights no engine tells the size."""
    loads = _map(data.get("decisions")).get("vision.loads")
    return bool(planned.get(BESIDE)) and _map(loads).get("value") is True


def _engine(facts: Mapping[str, Any]) -> tuple[str, str, str]:
    kind, version, backend = (_text(_map(facts.get(f"engine.{of}")).get("value")) for of in _ENGINE)
    return kind or "", version or "", backend or ""


_ENGINE = ("kind", "version", "backend")


def _drafts(said: Mapping[str, Any]) -> Drafts | None:
    accepted, drafted = _size(said.get("accepted")), _size(said.get("drafted"))
    return Drafts(accepted, drafted) if drafted > 0 and accepted <= drafted else None


def _status(ended: Mapping[str, Any], outcome: Mapping[str, Any]) -> int | None:
    status = ended.get("exit_status", outcome.get("exit_status"))
    return status if isinstance(status, int) and not isinstance(status, bool) else None


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _size(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else 0


def past_json(past: Past) -> dict[str, Any]:
    """A launch as plain data."""
    memory = [{**row._asdict(), "ratio": row.ratio} for row in past.memory]
    drafts = {**past.drafts._asdict(), "rate": past.rate} if past.drafts else None
    return {
        **past._asdict(), "on": dict(zip(("engine", "version", "backend"), past.on, strict=True)),
        "recovery": list(past.recovery), "memory": [_named(row) for row in memory], "drafts": drafts,
    }  # fmt: skip


def sum_json(row: Sum) -> dict[str, Any]:
    """A sum as plain data."""
    worst = {"ratio": row.worst, "id": row.worst_id}
    kept = {"pool": row.pool, "part": row.part, "launches": row.launches}
    return {**kept, **_sizes(row.estimate, row.actual), "ratio": row.actual / row.estimate, "worst": worst}


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "pool": row["pool"], "part": row["part"], **_sizes(row["estimate"], row["actual"]), "ratio": row["ratio"],
    }  # fmt: skip


def _sizes(estimate: int, actual: int) -> dict[str, int]:
    return {"estimate_bytes": estimate, "actual_bytes": actual}
