"""Policies as data for reading: a decision or table with its place, version, what it reads and who reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gezel_rules.author.check import Library
from gezel_rules.author.checks import CHECKS
from gezel_rules.author.listing import KINDS, listing
from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.errors import BadInput
from gezel_rules.policy.cells import Column
from gezel_rules.policy.layers import Change, changes
from gezel_rules.policy.load import Draft, Drafts
from gezel_rules.policy.model import CANDIDATE, Decision, PolicyFile, Rule
from gezel_rules.policy.tables import TableDraft

Entry = dict[str, Any]


class Index:
    """Everything a name can mean in a library: a decision, a flag in any spelling, a table, a policy file, a fact, a
    function, a check, or a kind of them.

    ``facts`` and ``functions`` are what the policies may read and call, as data, by name (see ``listing``).
    """

    def __init__(self, library: Library, facts: Mapping[str, Entry], functions: Mapping[str, Entry]) -> None:
        self.drafts: Drafts = library.drafts
        self.decisions = library.decisions
        self.facts, self.functions = facts, functions
        self._changes = [change for layer in self.drafts.layers for change in changes(layer)]
        self._flags = {
            draft.decision.flag: name for name, draft in self.drafts.decisions.items() if draft.decision.flag
        }

    def overview(self) -> list[Entry]:
        """Every policy file with its decisions and tables, each with what it says."""
        return [self._file(file.policy) for file in self.drafts.files]

    def find(self, name: str) -> Entry:
        """What a name means. Raises BadInput for one that means nothing."""
        wanted = self._flags.get(self._spelled_out(name), name)
        if wanted in self.decisions:
            return self._decision(self.drafts.decisions[wanted])
        if wanted in self.drafts.tables:
            return self._table(wanted)
        if wanted in self.facts:
            return {"kind": "fact", **self.facts[wanted], "read_by": self.readers(wanted)}
        if any(file.policy == wanted for file in self.drafts.files):
            return self._file(wanted)
        if (area := self.area(wanted))["facts"]:
            return area
        if name in CHECKS:
            return {"kind": "check", "name": name, **CHECKS[name]._asdict()}
        if (called := name.removesuffix("()")) in self.functions:  # with brackets, where a check has the same name
            return {"kind": "function", **self.functions[called]}
        if name in KINDS:
            return listing(name, self)
        raise BadInput(
            f"no decision, flag, table, policy, fact, function or check '{name}'{did_you_mean(name, self._known())}"
        )

    def area(self, name: str) -> Entry:
        """The facts whose names begin with the area's."""
        return {
            "kind": "area", "name": name,
            "facts": [entry for fact, entry in self.facts.items() if fact.startswith(f"{name}.")],
        }  # fmt: skip

    def _known(self) -> list[str]:
        files = [file.policy for file in self.drafts.files]
        return [
            *self.decisions,
            *self.drafts.tables,
            *self._flags,
            *self.facts,
            *self.functions,
            *files,
            *CHECKS,
            *KINDS,
        ]

    def _spelled_out(self, name: str) -> str:
        """The spelling of a flag that a decision has, of all the spellings of one option."""
        table = self.drafts.tables.get("option_spellings")
        for option, others in table.rows.items() if table else ():
            alike = (option, *others)
            if name in alike:
                return next((spelling for spelling in alike if spelling in self._flags), name)
        return name

    def readers(self, name: str) -> list[str]:
        """The decisions that read a name."""
        return [other for other, decision in self.decisions.items() if name in decision.reads]

    def _version(self, policy: str) -> str:
        return next(file.version for file in self.drafts.files if file.policy == policy)

    def _file(self, policy: str) -> Entry:
        file = next(file for file in self.drafts.files if file.policy == policy)
        if file.is_layer:
            return self._layer(file)
        decisions = [draft.decision for draft in self.drafts.decisions.values() if draft.decision.policy == policy]
        tables = [name for name, table in self.drafts.tables.items() if table.node.text.name == file.file]
        return {
            "kind": "policy", "name": policy, "version": file.version, "file": file.file, "summary": file.summary,
            "decisions": [{"name": d.name, "says": d.says, **({"flag": d.flag} if d.flag else {})} for d in decisions],
            "tables": [_summed(name, self.drafts.tables[name]) for name in tables],
        }  # fmt: skip

    def _layer(self, file: PolicyFile) -> Entry:
        return {
            "kind": "layer", "name": file.policy, "version": file.version, "file": file.file, "summary": file.summary,
            "changes": [_changed(change) for change in self._changes if change.file == file.file],
        }  # fmt: skip

    def _laid_over(self, name: str) -> Entry:
        """What layers change in a decision or table; nothing where none does."""
        found = [_changed(change) for change in self._changes if change.name == name]
        return {"changes": found} if found else {}

    def _decision(self, draft: Draft) -> Entry:
        decision = self.decisions[draft.decision.name]
        return {
            "kind": "decision", "name": decision.name, "says": decision.says, "policy": decision.policy,
            "version": self._version(decision.policy), "source": {"file": decision.file, "line": decision.line},
            "flag": decision.flag, "unit": decision.unit or None, "hit": decision.hit, "over": decision.over,
            "rules": [_rule(rule, decision) for rule in decision.rules],
            "reads": {name: self._kind(name) for name in decision.reads if name != CANDIDATE},
            "read_by": self.readers(decision.name), **self._laid_over(decision.name),
        }  # fmt: skip

    def _kind(self, name: str) -> str:
        if name in self.decisions:
            return "decision"
        return "table" if name in self.drafts.tables else "fact"

    def _table(self, name: str) -> Entry:
        table = self.drafts.tables[name]
        file = next(file for file in self.drafts.files if file.file == table.node.text.name)
        return {
            "kind": "table", "name": name, "policy": file.policy, "version": file.version,
            "source": {"file": file.file, "line": _line(table.node)}, **_declared(table),
            "rows": table.rows, "read_by": self.readers(name), **self._laid_over(name),
        }  # fmt: skip


