"""Two sets of policies held against each other over every launch they might decide: catalog × described hosts, and the
launches that were made. What changes is grouped by the edit that changes it.

Sets that are equal in effect are told from each other without a single plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.author.edits import FLAGS, TABLE, Edit, Sided, edits
from gezel_rules.catalog import ids
from gezel_rules.engines import registry
from gezel_rules.errors import BadInput, Problem
from gezel_rules.facts.printable import printable
from gezel_rules.planner.compare import (
    REFUSAL,
    Change,
    Difference,
    Reads,
    Side,
    Turn,
    compare,
    difference_json,
    side_of,
)
from gezel_rules.planner.plan import plan_under
from gezel_rules.record import NamedTuple
from gezel_rules.session.processes import mapped
from gezel_rules.session.recorded import MARK, Recorded, all_recorded, decided_again
from gezel_rules.session.revisions import Folder, policies_of
from gezel_rules.session.session import Conditions, Session

if TYPE_CHECKING:
    from gezel_rules.planner.plan import Plan

NOWHERE = Path("no-such-directory")
NO_PLAN = "cannot be planned"


class Case(NamedTuple):
    """A launch to be decided twice: a catalog id on a described host, or a recorded one (``on`` is ``@ID`` then)."""

    model: str
    on: str


class Changed(NamedTuple):
    """A launch that changes, how, and the edits that do it."""

    case: Case
    difference: Difference
    because_of: tuple[Edit, ...]


class PolicyDiff(NamedTuple):
    """``before`` and ``after``: what the sides are called; the ``edits`` that may matter; how many models and hosts
    there are, launches were planned and recorded ones decided again (none without edits); those that change."""

    before: str
    after: str
    edits: tuple[Edit, ...]
    models: int
    hosts: int
    planned: int
    recorded: int
    changed: tuple[Changed, ...]


def policy_diff(session: Session, before: str, after: str | None = None) -> PolicyDiff:
    """Compare two folders or git revisions; ``after`` left out: the session's own policies. Raises BadInput for sides
    that are neither, and with every problem of policies that do not load."""
    with ExitStack() as folders:
        left = folders.enter_context(policies_of(before, session.policies))
        right = (
            folders.enter_context(policies_of(after, session.policies))
            if after is not None
            else Folder(session.policies, str(session.policies))
        )
        return _compared(session, left, right)


def _compared(session: Session, left: Folder, right: Folder) -> PolicyDiff:
    bare = _bare(session)
    sides = bare._replace(policies=left.path), bare._replace(policies=right.path)
    found = {name: _edits(name, sides, (left.called, right.called)) for name in registry.names()}
    every = tuple(dict.fromkeys(edit for edits_of_one in found.values() for edit in edits_of_one))
    models, hosts = list(ids(session.catalog)), _hosts(session.catalog)
    kept = list(all_recorded(session))
    if not every:
        return PolicyDiff(left.called, right.called, (), len(models), len(hosts), 0, 0, ())
    both = Sides(*sides, found)
    planned = mapped(partial(_of_model, both, hosts), models)
    replayed = mapped(partial(_of_record, both), kept)
    changed = [each for of_one in (*planned, *replayed) for each in of_one]
    cases = len(models) * len(hosts)
    return PolicyDiff(left.called, right.called, every, len(models), len(hosts), cases, len(kept), tuple(changed))


def _bare(session: Session) -> Session:
    """The session without what is of this machine or user: variables, site files, installed models, leases."""
    return session._replace(environ={}, sites=(), store=NOWHERE / "store", state=NOWHERE / "state")


def _hosts(catalog: Path) -> list[str]:
    return sorted(path.stem for path in (catalog / "hosts").glob("*.yaml"))


def _edits(family: str, sides: Sequence[Session], called: Sequence[str]) -> list[Edit]:
    """What the two sets of a family differ in; a digest that is the same needs no look. A family of another package
    that one side has no policies for is no difference."""
    sets, failures = [], []
    for side, name in zip(sides, called, strict=True):
        try:
            sets.append(Sided(side.policies_for(side.family(family)), side.policies))
        except BadInput as error:
            failures.append(BadInput(_of_side(each, name) for each in error.problems))
    if failures and (sets or family in registry.FAMILIES):
        raise failures[0]
    if failures or sets[0].policies.digest == sets[1].policies.digest:
        return []
    return edits(*sets)


def _of_side(problem: Problem, called: str) -> Problem:
    return problem._replace(message=f"{problem.message} (of {printable(called)})")


class Sides(NamedTuple):
    """Both sessions, and the edits of each engine family."""

    before: Session
    after: Session
    found: Mapping[str, Sequence[Edit]]

    def again(self, plan: Plan) -> Plan | None:
        """A plan of the first side by the second, where both have the same tables: what was worked out once stands;
        ``None`` where they have not."""
        family = plan.subject.family
        if any(edit.kind == TABLE for edit in self.found[family.name]):
            return None
        return plan_under(plan, self.after.policies_for(family))


def _of_model(sides: Sides, hosts: Sequence[str], model: str) -> list[Changed]:
    """The launches of one model that change, on every host."""
    return [changed for host in hosts for changed in _changed(Case(model, host), sides, partial(_plan, model, host))]


def _plan(model: str, host: str, side: Session) -> Plan:
    return side.plan(model, Conditions(host=host))


def _of_record(sides: Sides, kept: Recorded) -> list[Changed]:
    """A recorded launch, if it changes."""
    return list(
        _changed(Case(kept.record["model"], f"{MARK}{kept.name}"), sides, lambda side: decided_again(side, kept))
    )


def _changed(case: Case, sides: Sides, make: Callable[[Session], Plan]) -> Iterator[Changed]:
    before, first = _decided(lambda: make(sides.before))
    after, plan = _decided(lambda: (first and sides.again(first)) or make(sides.after))
    if before == after:
        return
    if plan is None:
        every = tuple(edit for of_one in sides.found.values() for edit in of_one)
        yield Changed(case, _no_plan(before, after), every)
        return
    family = plan.subject.family
    difference = compare(before, after, Reads(plan.trace.policies.decisions, family))
    if not difference.empty:
        yield Changed(case, difference, causes(difference, plan, sides.found[family.name]))


def _decided(make: Callable[[], Plan]) -> tuple[Side, Plan | None]:
    """A launch as one side decides it; one that cannot be planned is refused with the reason."""
    try:
        plan = make()
        return side_of(plan), plan
    except BadInput as error:
        return Side({}, {REFUSAL: f"{NO_PLAN}: {error}"}, {}, {}, {}), None


def _no_plan(before: Side, after: Side) -> Difference:
    return Difference((Change(REFUSAL, before.values.get(REFUSAL), after.values.get(REFUSAL), ()),), {}, {})


def causes(difference: Difference, plan: Plan, found: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits a difference comes from: of the decisions where it begins, else of tables their rules read, else of
    what the family's code reads."""
    turns = dict.fromkeys(turn.decision for change in difference.changes for turn in change.turns)
    by_name = {turn.decision: turn for change in difference.changes for turn in change.turns}
    named = [edit for name in turns for edit in _of_turn(by_name[name], plan, found)]
    return tuple(dict.fromkeys(named or _by_code(plan, found)))


