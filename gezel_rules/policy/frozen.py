"""A compiled set as bytes, and back: what everybody reads comes first, then decisions, then a line for each table.

JSON under a checksum: a copy of what the files say, never a source. Decisions and tables are read when somebody asks.
"""

from __future__ import annotations

import json
from typing import Any

from gezel_rules.checksum import SIZE, checksum
from gezel_rules.policy.model import Beside, Decision, PolicyFile, PolicySet, Rule
from gezel_rules.policy.records import Tables

FORMAT = 6


def freeze(policies: PolicySet) -> bytes:
    """The set as bytes that ``thaw`` reads back."""
    head = [
        policies.digest, policies.files, list(policies.tables), policies.tables.defaults, policies.flags,
        policies.lookups, sorted(policies.names),
    ]  # fmt: skip
    decisions = dumped(list(policies.decisions.values()))
    return summed(b"\n".join([dumped(head), decisions, *policies.tables.lines.values()]))


def thaw(data: bytes, beside: Beside) -> PolicySet | None:
    """The set of such bytes; ``None`` when they are cut short, changed or of another make."""
    body = checked(data)
    if body is None:
        return None
    try:
        head, decisions, *lines = body.split(b"\n")
        digest, files, names_of_tables, defaults, flags, lookups, names = json.loads(head)
        tables = Tables(dict(zip(names_of_tables, lines, strict=True)), defaults)
        return PolicySet(
            lambda: {row[0]: _decision(row) for row in json.loads(decisions)}, tables,
            tuple(PolicyFile(*file) for file in files), digest, frozenset(names), tuple(flags), tuple(lookups), beside,
        )  # fmt: skip
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def dumped(value: Any) -> bytes:
    """Plain data as JSON on one line."""
    return json.dumps(value, separators=(",", ":")).encode()


def summed(body: bytes) -> bytes:
    """A body with its checksum before it."""
    return checksum([body]) + body


def checked(data: bytes) -> bytes | None:
    """The body behind a checksum that is right."""
    body = data[SIZE:]
    return body if checksum([body]) == data[:SIZE] else None


def _decision(row: list[Any]) -> Decision:
    name, says, hit, over, flag, unit, rules, policy, file, line, reads = row
    return Decision(
        name, says, hit, over, flag, unit, tuple(_rule(rule) for rule in rules), policy, file, line, tuple(reads)
    )


def _rule(row: list[Any]) -> Rule:
    id_, when, then, because, level, evidence, line = row
    parts = tuple(part if isinstance(part, str) else (part[0], part[1]) for part in because)
    return Rule(id_, when, then, parts, level, evidence, line)
