"""What the rules of one decision do together: two that fire at once where one may, facts that none fires on, and rules
that others keep from ever deciding. Each is shown by a fact set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gezel_rules.author.witness import Case, Cases, cases, read_by
from gezel_rules.errors import Problem
from gezel_rules.lang.rebuild import rebuild
from gezel_rules.policy.language import Language
from gezel_rules.policy.load import Draft, Drafts
from gezel_rules.policy.model import CANDIDATE, STAND_DOWNS, Decision

MOST_UNIQUE, MOST_FIRST = 20_000, 2_000
"""Fact sets of one decision: enough for the rules people write, few enough for a check of a hundred decisions."""


class _Rules:
    """The rules of a decision that somebody wrote, with their conditions."""

    def __init__(self, decision: Decision, draft: Draft, known: set[str]) -> None:
        rules = zip(decision.rules, draft.places, strict=True)
        own = [(rule, place) for rule, place in rules if rule.id not in STAND_DOWNS]
        self.name = decision.name
        self.ids = [rule.id for rule, _ in own]
        self.nodes = [place.when or place.then for _, place in own]
        self.trees = [rebuild(rule.when, known) if rule.when is not None else None for rule, _ in own]

    def read(self, indexes: Sequence[int], names: Mapping[str, Any]) -> list[str]:
        """The facts and decisions that some of the rules read."""
        return list(dict.fromkeys(name for index in indexes for name in read_by(self.trees[index], names)))


def together(drafts: Drafts, decisions: Mapping[str, Decision], language: Language) -> Iterator[Problem]:
    """Everything of the kind, in a set that is otherwise in order."""
    tables = {name: table.rows for name, table in drafts.tables.items()}
    known = {*language.facts, *tables, *decisions, CANDIDATE}
    for name, decision in decisions.items():
        if decision.hit in ("first", "unique") and len(decision.rules) > 1:
            rules = _Rules(decision, drafts.decisions[name], known)
            most = MOST_UNIQUE if decision.hit == "unique" else MOST_FIRST
            found = cases(rules.trees, tables, language.facts, most)
            yield from _unique(rules, found, tables) if decision.hit == "unique" else _first(rules, found, tables)


def _unique(rules: _Rules, found: Cases, names: Mapping[str, Any]) -> Iterator[Problem]:
    both = next((case for case in found.found if sum(case.fires) > 1), None)
    if both is not None:
        one, other = [index for index, fires in enumerate(both.fires) if fires][:2]
        facts = both.said(rules.read((one, other), names))
        said = f"rules '{rules.ids[one]}' and '{rules.ids[other]}' of '{rules.name}' fire together{_where(facts)}"
        yield rules.nodes[other].problem(said)._replace(check="overlap")
    none = next((case for case in found.found if not any(case.fires)), None)
    if none is not None:
        facts = none.said(rules.read(range(len(rules.ids)), names))
        said = f"no rule of '{rules.name}' fires{_where(facts)}"
        yield rules.nodes[0].problem(said)._replace(check="gap")


def _first(rules: _Rules, found: Cases, names: Mapping[str, Any]) -> Iterator[Problem]:
    """Rules that fire on some facts, and decide on none."""
    if not found.exact or not found.found:
        return
    for index, name in enumerate(rules.ids):
        fired = [case for case in found.found if case.fires[index]]
        if fired and all(any(case.fires[:index]) for case in fired):
            facts = fired[0].said(rules.read((index,), names))
            why = f"a rule before it fires wherever it does ({_before(rules, fired[0], index)}{_where(facts)})"
            found_here = rules.nodes[index].problem(f"rule '{name}' of '{rules.name}' never decides: {why}")
            yield found_here._replace(check="never-decides")


def _before(rules: _Rules, case: Case, index: int) -> str:
    return f"'{rules.ids[case.fires[:index].index(True)]}'"


def _where(facts: str) -> str:
    return f" where {facts}" if facts else ""