def _changed(change: Change) -> Entry:
    return {"name": change.name, "what": change.what, "source": {"file": change.file, "line": change.line}}


def _summed(name: str, table: TableDraft) -> Entry:
    says = {"says": table.declared.says} if table.declared else {}
    return {"name": name, "rows": len(table.rows), **says}


def _declared(table: TableDraft) -> Entry:
    """What a declared table says of itself; nothing of a plain one."""
    if table.declared is None:
        return {}
    columns = {name: _column(column) for name, column in table.declared.columns.items()}
    of = {"of": _column(table.declared.of)} if table.declared.of else {}
    return {"says": table.declared.says, "columns": columns, **of}


def _column(column: Column) -> Entry:
    """What a column holds, without what does not apply to it."""
    plain = {
        "says": column.says, "holds": column.said, "unit": column.unit, "optional": column.optional,
        "default": column.default, "minimum": column.minimum, "maximum": column.maximum,
    }  # fmt: skip
    return {
        key: value for key, value in plain.items() if value not in (None, "") and (key, value) != ("optional", False)
    }


def _line(node: Node) -> int:
    return (node.key or node).line


def _rule(rule: Rule, decision: Decision) -> Entry:
    """A rule as data; a place of its own where it is written out."""
    because = "".join(part if isinstance(part, str) else "{" + part[0] + "}" for part in rule.because)
    return {
        "id": rule.id, "when": _one_line(rule.when), "then": _one_line(rule.then), "because": because or None,
        "level": rule.level or None, "evidence": dict(rule.evidence) if rule.evidence else None,
        "source": {"file": rule.layer or decision.file, "line": rule.line},
    }  # fmt: skip


def _one_line(text: str | None) -> str | None:
    return " ".join(text.split()) if text is not None else None
