"""A compiled set as bytes, and back: what everybody reads comes first, then decisions, then a line for each table.

JSON under a CRC-32, which finds damage and proves nothing more: whoever may write here is believed for owning the file.
It is a copy of what the files say, never a source. Decisions and tables are read when somebody asks.
"""

from __future__ import annotations

import json
from typing import Any
from zlib import crc32

from gezel_rules.policy.model import Beside, Decision, Judged, PolicyFile, PolicySet, Rule
from gezel_rules.policy.records import Tables

FORMAT = 9
CRC_SIZE = 4  # bytes


def freeze(policies: PolicySet) -> bytes:
    """The set as bytes that ``thaw`` reads back."""
    decisions, names, flags, lookups = policies.judged
    head = [policies.digest, policies.files, list(policies.tables), policies.tables.defaults]
    judged = [list(decisions.values()), sorted(names), flags, lookups]
    return summed(b"\n".join([dumped(head), dumped(judged), *policies.tables.lines.values()]))


def thaw(data: bytes, beside: Beside) -> PolicySet | None:
    """The set of such bytes; ``None`` when they are cut short, changed or of another make."""
    body = checked(data)
    if body is None:
        return None
    try:
        head, judged, *lines = body.split(b"\n")
        digest, files, names_of_tables, defaults = json.loads(head)
        tables = Tables(dict(zip(names_of_tables, lines, strict=True)), defaults)
        return PolicySet(
            lambda: _judged(judged), tables, tuple(PolicyFile(*file) for file in files), digest, beside
        )  # fmt: skip
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _judged(line: bytes) -> Judged:
    decisions, names, flags, lookups = json.loads(line)
    return Judged({row[0]: _decision(row) for row in decisions}, frozenset(names), tuple(flags), tuple(lookups))


def dumped(value: Any) -> bytes:
    """Plain data as JSON on one line."""
    return json.dumps(value, separators=(",", ":")).encode()


def summed(body: bytes) -> bytes:
    """A body with its CRC-32 before it."""
    return crc32(body).to_bytes(CRC_SIZE, "big") + body


def checked(data: bytes) -> bytes | None:
    """The body behind a CRC-32 that is right."""
    body = data[CRC_SIZE:]
    return body if crc32(body).to_bytes(CRC_SIZE, "big") == data[:CRC_SIZE] else None


def _decision(row: list[Any]) -> Decision:
    name, says, hit, over, flag, unit, rules, policy, file, line, reads = row
    return Decision(
        name, says, hit, over, flag, unit, tuple(_rule(rule) for rule in rules), policy, file, line, tuple(reads)
    )


def _rule(row: list[Any]) -> Rule:
    id_, when, then, because, level, evidence, line, layer = row
    parts = tuple(part if isinstance(part, str) else (part[0], part[1]) for part in because)
    return Rule(id_, when, then, parts, level, evidence, line, layer)
