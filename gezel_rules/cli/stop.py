"""``gezel-rules stop [MODEL | --all]``: end running engines, orphans too."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TextIO

from gezel_rules import places
from gezel_rules.cli.arguments import session_of
from gezel_rules.errors import BadInput, EngineFailed, Refused
from gezel_rules.runtime.registry import Entry, halt, running


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("model", metavar="MODEL", nargs="?", help="model or id, as ps shows them")
    parser.add_argument("--all", action="store_true", help="every engine of this user")


def run(args: argparse.Namespace, out: TextIO | None = None) -> int:
    """Stop what was asked for. Raises Refused when nothing of the kind runs, EngineFailed when one does not end."""
    sink = out or sys.stdout
    chosen = _chosen(args.model, args.all, running(places.state_dir()))
    session = session_of(args)
    grace = session.rules(session.family()).stop_grace
    left = [entry for entry in chosen if not halt(entry, grace)]
    stopped = [entry for entry in chosen if entry not in left]
    if getattr(args, "json", False):
        sink.write(json.dumps({"stopped": [entry.id for entry in stopped]}) + "\n")
    else:
        sink.write("".join(f"stopped {entry.model} (pid {entry.pid})\n" for entry in stopped))
    if left:
        raise EngineFailed(f"still running: {', '.join(f'{entry.model} (pid {entry.pid})' for entry in left)}")
    return 0


def _chosen(name: str | None, everything: bool, entries: list[Entry]) -> list[Entry]:
    if everything and name is None:
        return entries
    if everything or (name is None and len(entries) > 1):
        raise BadInput("name one model, or --all")
    chosen = [entry for entry in entries if name in (None, entry.model, entry.id)]
    if not chosen:
        running_now = ", ".join(sorted({entry.model for entry in entries})) or "none"
        raise Refused(f"no engine runs {name or 'here'}; running: {running_now}")
    return chosen
