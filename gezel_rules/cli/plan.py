"""``gezel-rules plan MODEL``: argv, memory and the ladder. Starts nothing."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

from gezel_rules.cli.arguments import add_arguments, conditions_of, session_of
from gezel_rules.cli.shown import json_text, tell
from gezel_rules.decisions.words import say, say_bytes
from gezel_rules.planner.plan import Plan
from gezel_rules.planner.report import explainer, ladder, plan_json, refusal
from gezel_rules.planner.summary import headlines, notes, warnings

__all__ = ["add_arguments", "run"]


def run(args: argparse.Namespace) -> int:
    """Show the plan; 1 when the launch is refused. Raises BadInput."""
    plan = session_of(args).plan(args.model, conditions_of(args))
    if args.json:
        print(json_text(plan_json(plan)))
    else:
        tell(_text(plan))
        print(f"\nwhy: {_again(args)} {'refusal' if plan.refused else '[--FLAG]'}")
    return 1 if plan.refused else 0


def _again(args: argparse.Namespace) -> str:
    """The command that explains this very plan."""
    given = [("--host", args.host), ("--engine", args.engine), *(("--set", text) for text in args.set)]
    words = [args.model, *(word for pair in given if pair[1] for word in pair)]
    return " ".join(["gezel-rules explain", *map(shlex.quote, words)])


def _text(plan: Plan) -> Iterator[str]:
    yield f"{plan.subject.id}  ({plan.subject.source})"
    yield from _machine(plan)
    if plan.refused:
        yield from _refused(plan)
        return
    explain = explainer(plan)
    yield from (f"  {label:9} {said}" for label, said in headlines(plan, explain))
    yield from (f"  warning   {said}" for said in warnings(plan, explain))
    yield from (f"  note      {said}" for said in notes(plan, explain))
    yield ""
    yield from _argv(plan)
    yield ""
    yield from memory_lines(plan)
    yield from _ladder(plan)


def _machine(plan: Plan) -> Iterator[str]:
    facts = plan.trace.facts
    host = plan.request.host
    where = f"{host.stem} (described)" if host else "this machine"
    if host is None and plan.program is None:
        unknown = "no engine found: version, backend and devices unknown (see gezel-rules devices)"
        yield f"  on        {where}, {unknown}"
        return
    backend, version = say(facts["engine.backend"].value), say(facts["engine.version"].value)
    yield f"  on        {where}, {say(facts['engine.kind'].value)} {version}, {backend}"


def _argv(plan: Plan) -> Iterator[str]:
    for flag in plan.flags:
        yield "  " + " ".join(shlex.quote(token) for token in flag.tokens)


def memory_lines(plan: Plan) -> Iterator[str]:
    """A row per pool: what is used of what is usable."""
    for pool in plan.memory.pools:
        if pool.used:
            yield f"  {pool.name:9} {_bar(pool.used, pool.usable)} {say_bytes(pool.used):>9} of {_usable(pool.usable)}"
            yield "            " + " · ".join(f"{name} {say_bytes(size)}" for name, size in pool.parts.items() if size)


def _usable(size: int | None) -> str:
    return "unknown" if size is None else f"{say_bytes(size)} usable"


def _bar(used: int, usable: int | None) -> str:
    if not usable:
        return "·" * 24
    filled = min(24, round(24 * used / usable))
    return "█" * filled + "░" * (24 - filled)


def _ladder(plan: Plan) -> Iterator[str]:
    rungs = list(ladder(plan))
    if not rungs:
        return
    yield ""
    yield "  if it fails at start, in this order:"
    for rung in rungs:
        yield f"    {rung['step']}: {', '.join(_change(change) for change in rung['changes'].values())}"


def _change(change: dict[str, list[str] | None]) -> str:
    old, new = change["from"], change["to"]
    if new is None:
        return f"no {(old or [''])[0]}"
    return " ".join(shlex.quote(token) for token in new)


def _refused(plan: Plan) -> Iterator[str]:
    found = refusal(plan, explainer(plan))
    assert found is not None
    yield f"  refused   {found['because']}"
    if "nearest" in found:
        yield f"  nearest   {found['nearest']}"
