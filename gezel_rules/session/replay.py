"""A recorded launch decided again: whether it would be the same, and what differs, by the rule behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gezel_rules.planner.compare import (
    Difference,
    Reads,
    Ruling,
    Turn,
    compare,
    difference_json,
    side_of,
    side_of_record,
)
from gezel_rules.planner.report import explainer
from gezel_rules.record import NamedTuple
from gezel_rules.session.recorded import Recorded, decided_again

if TYPE_CHECKING:
    from gezel_rules.planner.plan import Plan
    from gezel_rules.session.session import Session


class Replay(NamedTuple):
    """A record, the plan that is made of it now, and what differs. ``policies``: file → its version then and now, of
    those that have another (``None``: it was not there)."""

    recorded: Recorded
    plan: Plan
    difference: Difference
    policies: Mapping[str, tuple[str | None, str | None]]

    @property
    def same_policies(self) -> bool:
        """Whether it was decided by the very policies of then."""
        return bool(self.recorded.record["policy"]["digest"] == self.plan.trace.policies.digest)


def replay(session: Session, recorded: Recorded) -> Replay:
    """Decide a recorded launch again by the session's policies. Raises BadInput."""
    plan = decided_again(session, recorded)
    record = recorded.record
    before, after = side_of_record(record), side_of(plan)
    if "flags" not in record:  # of format 1: what its decisions gave
        before = before._replace(flags=_as_then(before.values, after.values, after.flags))
    reads = Reads(plan.trace.policies.decisions, plan.subject.family)
    return Replay(recorded, plan, _explained(compare(before, after, reads), plan), _versions(record, plan))


def _as_then(
    then: Mapping[str, Any], now: Mapping[str, Any], flags: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """The flags of a record that kept the values of decisions alone: those of now where the value is the same, else the
    value as it was."""
    names = [name for name in {**then, **flags} if name.startswith("flag.")]
    return {
        name: flags[name]
        if then.get(name) == now.get(name) and name in flags
        else (*flags.get(name, ())[:1], str(then[name]))
        for name in names
        if name in then and then[name] is not None and then[name] is not False
    }


def _explained(difference: Difference, plan: Plan) -> Difference:
    """With the reasons of today's rules."""
    explain = explainer(plan)

    def told(ruling: Ruling | None, name: str) -> Ruling | None:
        judgement = plan.trace.judgements.get(name)
        return ruling._replace(because=explain.because(judgement)) if ruling and judgement else ruling

    def turns(found: tuple[Turn, ...]) -> tuple[Turn, ...]:
        return tuple(turn._replace(after=told(turn.after, turn.decision)) for turn in found)

    return difference._replace(changes=tuple(c._replace(turns=turns(c.turns)) for c in difference.changes))


def _versions(record: Mapping[str, Any], plan: Plan) -> dict[str, tuple[str | None, str | None]]:
    then = {file["policy"]: file["version"] for file in record["policy"].get("files", ())}
    now = {file.policy: file.version for file in plan.trace.policies.files}
    both = {name: (then.get(name), now.get(name)) for name in sorted({*then, *now})} if then else {}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def replay_json(found: Replay) -> dict[str, Any]:
    """A replay as plain data."""
    record, policies = found.recorded.record, found.plan.trace.policies
    return {
        "id": found.recorded.name,
        "model": record["model"],
        "same": found.difference.empty,
        "policy": {"then": record["policy"]["digest"], "now": policies.digest},
        "versions": {name: {"then": then, "now": now} for name, (then, now) in found.policies.items()},
        **difference_json(found.difference),
    }
