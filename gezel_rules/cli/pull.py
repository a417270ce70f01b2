"""``gezel-rules pull MODEL``: fetch a model, verified, into the store; with ``--dry-run`` say what that would be."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.cli import request
from gezel_rules.errors import BadInput

if TYPE_CHECKING:
    from gezel_rules.catalog import Entry
    from gezel_rules.store.plan import DrafterApplies
    from gezel_rules.store.wanted import Installed, InstallPlan
    from gezel_rules.store.web import Web

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_STATES = {
    "here": "is here",
    "check": "is here, changed on disk: hashed again",
    "resume": "will be continued",
    "fetch": "will be fetched",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="catalog id, user/repo[:quant], hf://…, URL, or a GGUF file")
    parser.add_argument("--dry-run", action="store_true", help="say what would be fetched, and why; fetch nothing")
    parser.add_argument("--backend", metavar="B", help="for this backend (default: the engine's that was found)")
    parser.add_argument("--engine", metavar="PATH", help="a llama-server, or 'embedded' (default: the one found)")
    parser.add_argument("--no-vision", action="store_true", help="leave the projector out")
    parser.add_argument("--revision", metavar="REV", help="commit, tag or branch of the hub repository")
    parser.add_argument("--limit-rate", metavar="RATE", type=rate, default=0.0, help="bytes a second, as 20M or 500k")
    parser.add_argument("--pin", action="store_true", help="write the hub's sizes and digests into the catalog entry")


def rate(text: str) -> float:
    """Bytes per second from ``20M``, ``1.5g``, ``500000``."""
    number, unit = (text[:-1], text[-1].lower()) if text[-1:].isalpha() else (text, "")
    try:
        value = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"not a rate: {text!r} (as 20M or 500k)") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"not a rate: {text!r} (must be more than 0)")
    return value


def run(args: argparse.Namespace) -> int:
    """Run the command. Raises BadInput, Refused, TransferFailed."""
    from gezel_rules.store.web import Web

    web = Web()
    try:
        if args.pin:
            return _pin(args, web)
        plans = list(plans_of(args, web))
        return _preview(args, plans) if args.dry_run else _fetch(args, plans, web)
    finally:
        web.close()


def plans_of(args: argparse.Namespace, web: Web) -> Iterator[InstallPlan]:
    """The plan of MODEL, then of the models it needs beside it. Raises BadInput, TransferFailed."""
    from gezel_rules.catalog import find, has
    from gezel_rules.catalog.references import parse_reference
    from gezel_rules.store.plan import at_revision, plan_install
    from gezel_rules.store.reference_plan import plan_reference

    catalog = request.catalog_of(args)
    reference = parse_reference(args.model, lambda model: has(catalog, model))
    if args.revision and reference.kind not in ("catalog", "hub"):
        raise BadInput(f"--revision: {args.model} is in no hub repository")
    if reference.kind != "catalog":
        named = reference._replace(revision=args.revision) if args.revision else reference
        yield plan_reference(named, web, args.backend or "", not args.no_vision)
        return
    entry = find(catalog, reference.name)
    backend = backend_for(args) if entry.draft else args.backend or ""
    plan = plan_install(entry, backend, not args.no_vision, drafter_rule(entry, request.policies_of(args)))
    yield at_revision(plan, args.revision) if args.revision else plan
    for other in plan.also:
        beside = find(catalog, other)
        yield plan_install(beside, backend, not args.no_vision, drafter_rule(beside, request.policies_of(args)))


def backend_for(args: argparse.Namespace) -> str:
    """``--backend``, checked against policy, else that of the engine found; empty when there is none to ask."""
    from gezel_rules import places
    from gezel_rules.facts.fact import UNKNOWN
    from gezel_rules.planner.gather import Machine, machine_facts
    from gezel_rules.planner.plan import read_policies

    tables = read_policies(request.policies_of(args), places.cache_dir()).tables
    if args.backend:
        if args.backend not in tables["backends"]:
            raise BadInput(f"--backend: unknown backend '{args.backend}'; there are: {', '.join(tables['backends'])}")
        return str(args.backend)
    engine = request.engine_of(args)
    if engine is None:
        return ""
    found = machine_facts(Machine(None, engine, places.cache_dir(), os.environ), tables)["engine.backend"].value
    return "" if found is UNKNOWN else str(found)


def drafter_rule(entry: Entry, policies: Path) -> DrafterApplies:
    """Policy's ``drafter.applies`` for an entry, with the winning rule's words."""
    from gezel_rules import places
    from gezel_rules.decisions.decide import decide
    from gezel_rules.decisions.trace import Explainer
    from gezel_rules.facts.fact import UNKNOWN, Fact
    from gezel_rules.planner.plan import read_policies

    def applies(backend: str) -> tuple[bool, str]:
        draft = entry.draft
        name = draft and (draft.id or (draft.file.name if draft.file else None))
        limited = list(draft.backends) if draft and draft.backends is not None else None
        facts = {
            "entry.draft": Fact(name, entry.file, "catalog"),
            "entry.draft_backends": Fact(limited, entry.file, "catalog"),
            "engine.backend": Fact(backend or UNKNOWN, "engine", "probe"),
        }
        trace = decide(read_policies(policies, places.cache_dir()), facts, {}, ("drafter.applies",))
        judgement = trace.judgements["drafter.applies"]
        return judgement.value is True, Explainer(trace, {}).because(judgement)

    return applies


def _preview(args: argparse.Namespace, plans: list[InstallPlan]) -> int:
    from gezel_rules.store.preview import preview

    store = request.store_of(args)
    told = [(plan, preview(plan, store)) for plan in plans]
    if args.json:
        print(json.dumps([_plan_json(plan, steps) for plan, steps in told], indent=2))
        return 0
    for plan, steps in told:
        print(f"{plan.model_id} → {store / plan.directory}")
        for step in steps:
            size = "size unknown" if step.left is None else f"{step.left:,} bytes to come"
            print(f"  {step.wanted.name}  {_STATES[step.state]}, {size}: {step.wanted.reason}")
        for name, reason in plan.left_out:
            print(f"  {name}  not fetched: {reason}")
    return 0


def _plan_json(plan: InstallPlan, steps: list[Any]) -> dict[str, Any]:
    return {
        "model": plan.model_id,
        "directory": plan.directory,
        "backend": plan.backend or None,
        "files": [
            {
                "role": step.wanted.role, "name": step.wanted.name, "size": step.wanted.size,
                "sha256": step.wanted.sha256, "sources": [str(source) for source in step.wanted.sources],
                "state": step.state, "bytes_to_come": step.left, "reason": step.wanted.reason,
            }
            for step in steps
        ],
        "left_out": [{"name": name, "reason": reason} for name, reason in plan.left_out],
    }  # fmt: skip


def _fetch(args: argparse.Namespace, plans: list[InstallPlan], web: Web) -> int:
    from gezel_rules.store.install import install
    from gezel_rules.store.progress import Limit, progress_for

    progress = progress_for()
    try:
        done = [install(plan, request.store_of(args), progress, Limit(args.limit_rate), web) for plan in plans]
    finally:
        progress.close()
    if args.json:
        print(json.dumps([model_json(model) for model in done], indent=2))
        return 0
    for model in done:
        print(f"{model.model_id}: {model.size:,} bytes, {_verified(model)}, in {Path(model.files[0].path).parent}")
    return 0


def _verified(model: Installed) -> str:
    if all(file.verified for file in model.files):
        return "verified"
    return "no digest is known to hold it against"


def model_json(model: Installed) -> dict[str, Any]:
    """An installed model as plain JSON: sizes in bytes, ``context_length`` in tokens, ``null`` for what is unknown."""
    names = ("role", "name", "path", "size", "sha256", "verified", "origin")
    return {
        "model": model.model_id,
        "size": model.size,
        "quant": model.header.get("quant"),
        "catalog_quant": model.catalog_quant or None,
        "arch": model.header.get("arch"),
        "context_length": model.header.get("context_length"),
        "backend": model.backend or None,
        "vision": model.vision,
        "files": [{name: getattr(file, name) for name in names} for file in model.files],
        "left_out": [{"name": name, "reason": reason} for name, reason in model.left_out],
    }


def _pin(args: argparse.Namespace, web: Web) -> int:
    from gezel_rules.catalog import find
    from gezel_rules.store.pin import pin

    catalog = request.catalog_of(args)
    path = catalog / "models" / f"{find(catalog, args.model).id}.yaml"
    pinned = pin(path, web)
    if args.json:
        print(json.dumps([item._asdict() for item in pinned], indent=2))
        return 0
    for item in pinned:
        print(f"{path}: {item.name}: {item.size:,} bytes, sha256 {item.sha256}")
    if not pinned:
        print(f"{path}: every file has its size and digest", file=sys.stderr)
    return 0
