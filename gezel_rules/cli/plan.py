"""``gezel-rules plan MODEL``: argv, memory and the ladder. Starts nothing."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator

from gezel_rules.cli.request import add_arguments, request_of
from gezel_rules.decisions.words import say, say_bytes
from gezel_rules.planner.plan import Plan, make_plan
from gezel_rules.planner.report import explainer, ladder, plan_json, refusal
from gezel_rules.planner.summary import notes, warnings

__all__ = ["add_arguments", "run"]


def run(args: argparse.Namespace) -> int:
    """Show the plan; 1 when the launch is refused. Raises BadInput."""
    plan = make_plan(request_of(args))
    if args.json:
        print(json.dumps(plan_json(plan), indent=2))
    else:
        print("\n".join(_text(plan)))
        print(f"\nwhy: {_again(args)} {'refusal' if plan.refused else '[--FLAG]'}")
    return 1 if plan.refused else 0


def _again(args: argparse.Namespace) -> str:
    """The command that explains this very plan."""
    given = [("--host", args.host), ("--engine", args.engine), *(("--set", text) for text in args.set)]
    words = [args.model, *(word for pair in given if pair[1] for word in pair)]
    return " ".join(["gezel-rules explain", *map(shlex.quote, words)])


def _text(plan: Plan) -> Iterator[str]:
    value = plan.trace.value
    yield f"{plan.subject.id}  ({plan.subject.header_source})"
    yield from _machine(plan)
    if plan.refused:
        yield from _refused(plan)
        return
    yield f"  window    {value('slots.count')} × {value('window.tokens'):,} tokens, cache {value('kv.type')}"
    yield f"  drafts    {_drafts(plan)}"
    yield f"  weights   {value('layout')['says']}"
    explain = explainer(plan)
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
    if host is None and plan.request.engine is None:
        unknown = "no engine found: version, backend and devices unknown (see gezel-rules devices)"
        yield f"  on        {where}, {unknown}"
        return
    backend, version = say(facts["engine.backend"].value), say(facts["engine.version"].value)
    yield f"  on        {where}, {say(facts['engine.kind'].value)} {version}, {backend}"


def _drafts(plan: Plan) -> str:
    spec, path = plan.trace.value("spec.type"), plan.trace.value("drafter.path")
    return f"{spec} with {path.rsplit('/', 1)[-1]}" if path else str(spec)


def _argv(plan: Plan) -> Iterator[str]:
    for flag in plan.flags:
        yield "  " + " ".join(shlex.quote(token) for token in flag.tokens)


def memory_lines(plan: Plan) -> Iterator[str]:
    """A row per pool: what is used of what is usable."""
    cards = {f"GPU{i}": card for i, card in enumerate(plan.capacity.cards)}
    beside = plan.beside
    for index, pool in enumerate(plan.estimate.pools):
        real = cards.get(pool.name, plan.capacity.ram)
        used = pool.total + (beside if index == 0 else 0)
        parts = [("weights", pool.model_bytes), ("context", pool.context_bytes), ("compute", pool.compute_bytes)]
        parts += [("drafter and projector", beside)] if index == 0 and beside else []
        if used:
            yield f"  {real.name:9} {_bar(used, real.usable)} {say_bytes(used):>9} of {_usable(real.usable)}"
            yield "            " + " · ".join(f"{name} {say_bytes(size)}" for name, size in parts if size)


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
