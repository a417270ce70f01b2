"""``gezel-rules replay @ID|FILE``: a recorded launch decided again, and what differs, by the rule behind it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from gezel_rules.cli.arguments import session_of
from gezel_rules.cli.differences import change_lines, effect_lines
from gezel_rules.cli.recorded import when
from gezel_rules.cli.shown import json_text, tell
from gezel_rules.session.recorded import find_record, is_recorded
from gezel_rules.session.replay import Replay, replay, replay_json

DIGITS = 12
"""Of a digest, for people."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "record", metavar="@ID|FILE", help="a launch, as 'history' and 'ps' name it (@last: the latest), or its file"
    )


def run(args: argparse.Namespace) -> int:
    """Decide it again; 0 for the same launch, 1 for another. Raises BadInput."""
    session = session_of(args)
    found = replay(session, find_record(session, args.record))
    if args.json:
        print(json_text(replay_json(found)))
    else:
        tell(_text(found, args))
    return 0 if found.difference.empty else 1


def _text(found: Replay, args: argparse.Namespace) -> Iterator[str]:
    record, difference = found.recorded.record, found.difference
    named = f"@{found.recorded.name}" if is_recorded(args.record) else args.record
    yield f"{record['model']}, launched {when(record)} ({named})"
    yield f"  policies  {_policies(found)}"
    if difference.empty:
        yield f"  decided again: the same launch, all {len(found.plan.flags)} flags as they were"
        return
    yield "  decided again on the facts of then: another launch"
    yield from change_lines(difference.changes)
    yield ""
    yield from effect_lines(difference)


def _policies(found: Replay) -> str:
    then, now = found.recorded.record["policy"]["digest"], found.plan.trace.policies.digest
    if found.same_policies:
        return f"{now[:DIGITS]}, the very same"
    changed = [f"{name} {old or 'not there'} → {new or 'gone'}" for name, (old, new) in found.policies.items()]
    return f"{then[:DIGITS]} then, {now[:DIGITS]} now" + (f": {', '.join(changed)}" if changed else "")
