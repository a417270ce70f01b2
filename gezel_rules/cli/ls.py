"""``gezel-rules ls``: models in the store, and how far each is from its catalog entry."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.cli.arguments import session_of
from gezel_rules.cli.shown import json_text
from gezel_rules.cli.stored import model_json, size_words
from gezel_rules.errors import BadInput, GezelError
from gezel_rules.facts.printable import printable
from gezel_rules.session import Session, to_stderr

if TYPE_CHECKING:
    from gezel_rules.store.wanted import Installed, InstallPlan

HEADINGS = ("MODEL", "SIZE", "QUANT", "CONTEXT", "DRAFT", "PROJECTOR", "RUNS", "DRIFT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None of its own."""


def run(args: argparse.Namespace) -> int:
    """Run the command. A broken directory is one warning on stderr."""
    from gezel_rules.store.shelf import installed

    session = session_of(args)
    models = installed(session.store, to_stderr)
    listed = [(model, _runs_here(session, model), _drift(session, model)) for model in models]
    if args.json:
        print(json_text([_json(*item) for item in listed]))
        return 0
    if listed:
        _show([_row(*item) for item in listed])
    else:
        print(f"no models in {session.store}; gezel-rules pull MODEL fetches one", file=sys.stderr)
    return 0


def _runs_here(session: Session, model: Installed) -> bool | None:
    """Whether this machine can run a model now: what a plan with the engine found would say; nothing is started.
    ``None`` when nobody can tell: no engine was found, or the model cannot be read."""
    try:
        plan = session.plan(model.model_id)
        return None if plan.program is None else not plan.refused
    except GezelError:
        return None


def _drift(session: Session, model: Installed) -> str:
    from gezel_rules.store.drift import ON_DISK, UNKNOWN, drift
    from gezel_rules.store.integrity import advice, fault

    faults = [(printable(file.path), wrong) for file in model.files if (wrong := fault(file))]
    for path, wrong in faults:
        to_stderr(f"{path}: {wrong}; {advice(wrong, model.model_id)}")
    if faults:
        return ON_DISK
    try:
        return drift(model, _today(session, model))
    except BadInput as error:
        to_stderr(str(error))
        return UNKNOWN


def _today(session: Session, model: Installed) -> InstallPlan | None:
    """The plan the catalog gives now for this machine's backend (that of the install, where no engine says one) and for
    the vision choice of the install; ``None``: no such entry."""
    from gezel_rules.catalog import has
    from gezel_rules.session.installs import backend_here, drafter_rule
    from gezel_rules.store.plan import plan_install

    if not has(session.catalog, model.model_id):
        return None
    entry = session.entry(model.model_id)
    backend = (backend_here(session, entry) if entry.draft else "") or model.backend
    return plan_install(entry, backend, model.vision, drafter_rule(session, entry))


def _json(model: Installed, runs: bool | None, drift: str) -> dict[str, Any]:
    draft, projector = model.by_role("draft"), model.by_role("projector")
    return {
        **model_json(model),
        "runs_here": runs,
        "drift": drift,
        "draft": {"path": draft[0].path, "size": draft[0].size} if draft else None,
        "projector": {"path": projector[0].path, "size": projector[0].size} if projector else None,
    }


def _row(model: Installed, runs: bool | None, drift: str) -> tuple[str, ...]:
    draft, projector = model.by_role("draft"), model.by_role("projector")
    window = model.header.get("context_length")
    return (
        printable(model.model_id),
        size_words(model.size),
        printable(str(model.header.get("quant") or model.catalog_quant or "?")),
        f"{window:,}" if isinstance(window, int) else "?",
        f"{Path(draft[0].path).name} ({size_words(draft[0].size)})" if draft else "-",
        size_words(projector[0].size) if projector else "-",
        {True: "yes", False: "no", None: "?"}[runs],
        drift,
    )


def _show(rows: list[tuple[str, ...]]) -> None:
    """A table on a terminal, plain columns in a pipe."""
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(HEADINGS, *rows, strict=True)]
        for row in (HEADINGS, *rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold")
    for heading in HEADINGS:
        table.add_column(
            heading, justify="right" if heading in ("SIZE", "CONTEXT") else "left", no_wrap=heading == "MODEL"
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