def _of_turn(turn: Turn, plan: Plan, found: Sequence[Edit]) -> list[Edit]:
    own = [edit for edit in found if edit.kind != TABLE and edit.name == turn.decision]
    rules = {ruling.rule for ruling in (turn.before, turn.after) if ruling is not None}
    if narrow := [edit for edit in own if edit.part in rules] or own:
        return narrow
    decision = plan.trace.policies.decisions.get(turn.decision)
    read = [edit for edit in found if edit.kind == TABLE and decision and edit.name in decision.reads]
    return read or _by_code(plan, found)


def _by_code(plan: Plan, found: Sequence[Edit]) -> list[Edit]:
    """Edits of tables that no rule reads, which leaves the family's code; else all of them."""
    read = {name for decision in plan.trace.policies.decisions.values() for name in decision.reads}
    unread = [edit for edit in found if edit.kind == TABLE and edit.name not in read]
    return unread or [edit for edit in found if edit.kind == FLAGS] or list(found)


def groups(found: PolicyDiff) -> dict[tuple[Edit, ...], list[Changed]]:
    """The launches that change by the edits that do it, those with most launches first."""
    together: dict[tuple[Edit, ...], list[Changed]] = {}
    for changed in found.changed:
        together.setdefault(changed.because_of, []).append(changed)
    return dict(sorted(together.items(), key=lambda group: -len(group[1])))


def diff_json(found: PolicyDiff) -> dict[str, Any]:
    """The comparison as plain data."""
    return {
        "before": found.before,
        "after": found.after,
        "edits": [edit_json(edit) for edit in found.edits],
        "models": found.models,
        "hosts": found.hosts,
        "planned": found.planned,
        "recorded": found.recorded,
        "changed": len(found.changed),
        "groups": [
            {
                "because_of": [edit_json(edit) for edit in because_of],
                "launches": [{**each.case._asdict(), **difference_json(each.difference)} for each in launches],
            }
            for because_of, launches in groups(found).items()
        ],
    }


def edit_json(edit: Edit) -> dict[str, Any]:
    """An edit as plain data."""
    places = {side: place and place._asdict() for side, place in (("before", edit.before), ("after", edit.after))}
    return {"kind": edit.kind, "name": edit.name, "part": edit.part or None, "what": edit.what, **places}
