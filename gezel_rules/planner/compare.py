"""Two decisions of one launch side by side: which flags differ, what that does, and which rule it comes from.

A difference is followed from the flag back through what each decision reads, to those that changed although nothing
they read did: there the rules, or tables of the set, are others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gezel_rules.engines import plain_functions
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.planner.report import explainer
from gezel_rules.planner.summary import summary
from gezel_rules.policy.model import behind
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.engines.protocol import Family
    from gezel_rules.planner.plan import Plan
    from gezel_rules.policy.model import Decision

SAID_UNKNOWN = "unknown"
REFUSAL, ENDPOINT = "refusal", "prompt.endpoint"
ORDER = "order of flags"
"""Stands for a decision where the same flags are passed one after the other in another order."""


class Ruling(NamedTuple):
    """The rule that gave a decision its value (``None``: no rule fired), where it stands, and its reason."""

    rule: str | None
    file: str
    line: int
    because: str


class Side(NamedTuple):
    """One way a launch was decided: tokens of flags by decision, values of decisions, the ``rulings`` behind them (none
    where a record has none), the launch in a few ``figures``, and bytes it takes of each pool."""

    flags: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Any]
    rulings: Mapping[str, Ruling]
    figures: Mapping[str, Any]
    memory: Mapping[str, int]


class Turn(NamedTuple):
    """A decision that fell another way of its own, by another rule or by the same that gives something else now:
    ``values`` then and now, and the rulings."""

    decision: str
    values: tuple[Any, Any]
    before: Ruling | None
    after: Ruling | None


class Change(NamedTuple):
    """One thing that differs: the ``decision`` of a flag, of the refusal, of the endpoint, or the ``ORDER`` of flags;
    what stood there and what stands there now (``None``: nothing); and the turns it comes from."""

    decision: str
    before: Any
    after: Any
    turns: tuple[Turn, ...]


class Difference(NamedTuple):
    """What differs between two sides of a launch; ``figures`` and ``memory``: name → both values."""

    changes: tuple[Change, ...]
    figures: Mapping[str, tuple[Any, Any]]
    memory: Mapping[str, tuple[int, int]]

    @property
    def empty(self) -> bool:
        """Whether it is the same launch."""
        return not self.changes and not self.memory


def side_of(plan: Plan) -> Side:
    """A plan as a side."""
    explain = explainer(plan)
    rulings = {
        name: Ruling(j.winner.rule.id if j.winner else None, j.decision.file,
                     j.winner.rule.line if j.winner else j.decision.line, "")
        for name, j in plan.trace.judgements.items()
    }  # fmt: skip
    return Side(
        {flag.decision: flag.tokens for flag in plan.flags},
        {name: plain(judgement.value) for name, judgement in plan.trace.judgements.items()},
        rulings,
        summary(plan, explain),
        {pool.name: pool.used for pool in plan.memory.pools if pool.used},
    )


def side_of_record(record: Mapping[str, Any]) -> Side:
    """A record as a side. One without flags (of format 1) has those that its decisions gave."""
    decisions, taken = record["decisions"], (record.get("memory") or {}).get("taken", ())
    rulings = {
        name: Ruling(said.get("rule"), said["source"]["file"], said["source"]["line"], said.get("because", ""))
        for name, said in decisions.items()
        if "source" in said
    }
    return Side(
        {flag["decision"]: tuple(flag["tokens"]) for flag in record.get("flags", ())},
        {name: SAID_UNKNOWN if said.get("unknown") else said["value"] for name, said in decisions.items()},
        rulings,
        record.get("summary") or {},
        {pool["pool"]: pool["bytes"] for pool in taken if pool["bytes"]},
    )


def plain(value: Any) -> Any:
    """A value as JSON gives it back; unknown is a word."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return SAID_UNKNOWN if value is UNKNOWN else value


