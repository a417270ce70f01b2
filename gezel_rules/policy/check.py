"""What the expressions of a set mean: types, unknown names, cycles, unreachable rules. All problems at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gezel_rules.errors import Problem
from gezel_rules.lang.check import Checked, Scope, check
from gezel_rules.lang.parse import ExpressionError, dotted, parse, reads
from gezel_rules.lang.types import ANY, TEXT, Function, Type, join, table_type, type_of
from gezel_rules.policy.load import Draft, Drafts
from gezel_rules.policy.model import CANDIDATE, Decision, Part, Rule
from gezel_rules.source import Node

VERDICTS = frozenset(("accept", "reject"))
_FAILED = Type("any", optional=True)


def check_drafts(drafts: Drafts, facts: Mapping[str, Type], functions: Mapping[str, Function]) -> dict[str, Decision]:
    """Type every decision in dependency order; problems go to ``drafts.problems``. Returns the checked decisions."""
    names: dict[str, Type] = dict(facts)
    for name, (rows, node) in drafts.tables.items():
        if name in names:
            drafts.problems.append((node.key or node).problem(f"'{name}' is a fact; a table needs another name"))
        names[name] = table_type(rows) if isinstance(rows, dict) else type_of(rows)._replace(choices=None)
    checked: dict[str, Decision] = {}
    for name in _order(drafts, names):
        decision, type_ = _Checker(drafts.decisions[name], Scope(names, functions), drafts.problems).run()
        names[name] = type_
        checked[name] = decision._replace(unit=decision.unit or type_.unit)
    return checked


def _order(drafts: Drafts, names: Mapping[str, Type]) -> list[str]:
    """Decision names, each after those it reads; a cycle is a problem and its members are left out."""
    needs = {name: _mentioned(draft, drafts.decisions) for name, draft in drafts.decisions.items()}
    order: list[str] = []
    state: dict[str, int] = {}

    def visit(name: str, path: tuple[str, ...]) -> bool:
        if state.get(name) == 2:
            return True
        if name in path:
            circle = " → ".join((*path[path.index(name) :], name))
            node = drafts.decisions[name].node
            drafts.problems.append((node.key or node).problem(f"decisions depend on each other: {circle}"))
            state[name] = 3
            return False
        if state.get(name) == 3:
            return False
        good = not [other for other in needs[name] if not visit(other, (*path, name))]
        state[name] = 2 if good else 3
        if good:
            order.append(name)
        return good

    for name in drafts.decisions:
        visit(name, ())
    return order


def _mentioned(draft: Draft, decisions: Mapping[str, Draft]) -> list[str]:
    """Decisions whose names stand in any expression of the draft (unparsable ones are reported later)."""
    found: dict[str, None] = {}
    for text in _expressions(draft.decision):
        try:
            tree = parse(text)
        except ExpressionError:
            continue
        for path in _paths(tree):
            prefix = next((p for p in _prefixes(path) if p in decisions), None)
            if prefix is not None:
                found[prefix] = None
    return list(found)


def _paths(tree: Any) -> list[str]:
    import ast

    return [path for node in ast.walk(tree) if (path := dotted(node)) is not None]


def _prefixes(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:n]) for n in range(len(parts), 0, -1)]


def _expressions(decision: Decision) -> list[str]:
    texts = [decision.over] if decision.over else []
    for rule in decision.rules:
        texts += [text for text in (rule.when, rule.then if decision.hit != "search" else None) if text]
        texts += [part[0] for part in rule.because if isinstance(part, tuple)]
    return texts


class _Checker:
    """Checks one decision; keeps what it reads and the problems it finds."""

    def __init__(self, draft: Draft, scope: Scope, problems: list[Problem]) -> None:
        self.draft, self.scope, self.problems = draft, scope, problems
        self.reads: dict[str, None] = {}

    def run(self) -> tuple[Decision, Type]:
        decision = self.draft.decision
        candidates = self._candidates() if decision.over else None
        rules = tuple(self._rule(rule, index) for index, rule in enumerate(decision.rules))
        self._require_reachable(decision)
        result = self._result(candidates)
        read = tuple(name for name in self.reads if name != CANDIDATE)
        return decision._replace(rules=rules, reads=read), result

    def _typed(self, text: str, node: Node, at: int = 0) -> Type:
        try:
            checked: Checked = check(text, self.scope)
        except ExpressionError as complaint:
            self.problems.append(node.problem_within(complaint.message, at + complaint.offset, complaint.width))
            return _FAILED
        self.reads.update(dict.fromkeys(reads(checked.tree)))
        return checked.type

    def _candidates(self) -> Type:
        decision, node = self.draft.decision, self.draft.over
        assert decision.over and node
        over = self._typed(decision.over, node)
        if over.kind not in ("table", "list", "any"):
            self.problems.append(node.problem(f"'over' needs a table or a list, not {over}"))
        row = over.item or ANY
        named = {**(row.fields or {}), "name": TEXT._replace(choices=over.choices)}
        record = Type("record", fields=named) if over.kind == "table" else row
        self.scope = Scope({**self.scope.names, CANDIDATE: record}, self.scope.functions)
        return TEXT._replace(choices=over.choices) if over.kind == "table" else row

    def _rule(self, rule: Rule, index: int) -> Rule:
        place = self.draft.places[index]
        if rule.when is not None and place.when is not None:
            when = self._typed(rule.when, place.when)
            if when.kind not in ("flag", "any") or (when.optional and when is not _FAILED):
                self.problems.append(place.when.problem(f"'when' must be true or false, not {when}"))
        if place.because is None:
            return rule
        return rule._replace(because=self._because(rule, place.because))

    def _because(self, rule: Rule, node: Node) -> tuple[Part, ...]:
        parts: list[Part] = []
        for part in rule.because:
            if isinstance(part, str):
                parts.append(part)
                continue
            at = max(0, str(node.value).find("{" + part[0]) + 1)
            parts.append((part[0], self._typed(part[0], node, at).unit))
        return tuple(parts)

    def _require_reachable(self, decision: Decision) -> None:
        if decision.hit == "collect":
            return
        seen: dict[str | None, str] = {}
        for rule, place in zip(decision.rules, self.draft.places, strict=True):
            blocker = seen.get(None) or seen.get(rule.when)
            if blocker:
                node = place.when or place.then
                why = "always fires" if seen.get(None) else "has the same 'when'"
                self.problems.append(node.problem(f"rule '{rule.id}' is never reached: '{blocker}' before it {why}"))
            seen.setdefault(None if rule.when in (None, "True") else rule.when, rule.id)

    def _result(self, candidates: Type | None) -> Type:
        decision = self.draft.decision
        result: Type | None = None
        for rule, place in zip(decision.rules, self.draft.places, strict=True):
            if candidates is not None:
                self._require_verdict(rule, place.then)
                continue
            then = self._typed(rule.then, place.then)
            joined = then if result is None else join(result, then)
            if joined is None:
                self.problems.append(place.then.problem(f"is {then}, but the rules above give {result}"))
                return _FAILED
            result = joined
        if candidates is not None:
            return candidates._replace(optional=True)
        if decision.hit == "collect":
            return Type("list", item=result or ANY)
        result = result or ANY
        always = bool(decision.rules) and decision.rules[-1].when in (None, "True")
        unit = decision.unit or result.unit
        return result._replace(unit=unit, optional=result.optional or not always)

    def _require_verdict(self, rule: Rule, node: Node) -> None:
        if rule.then not in VERDICTS:
            self.problems.append(node.problem("under 'hit: search', 'then' is accept or reject"))
