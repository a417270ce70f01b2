"""What the expressions of a set mean: types, unknown names, cycles, unreachable rules. All problems at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.errors import Problem
from gezel_rules.lang.check import Checked, Scope, check, not_a_flag, set_when
from gezel_rules.lang.parse import ExpressionError, below, dotted, parse, prefixes, reads
from gezel_rules.lang.parse import place as where
from gezel_rules.lang.sense import nonsense
from gezel_rules.lang.types import ANY, TEXT, Function, Type, join
from gezel_rules.policy.causes import blamed, home_of
from gezel_rules.policy.load import PLACEHOLDER, Draft, Drafts, Place
from gezel_rules.policy.model import CANDIDATE, Decision, Part, Rule
from gezel_rules.policy.reach import unreachable
from gezel_rules.policy.relations import check_relations, failure_classes, types_of

_FAILED = Type("any", optional=True)
_WORD = re.compile(r"'([^']*)'")


def check_drafts(drafts: Drafts, facts: Mapping[str, Type], functions: Mapping[str, Function]) -> dict[str, Decision]:
    """Type every decision in dependency order; problems go to ``drafts.problems``. Returns the checked decisions."""
    _require_free_names(drafts, facts)
    names = {name: _with_rows(type_, drafts) for name, type_ in facts.items()}
    known = {**failure_classes(drafts.logs), **drafts.tables}
    before = len(drafts.problems)
    check_relations(known, drafts.problems, drafts.broken)
    names |= types_of(drafts.tables)
    failed = drafts.broken | {
        name for source in drafts.sources for name in blamed(drafts.problems[before:], source.root)
    }
    scope = Scope(names, {name: _with_param_rows(function, drafts) for name, function in functions.items()})
    checked: dict[str, Decision] = {}
    trees: dict[str, ast.expr] = {}
    for name in _order(drafts, trees):
        before = len(drafts.problems)
        checker = _Checker(drafts.decisions[name], scope, drafts.problems, trees, failed)
        checker.home = partial(home_of, drafts)
        decision, names[name] = checker.run()
        if checker.doubtful or name in failed or len(drafts.problems) > before:
            failed.add(name)
            names[name] = _FAILED
        checked[name] = decision._replace(unit=decision.unit or names[name].unit)
    return checked


def _require_free_names(drafts: Drafts, facts: Mapping[str, Type]) -> None:
    tables = {name: ("table", table.node) for name, table in drafts.tables.items()}
    decisions = {name: ("decision", draft.node) for name, draft in drafts.decisions.items()}
    for name, (what, node) in {**tables, **decisions}.items():
        if name in facts:
            drafts.problems.append((node.key or node).problem(f"'{name}' is a fact; a {what} needs another name"))


def _with_param_rows(function: Function, drafts: Drafts) -> Function:
    return function._replace(params=tuple(_with_rows(param, drafts) for param in function.params))


def _with_rows(type_: Type, drafts: Drafts) -> Type:
    """A fact whose words are the rows of a table gets them from the set it is judged by."""
    if type_.item is not None and type_.item.rows_of:
        return type_._replace(item=_with_rows(type_.item, drafts))
    if not type_.rows_of:
        return type_
    if type_.rows_of not in drafts.tables:
        return type_  # said where somebody reads it
    return type_._replace(choices=frozenset(map(str, drafts.tables[type_.rows_of].rows)), rows_of="")


def _order(drafts: Drafts, trees: dict[str, ast.expr]) -> list[str]:
    """Decision names, each after those it reads; a cycle is a problem, and what depends on it is left out.

    ``trees`` receives what was parsed on the way, by text.

    Depth first without recursion: a chain of decisions may be as long as somebody likes.
    """
    needs = {name: _mentioned(draft, drafts.decisions, trees) for name, draft in drafts.decisions.items()}
    order: list[str] = []
    state: dict[str, str] = {}
    for start in drafts.decisions:
        path = {start: iter(needs[start])} if start not in state else {}
        while path:
            name = next(reversed(path))
            other = next((other for other in path[name] if state.get(other) != "placed"), None)
            if other is None:
                _leave(name, path, state, order)
            elif other in path:
                _complain_of_circle([*path][[*path].index(other) :], drafts)
                state[name] = "left out"
            elif state.get(other) == "left out":
                state[name] = "left out"
            else:
                path[other] = iter(needs[other])
    return order


def _leave(name: str, path: dict[str, Iterator[str]], state: dict[str, str], order: list[str]) -> None:
    """All that ``name`` reads has been seen: it is placed, or left out together with whoever reads it."""
    del path[name]
    if state.setdefault(name, "placed") == "placed":
        order.append(name)
    elif path:
        state[next(reversed(path))] = "left out"


def _complain_of_circle(circle: list[str], drafts: Drafts) -> None:
    node = drafts.decisions[circle[0]].node
    said = " → ".join((*circle, circle[0]))
    drafts.problems.append((node.key or node).problem(f"decisions depend on each other: {said}"))


def _mentioned(draft: Draft, decisions: Mapping[str, Draft], trees: dict[str, ast.expr]) -> list[str]:
    """Decisions whose names stand in any expression of the draft (unparsable ones are reported later)."""
    found: dict[str, None] = {}
    for text in _expressions(draft.decision):
        try:
            tree = trees[text] if text in trees else trees.setdefault(text, parse(text))
        except ExpressionError:
            continue
        found.update(dict.fromkeys(_names_of(tree, decisions)))
    return list(found)


def _names_of(tree: ast.expr, known: Collection[str]) -> Iterator[str]:
    """The known names in a tree that is not bound yet."""
    for node in below(tree):
        path = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        prefix = path and next((p for p in prefixes(path) if p in known), None)
        if prefix:
            yield prefix


def _expressions(decision: Decision) -> list[str]:
    texts = [decision.over] if decision.over else []
    for rule in decision.rules:
        texts += [text for text in (rule.when, rule.then if decision.hit != "search" else None) if text]
        texts += [part[0] for part in rule.because if isinstance(part, tuple)]
    return texts


class _Checker:
    """Checks one decision; keeps what it reads and the problems it finds.

    ``failed`` are tables and decisions with problems: the type of what reads them is anybody's guess, and nothing is
    said of it. ``doubtful``: the decision's own type is such a guess.
    """

    def __init__(
        self, draft: Draft, scope: Scope, problems: list[Problem], trees: dict[str, ast.expr], failed: set[str]
    ) -> None:
        self.draft, self.scope, self.problems, self.trees, self.failed = draft, scope, problems, trees, failed
        self.reads: dict[str, None] = {}
        self.conditions: list[ast.expr | None] = []
        self.doubtful = self.blind = False
        self.home: Callable[[str], Node | None] = lambda word: None

    def run(self) -> tuple[Decision, Type]:
        decision = self.draft.decision
        candidates = self._candidates() if decision.over else None
        words = _WORD.findall(" ".join(rule.when or "" for rule in decision.rules))
        self.scope = self.scope._replace(asked=frozenset(words))
        outer, rules, results = self.scope, [], []
        for rule, place in zip(decision.rules, self.draft.places, strict=True):
            checked, result = self._rule(rule, place, decision.hit == "search")
            rules.append(checked)
            results.append(result)
        self.scope = outer
        self._require_reachable(decision)
        read = tuple(name for name in self.reads if name != CANDIDATE)
        type_ = candidates._replace(optional=True) if candidates is not None else self._result(results)
        return decision._replace(rules=tuple(rules), reads=read), type_

    def _typed(self, text: str, node: Node, scope: Scope, at: int = 0) -> Checked:
        try:
            checked = check(text, scope, self.trees.pop(text, None))  # binding changes a tree: it serves once
        except ExpressionError as error:
            if error.given and (home := self.home(error.given)) is not None:
                self.problems.append(home.problem(error.message))
                return Checked(ast.Constant(None), _FAILED)
            unseen = self.blind and "none" in error.message  # a condition that could not be read may have asked
            if error.message.startswith("unknown") or not (unseen or self._reads_failed(text)):
                found = node.problem_within(error.message, at + error.offset, error.width)
                self.problems.append(found._replace(misses=error.misses))
            return Checked(ast.Constant(None), _FAILED)
        for name in reads(checked.tree):
            self.reads[name] = None
            if table := scope.names[name].rows_of:
                said = f"'{name}' needs a table '{table}', whose rows are its values"
                self.problems.append(node.problem(said)._replace(misses=table))
        return checked

    def _reads_failed(self, text: str) -> bool:
        try:
            return bool(self.failed) and any(_names_of(parse(text), self.failed))
        except ExpressionError:
            return False

    def _candidates(self) -> Type:
        decision, node = self.draft.decision, self.draft.over
        assert decision.over and node
        over = self._typed(decision.over, node, self.scope).type
        if over is _FAILED:
            self.doubtful, self.failed = True, self.failed | {CANDIDATE}
        if over.kind not in ("table", "list", "any"):
            self.problems.append(node.problem(f"'over' needs a table or a list, not {over}"))
        row = over.item or ANY
        named = {**(row.fields or {}), "name": TEXT._replace(choices=over.choices)}
        record = Type("record", fields=named) if over.kind == "table" else row
        self.scope = self.scope._replace(names={**self.scope.names, CANDIDATE: record})
        return TEXT._replace(choices=over.choices) if over.kind == "table" else row

    def _rule(self, rule: Rule, place: Place, searching: bool) -> tuple[Rule, Type]:
        """Check one rule; what its 'when' rules out is known to the rest of it, and to the rules below it."""
        scope = self.scope
        self.conditions.append(None)
        if rule.when is not None and place.when is not None:
            tree, when = self._typed(rule.when, place.when, scope)
            self.conditions[-1] = tree if when is not _FAILED else None
            self.blind = self.blind or when is _FAILED
            self.doubtful = self.doubtful or self.blind
            good = when is _FAILED or (when.kind in ("flag", "any") and not when.optional)
            if not good and not self._reads_failed(rule.when):
                self.problems.append(place.when.problem(not_a_flag(when, tree)))
            if good:
                for part, said in nonsense(tree):
                    self.problems.append(place.when.problem_within(said, *where(part)))
            scope = scope.given(set_when(tree, True))
            if self.draft.decision.hit in ("first", "search"):
                self.scope = self.scope.given(set_when(tree, False))
        result = _FAILED if searching else self._typed(rule.then, place.then, scope).type  # a verdict has no type
        self.doubtful = self.doubtful or (not searching and self._reads_failed(rule.then))
        return (rule._replace(because=self._because(rule, place.because, scope)) if place.because else rule), result

    def _because(self, rule: Rule, node: Node, scope: Scope) -> tuple[Part, ...]:
        parts: list[Part] = []
        places = PLACEHOLDER.finditer(str(node.value))
        for part in rule.because:
            if isinstance(part, str):
                parts.append(part)
                continue
            inside = next(places)
            at = inside.start(1) + len(inside[1]) - len(inside[1].lstrip())
            parts.append((part[0], self._typed(part[0], node, scope, at).type.unit))
        return tuple(parts)

    def _require_reachable(self, decision: Decision) -> None:
        if decision.name in self.failed:
            return
        for index, said in unreachable(decision, self.conditions):
            found = self.draft.places[index]
            self.problems.append((found.when or found.then).problem(said))

    def _require_words(self, results: list[Type]) -> None:
        """A word that a rule gives is one of those that the others pass on, where these are known."""
        rules = list(zip(self.draft.decision.rules, self.draft.places, results, strict=True))
        passed = [type_.choices for rule, _, type_ in rules if not rule.then.startswith("'") and type_.kind == "text"]
        if not passed or None in passed:
            return
        known = frozenset().union(*(choices for choices in passed if choices))
        for rule, place, type_ in rules:
            word = next(iter(type_.choices or ()), "")
            if rule.then == repr(word) and word not in known:
                hint = did_you_mean(word, known)
                self.problems.append(place.then.problem(f"'{word}' is not one of its values{hint}"))

    def _result(self, results: list[Type]) -> Type:
        decision = self.draft.decision
        result: Type | None = None
        for type_, place in zip(results, self.draft.places, strict=True):
            joined = type_ if result is None else join(result, type_)
            if joined is None and not self.doubtful:
                self.problems.append(place.then.problem(f"is {type_}, but the rules above give {result}"))
                return _FAILED
            if result is not None and result.unit and type_.unit and result.unit != type_.unit:
                said = f"is in {type_.unit}, but the rules above give {result.unit}"
                self.problems.append(place.then.problem(said))
                return _FAILED
            result = joined
        if self.doubtful:
            return _FAILED
        self._require_words(results)
        converted = any(sign in rule.then for rule in decision.rules for sign in "*/")  # bytes // 1048576 are MiB
        if decision.unit and result and result.unit and decision.unit != result.unit and not converted:
            self.problems.append(self.draft.node.value["unit"].problem(f"its rules give {result.unit}"))
        result = result or ANY
        if decision.hit == "collect":
            return Type("list", item=result)
        always = bool(decision.rules) and decision.rules[-1].when in (None, "True")
        unit = decision.unit or result.unit
        return result._replace(unit=unit, optional=result.optional or not always)