def compare(before: Side, after: Side, reads: Reads) -> Difference:
    """What differs. ``reads`` knows what decisions rest on."""
    names = (*before.values, *(name for name in after.values if name not in before.values))
    moved = {name for name in names if before.values.get(name) != after.values.get(name)}

    def turn(name: str) -> Turn:
        values = before.values.get(name), after.values.get(name)
        return Turn(name, values, before.rulings.get(name), after.rulings.get(name))

    def turned(name: str) -> tuple[Turn, ...]:
        return tuple(map(turn, reads.origins(name, moved)))

    changes = [
        Change(name, before.flags.get(name), after.flags.get(name), turned(name)) for name in _flags(before, after)
    ]
    changes += [
        Change(name, before.values.get(name), after.values.get(name), turned(name))
        for name in (REFUSAL, ENDPOINT)
        if name in moved
    ]
    orders = _order(before, after), _order(after, before)
    changes += [Change(ORDER, *orders, ())] if orders[0] != orders[1] else []
    return Difference(
        tuple(changes), _unlike(before.figures, after.figures, None), _unlike(before.memory, after.memory, 0)
    )


def _order(side: Side, other: Side) -> tuple[str, ...]:
    """The flags that both pass, in the order of one."""
    return tuple(name for name in side.flags if name in other.flags)


def _flags(before: Side, after: Side) -> list[str]:
    return [name for name in {**before.flags, **after.flags} if before.flags.get(name) != after.flags.get(name)]


def _unlike(before: Mapping[str, Any], after: Mapping[str, Any], nothing: Any) -> dict[str, tuple[Any, Any]]:
    pairs = {name: (before.get(name, nothing), after.get(name, nothing)) for name in {**before, **after}}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


class Reads:
    """What the decisions of a set rest on: what their rules read, and, where they call the family's functions, what the
    family's code reads."""

    def __init__(self, decisions: Mapping[str, Decision], family: Family) -> None:
        self._decisions = decisions
        self._by_code = [name for name in family.needs().decisions if name in decisions]
        self._functions = [f"{name}(" for name in family.signatures() if name not in plain_functions.SIGNATURES]

    def origins(self, name: str, moved: Collection[str]) -> list[str]:
        """The decisions among those that ``moved`` where the change of this one began; itself, when nothing it rests on
        did."""
        found: dict[str, None] = {}
        seen: set[str] = set()
        self._follow(name, moved, seen, found)
        return list(found) or [name]

    def _follow(self, name: str, moved: Collection[str], seen: set[str], found: dict[str, None]) -> None:
        if name in seen:
            return
        seen.add(name)
        before = [other for other in self._rests_on(name) if other in moved]
        if not before and name in moved:
            found[name] = None
        for other in before:
            self._follow(other, moved, seen, found)

    def _rests_on(self, name: str) -> Iterator[str]:
        decision = self._decisions.get(name)
        if decision is None:
            return
        yield from (other for other in decision.reads if other in self._decisions)
        if self._asks_code(name):
            yield from (other for other in self._by_code if name not in behind([other], self._decisions))

    def _asks_code(self, name: str) -> bool:
        """Whether a decision calls functions of the family, which read tables and decisions that its rules do not."""
        decision = self._decisions.get(name)
        texts = _texts(decision) if decision else ()
        return any(function in text for text in texts for function in self._functions)


def _texts(decision: Decision) -> Iterable[str]:
    return (text for rule in decision.rules for text in (rule.when or "", rule.then))


def difference_json(found: Difference) -> dict[str, Any]:
    """What differs, as plain data."""
    return {
        "changes": [
            {"decision": change.decision, "before": _listed(change.before), "after": _listed(change.after),
             "because_of": [_turn_json(turn) for turn in change.turns]}
            for change in found.changes
        ],
        "figures": {name: {"before": before, "after": after} for name, (before, after) in found.figures.items()},
        "memory": {name: {"before": before, "after": after} for name, (before, after) in found.memory.items()},
    }  # fmt: skip


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _turn_json(turn: Turn) -> dict[str, Any]:
    """A turn as plain data."""
    return {
        "decision": turn.decision,
        "before": {"value": turn.values[0], **_ruling(turn.before)},
        "after": {"value": turn.values[1], **_ruling(turn.after)},
    }


def _ruling(ruling: Ruling | None) -> dict[str, Any]:
    if ruling is None:
        return {}
    source = {"file": ruling.file, "line": ruling.line}
    return {"rule": ruling.rule, "source": source, **({"because": ruling.because} if ruling.because else {})}
