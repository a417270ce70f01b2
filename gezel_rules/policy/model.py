"""What a policy set is: tables, decisions and their rules, each with its place. Plain data, no behaviour but lookup."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gezel_rules.policy.records import R, Rows, Tables, as_record
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    import ast

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
    precedence level it speaks for ("" = that of the fact it passes on); ``evidence`` where a figure comes from;
    ``layer`` the file that changed or added it ("": it stands in its decision's own).
    """

    id: str
    when: str | None
    then: str
    because: tuple[Part, ...]
    level: str
    evidence: Mapping[str, Any] | None
    line: int
    layer: str = ""


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
    """A file's identity as records carry it; ``engine`` is the family it is for ("": every one). Of a layer, ``policy``
    is its file too."""

    policy: str
    version: str
    file: str
    summary: str
    engine: str = ""

    @property
    def is_layer(self) -> bool:
        """Whether it is laid over the others."""
        return self.policy == self.file


def behind(
    goals: Iterable[str], decisions: Mapping[str, Decision], given: Container[str] = ()
) -> list[str]:  # fmt: skip
    """Decisions and all that their rules rest on, the nearest first; what is ``given`` rests on nothing and is left
    out."""
    found: dict[str, None] = {}
    todo = list(goals)
    for name in todo:  # which grows on the way
        if name in decisions and name not in found and name not in given:
            found[name] = None
            todo += decisions[name].reads
    return list(found)


class Beside(Protocol):
    """What lies beside a set: its log policies, and plain data that was worked out of the set before."""

    def log_sources(self) -> Sequence[Any]:
        """The log policies, read (``policy.sources.Source``). Raises BadInput with every problem of the YAML."""

    def derived(self, name: str, make: Callable[[], Any]) -> Any:
        """What was kept under a name; made, and kept, when there is nothing."""


class Judged(NamedTuple):
    """What judging takes of a set: ``decisions`` by name, each after those it reads; all ``names`` an expression may
    use; the decisions that are ``flags``, in the order of argv; the tables that decisions read (``lookups``)."""

    decisions: Mapping[str, Decision]
    names: frozenset[str]
    flags: tuple[str, ...]
    lookups: tuple[str, ...]


S = TypeVar("S")
T = TypeVar("T")
MOST_DONE = 256
"""Results of ``PolicySet.once`` that are kept: of a catalog of dozens of models all, of a larger one the last."""


class PolicySet:
    """Everything the engine needs: what is ``judged``, ``tables``, ``files`` and the set's digest.

    Trees of expressions are parsed once, on first use.
    """

    __slots__ = ("_done", "_judge", "_judged", "_reads", "_records", "_trees", "beside", "digest", "files", "tables")

    def __init__(
        self,
        judge: Callable[[], Judged],
        tables: Tables,
        files: tuple[PolicyFile, ...],
        digest: str,
        beside: Beside,
    ) -> None:
        """``judge`` gives the decisions when somebody asks for them: many commands read tables only."""
        self._judge, self.tables, self.files, self.digest, self.beside = judge, tables, files, digest, beside
        self._judged: Judged | None = None
        self._trees: dict[str, ast.expr] = {}
        self._reads: dict[str, tuple[str, ...]] = {}
        self._records: dict[tuple[str, type], Any] = {}
        self._done: dict[tuple[Any, int], tuple[Any, Any]] = {}

    @property
    def judged(self) -> Judged:
        """The decisions and what they need."""
        if self._judged is None:
            self._judged = self._judge()
        return self._judged

    @property
    def decisions(self) -> Mapping[str, Decision]:
        """The decisions by name, each after those it reads."""
        return self.judged.decisions

    @property
    def flags(self) -> tuple[str, ...]:
        """The decisions that are options of the engine, in the order of argv."""
        return self.judged.flags

    def changed(self, decision: Decision) -> PolicySet:
        """The same set with a decision in the place of the one of its name; what was parsed of the others serves."""
        decisions = {**self.decisions, decision.name: decision}
        other = PolicySet(lambda: self.judged._replace(decisions=decisions), self.tables, self.files, "", self.beside)
        other._trees = self._trees
        return other

    def rows(self, table: str, record: type[R]) -> Mapping[str, R]:
        """A table's rows by name, as records whose fields are columns."""
        found: Mapping[str, R] | None = self._records.get((table, record))
        if found is None:
            found = self._records[table, record] = Rows(self.tables, table, record)
        return found

    def rows_if_any(self, table: str, record: type[R]) -> Mapping[str, R]:
        """The same of a table that a set may do without: no rows then."""
        return self.rows(table, record) if table in self.tables else {}

    def row(self, table: str, name: str, record: type[R]) -> R:
        """One row. Raises KeyError for one that is not there: what code reads by name, it declares as a need."""
        return self.rows(table, record)[name]

    def listed(self, table: str, record: type[R]) -> tuple[R, ...]:
        """The rows of a table that is a list, in order."""
        return tuple(as_record(row, record) for row in self.tables[table])

    def unlisted(self, table: str, record: type[R]) -> R:
        """What holds for a row that a table does not have: every column at its default, or None."""
        return as_record(self.tables.defaults.get(table, {}), record)

    def once(self, work: Callable[[PolicySet, S], T], about: S) -> T:
        """What ``work`` makes of this set and something that never changes, such as a model: done once for each, as
        long as it is among the last ``MOST_DONE``."""
        key = work, id(about)
        if key not in self._done:
            if len(self._done) == MOST_DONE:
                del self._done[next(iter(self._done))]
            self._done[key] = about, work(self, about)  # what is kept alive keeps its id
        found: T = self._done[key][1]
        return found

    def tree(self, text: str) -> ast.expr:
        """The bound tree of an expression of this set (checked at load, so it parses)."""
        found = self._trees.get(text)
        if found is None:
            from gezel_rules.lang.rebuild import rebuild

            found = self._trees[text] = rebuild(text, self.judged.names)
        return found

    def reads(self, text: str) -> tuple[str, ...]:
        """The names an expression of this set reads, in order, each once."""
        found = self._reads.get(text)
        if found is None:
            found = self._reads[text] = tuple(dict.fromkeys(_names(self.tree(text))))
        return found


def _names(node: ast.AST) -> Iterator[str]:
    """Names below a node from left to right; the names of called functions are none."""
    import ast

    if isinstance(node, ast.Name):
        yield node.id
    elif not isinstance(node, ast.Constant):
        for child in node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node):
            yield from _names(child)
