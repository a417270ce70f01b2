"""What a policy set is: tables, decisions and their rules, each with its place. Plain data, no behaviour but lookup."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from gezel_rules.lang.rebuild import rebuild
from gezel_rules.record import NamedTuple

Part = str | tuple[str, str]
"""A piece of a "because": plain words, or (expression, unit)."""

HIT_POLICIES = ("first", "unique", "collect", "search")
STAND_DOWNS = ("unknown-to-this-build", "operator-passes-it")
"""Ids of the rules that every flag has without their being written."""
WHATEVER = "*"
"""The ``flag`` of a decision whose value is a list of arguments passed as they are."""
CANDIDATE = "candidate"
"""The name under which the rules of a ``search`` see the row they judge."""


class Rule(NamedTuple):
    """One line of judgement: ``when`` (``None``: always) decides whether it fires, ``then`` gives the value.

    Under ``search``, ``then`` is ``'accept'`` or ``'reject'``. ``because`` is a template for people; ``level`` the
    precedence level it speaks for ("" = that of the fact it passes on); ``evidence`` where a figure comes from.
    """

    id: str
    when: str | None
    then: str
    because: tuple[Part, ...]
    level: str
    evidence: Mapping[str, Any] | None
    line: int


class Decision(NamedTuple):
    """A named question: how its rules are combined (``hit``), in which file, under which policy and version.

    ``over`` is the expression of the candidates of a ``search``; ``flag`` the engine option this decision becomes;
    ``unit`` how people read its value; ``reads`` the facts, tables and decisions it depends on.
    """

    name: str
    says: str
    hit: str
    over: str | None
    flag: str | None
    unit: str
    rules: tuple[Rule, ...]
    policy: str
    file: str
    line: int
    reads: tuple[str, ...] = ()


class PolicyFile(NamedTuple):
    """A file's identity as records carry it."""

    policy: str
    version: str
    file: str
    summary: str


class PolicySet:
    """Everything the engine needs: ``decisions`` in dependency order, ``tables``, ``files`` and the set's digest.

    ``names`` are all names an expression may use; trees are parsed once, on first use.
    """

    __slots__ = ("_reads", "_trees", "decisions", "digest", "files", "flags", "names", "tables")

    def __init__(
        self,
        decisions: Mapping[str, Decision],
        tables: Mapping[str, Any],
        files: tuple[PolicyFile, ...],
        digest: str,
        names: frozenset[str],
        flags: tuple[str, ...],
    ) -> None:
        self.decisions, self.tables, self.files = decisions, tables, files
        self.digest, self.names, self.flags = digest, names, flags
        self._trees: dict[str, ast.expr] = {}
        self._reads: dict[str, tuple[str, ...]] = {}

    def tree(self, text: str) -> ast.expr:
        """The bound tree of an expression of this set (checked at load, so it parses)."""
        found = self._trees.get(text)
        if found is None:
            found = self._trees[text] = rebuild(text, self.names)
        return found

    def reads(self, text: str) -> tuple[str, ...]:
        """The names an expression of this set reads, in order, each once."""
        found = self._reads.get(text)
        if found is None:
            found = self._reads[text] = tuple(dict.fromkeys(_names(self.tree(text))))
        return found


def _names(node: ast.AST) -> Iterator[str]:
    """Names below a node from left to right; the names of called functions are none."""
    if isinstance(node, ast.Name):
        yield node.id
    elif not isinstance(node, ast.Constant):
        for child in node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node):
            yield from _names(child)
