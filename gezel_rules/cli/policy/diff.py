"""``gezel-rules policy diff A [B]`` as people read it: what changes by which edit, as text or as a page."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from gezel_rules.author.diff_page import Row, Section, Table, page
from gezel_rules.author.edits import FLAGS, RULE, TABLE, Edit
from gezel_rules.cli.arguments import session_of
from gezel_rules.cli.differences import changed, figure
from gezel_rules.cli.shown import count, json_text, tell, write_page
from gezel_rules.decisions.words import say_bytes
from gezel_rules.planner.compare import Change
from gezel_rules.session.policy_diff import Changed, PolicyDiff, diff_json, groups, policy_diff
from gezel_rules.session.recorded import is_recorded

SHOWN = 12
"""Launches of one table that the text shows; JSON and the page have all of them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action's own arguments."""
    parser.add_argument("before", metavar="A", help="a folder, or a git revision of the policies")
    parser.add_argument("after", metavar="B", nargs="?", help="another one (default: the policies as they are)")
    parser.add_argument("--html", metavar="FILE", help="write one page that needs nothing else")


def run(args: argparse.Namespace) -> int:
    """Compare and show; 0 whatever changes. Raises BadInput."""
    found = policy_diff(session_of(args), args.before, *([args.after] if args.after else []))
    if args.html:
        write_page(Path(args.html), page(summary(found), sections(found)))
    if args.json:
        print(json_text(diff_json(found)))
    else:
        tell(_text(found))
    return 0


def summary(found: PolicyDiff) -> str:
    """One line: how much changes, of how much."""
    sides = f"{found.before} → {found.after}"
    if not found.edits:
        return f"{sides}: no rule and no table differs in what it does, so no launch changes"
    both_ways = f"{count(found.planned, 'launch', 'launches')} of the catalog and {found.recorded} recorded"
    if not found.changed:
        return f"{sides}: no launch changes ({both_ways}, decided both ways)"
    recorded = [each for each in found.changed if is_recorded(each.case.on)]
    planned = [each.case for each in found.changed if not is_recorded(each.case.on)]
    models, hosts = len({case.model for case in planned}), len({case.on for case in planned})
    said = [f"{len(planned)} of {count(found.planned, 'launch', 'launches')} change"]
    if planned:
        said.append(f"{models} of {count(found.models, 'model')}, on {hosts} of {count(found.hosts, 'host')}")
    if found.recorded:
        said.append(f"{len(recorded)} of {count(found.recorded, 'recorded launch', 'recorded launches')}")
    return f"{sides}: {'; '.join(said)}"


def sections(found: PolicyDiff) -> list[Section]:
    """What changes, by the edits that do it."""
    return [
        Section(tuple(map(said_edit, because_of)), tuple(_tables(launches)))
        for because_of, launches in groups(found).items()
    ]


def said_edit(edit: Edit) -> str:
    """``rule f16 of kv.finest, changed: policies/kv/kv.yaml:108``."""
    if edit.kind == FLAGS:
        return "the order of flags"
    name = f"{edit.kind} {edit.name}" if not edit.part else f"{_PARTS[edit.kind]} {edit.part} of {edit.name}"
    places = dict.fromkeys(str(place) for place in (edit.before, edit.after) if place is not None)
    return f"{name}, {edit.what}: {' → '.join(places)}"


_PARTS = {RULE: "rule", TABLE: "row"}


def _tables(launches: Sequence[Changed]) -> Iterator[Table]:
    """Launches by the decisions that change; a change that all of a table share is said once."""
    alike: dict[tuple[str, ...], list[Changed]] = {}
    for launch in launches:
        alike.setdefault(tuple(change.decision for change in launch.difference.changes), []).append(launch)
    for together in sorted(alike.values(), key=len, reverse=True):
        said = [[changed(change) for change in launch.difference.changes] for launch in together]
        shared = [each for each in said[0] if all(each in other for other in said)]
        options = [_option(change) for change in together[0].difference.changes if changed(change) not in shared]
        title = ", ".join([*shared, *options]) or "the same flags, other memory"
        rows = [_row(launch, [each for each in own if each not in shared])
                for launch, own in zip(together, said, strict=True)]  # fmt: skip
        yield Table(title, tuple(rows))


def _option(change: Change) -> str:
    """The flag alone, where each launch has a value of its own."""
    tokens = change.after or change.before
    return str(tokens[0]) if isinstance(tokens, tuple) else change.decision


def _row(launch: Changed, own: Sequence[str]) -> Row:
    difference = launch.difference
    memory = [f"{pool} {say_bytes(before)} → {say_bytes(after)}" for pool, (before, after) in difference.memory.items()]
    restated = {(_last(change.before), _last(change.after)) for change in difference.changes}
    effects = [
        f"{name} {figure(before)} → {figure(after)}"
        for name, (before, after) in difference.figures.items()
        if (str(before), str(after)) not in restated
    ]
    return Row(launch.case.model, launch.case.on, ", ".join(own), ", ".join(memory), ", ".join(effects))


def _last(tokens: object) -> str:
    """The value of a flag, as a figure of the launch has it."""
    return str(tokens[-1]) if isinstance(tokens, tuple) and tokens else str(tokens)


def _text(found: PolicyDiff) -> Iterator[str]:
    yield summary(found)
    for section in sections(found):
        yield ""
        yield from section.because_of
        for table in section.tables:
            yield ""
            yield f"  {table.title}: {count(len(table.rows), 'launch', 'launches')}"
            yield from _rows(table.rows)


def _rows(rows: Sequence[Row]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows[:SHOWN]) for column in (0, 1)]
    for row in rows[:SHOWN]:
        effects = " · ".join(filter(None, (row.own, row.memory, row.effects)))
        yield f"    {row.model:{widths[0]}}  {row.on:{widths[1]}}  {effects}".rstrip()
    if len(rows) > SHOWN:
        yield f"    and {len(rows) - SHOWN} more (--json and --html FILE have all)"
