"""``gezel-rules pull MODEL``: fetch a model, verified, into the store; with ``--dry-run`` say what that would be."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.cli.arguments import add_engine, session_of
from gezel_rules.cli.shown import json_text
from gezel_rules.cli.stored import model_json

if TYPE_CHECKING:
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
    parser.add_argument("model", metavar="MODEL", help="catalog id, user/repo[:quant], hf://…, URL, or a model on disk")
    parser.add_argument("--dry-run", action="store_true", help="say what would be fetched, and why; fetch nothing")
    parser.add_argument("--backend", metavar="B", help="for this backend (default: the engine's that was found)")
    add_engine(parser)
    parser.add_argument("--excluded", action="store_true", help="fetch a model that its entry excludes on the backend")
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
    from gezel_rules.session.installs import Wish, installs
    from gezel_rules.store.web import Web

    session, web = session_of(args), Web()
    wish = Wish(args.model, args.backend, args.engine, not args.no_vision, args.revision, args.excluded)
    try:
        if args.pin:
            return _pin(args, session.catalog, web)
        plans = list(installs(session, wish, web))
        return _preview(args, session.store, plans) if args.dry_run else _fetch(args, session.store, plans, web)
    finally:
        web.close()


def _preview(args: argparse.Namespace, store: Path, plans: list[InstallPlan]) -> int:
    from gezel_rules.store.preview import preview

    told = [(plan, preview(plan, store)) for plan in plans]
    if args.json:
        print(json_text([_plan_json(plan, steps) for plan, steps in told]))
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


def _fetch(args: argparse.Namespace, store: Path, plans: list[InstallPlan], web: Web) -> int:
    from gezel_rules.store.install import install
    from gezel_rules.store.progress import Limit, progress_for

    progress = progress_for()
    try:
        done = [install(plan, store, progress, Limit(args.limit_rate), web) for plan in plans]
    finally:
        progress.close()
    if args.json:
        print(json_text([model_json(model) for model in done]))
        return 0
    for model in done:
        print(f"{model.model_id}: {model.size:,} bytes, {_verified(model)}, in {Path(model.files[0].path).parent}")
        for name, reason in model.left_out:
            print(f"  {name}  not fetched: {reason}")
    return 0


def _verified(model: Installed) -> str:
    if all(file.verified for file in model.files):
        return "verified"
    return "no digest is known to hold it against"


def _pin(args: argparse.Namespace, catalog: Path, web: Web) -> int:
    from gezel_rules.catalog import find
    from gezel_rules.store.pin import pin

    path = catalog / "models" / f"{find(catalog, args.model).id}.yaml"
    pinned = pin(path, web)
    if args.json:
        print(json_text([item._asdict() for item in pinned]))
        return 0
    for item in pinned:
        print(f"{path}: {item.name}: {item.size:,} bytes, sha256 {item.sha256}")
    if not pinned:
        print(f"{path}: every file has its size and digest", file=sys.stderr)
    return 0
