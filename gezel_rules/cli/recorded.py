"""A recorded launch in lines for people: when it was, and what its record says of decisions."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterator, Mapping
from typing import Any

from gezel_rules.cli.differences import said
from gezel_rules.decisions.explain import LEVELS
from gezel_rules.documents.source import did_you_mean
from gezel_rules.errors import BadInput
from gezel_rules.planner.compare import SAID_UNKNOWN
from gezel_rules.session.recorded import Recorded

Record = Mapping[str, Any]


def when(record: Record) -> str:
    """The day and time of a launch; empty for one that was never begun."""
    started = record.get("launch", {}).get("started")
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(started)) if started else ""


def launched(recorded: Recorded, same: bool) -> str:
    """Which launch this is, and whether it can be told in full."""
    record = recorded.record
    what = f"{record['model']}, launched {when(record)} (@{recorded.name})"
    if same:
        return f"{what}, by the policies here"
    return f"{what}, by policies that are not those here: this is what its record kept"


def only_of_plans(args: argparse.Namespace) -> None:
    """Raises BadInput for what a launch that was made can no longer be given."""
    given = [
        option for option, value in (("--host", args.host), ("--engine", args.engine), ("--set", args.set)) if value
    ]
    if given:
        raise BadInput(f"{given[0]}: {args.model} was launched already; ask for its model to plan another launch")


def kept_json(record: Record, subject: str) -> list[dict[str, Any]]:
    """The decisions that a SUBJECT means, as recorded."""
    return [{"name": name, **record["decisions"][name]} for name in _subjects(record, subject)]


def kept_lines(record: Record, subject: str) -> Iterator[str]:
    """The same in words: each flag with the decision it hands on."""
    tokens = {flag["decision"]: flag["tokens"] for flag in record.get("flags", ())}
    for number, name in enumerate(_subjects(record, subject)):
        if number:
            yield ""
        if name in tokens:
            yield " ".join(map(shlex.quote, tokens[name]))
        behind = record["decisions"].get(name, {}).get("passes_on") if name in tokens else None
        yield from _block(behind or name, record)


def _block(name: str, record: Record) -> Iterator[str]:
    found = record["decisions"].get(name)
    if found is None:
        yield f"  {name}: the record has no such decision"
        return
    value = SAID_UNKNOWN if found.get("unknown") else said(found["value"])
    if "source" not in found:
        yield f"  {name} = {value}      (a record of an older form, which kept no rules)"
        return
    rule = f"rule {found['rule']}" if found.get("rule") else "no rule"
    yield f"  {name} = {value}      {found['source']['file']}:{found['source']['line']} · {rule}"
    yield f"    because   {found.get('because', '')}"
    yield f"    level     {LEVELS.get(found.get('level', ''), found.get('level', ''))}"


def _subjects(record: Record, subject: str) -> list[str]:
    """A flag, a decision, or ``all``: every flag that was passed. Raises BadInput for one that is not there."""
    flags = {flag["tokens"][0]: flag["decision"] for flag in record.get("flags", ()) if flag["tokens"]}
    if subject == "all":
        return list(flags.values()) or list(record["decisions"])
    if subject in flags or subject in record["decisions"]:
        return [flags.get(subject, subject)]
    raise BadInput(
        f"no flag or decision '{subject}' in the record{did_you_mean(subject, [*flags, *record['decisions']])}"
    )
