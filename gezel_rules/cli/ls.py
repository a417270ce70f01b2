"""``gezel-rules ls``: models in the store, and how far each is from its catalog entry."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.cli import request
from gezel_rules.cli.pull import drafter_rule, model_json
from gezel_rules.errors import BadInput, GezelError
from gezel_rules.facts.printable import printable

if TYPE_CHECKING:
    from gezel_rules.planner.plan import Request
    from gezel_rules.store.wanted import Installed, InstallPlan

HEADINGS = ("MODEL", "SIZE", "QUANT", "CONTEXT", "DRAFT", "PROJECTOR", "RUNS", "DRIFT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None of its own."""


def run(args: argparse.Namespace) -> int:
    """Run the command. A broken directory is one warning on stderr."""
    from gezel_rules.store.shelf import installed

    models = installed(request.store_of(args), lambda text: print(f"gezel-rules: {text}", file=sys.stderr))
    runs = RunsHere(args)
    listed = [(model, runs.answer(model), _drift(model, args)) for model in models]
    if args.json:
        print(json.dumps([_json(*item) for item in listed], indent=2))
        return 0
    if listed:
        _show([_row(*item) for item in listed])
    else:
        print(f"no models in {request.store_of(args)}; gezel-rules pull MODEL fetches one", file=sys.stderr)
    return 0


class RunsHere:
    """Whether this machine can run a model now: what a plan with the engine found would say; nothing is started."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = argparse.Namespace(**{**vars(args), "model": "", "set": [], "engine": None, "host": None})
        self._request: Request | None = None

    def answer(self, model: Installed) -> bool | None:
        """``None`` when nobody can tell: no engine was found, or the model's header cannot be read."""
        from gezel_rules.planner.plan import make_plan

        try:
            self._request = self._request or request.request_of(self._args)
            if self._request.engine is None:
                return None
            return not make_plan(self._request._replace(model=model.model_id)).refused
        except GezelError:
            return None


def _drift(model: Installed, args: argparse.Namespace) -> str:
    from gezel_rules.store.drift import UNKNOWN, drift

    try:
        return drift(model, _today(model, args))
    except BadInput as error:
        print(f"gezel-rules: {error}", file=sys.stderr)
        return UNKNOWN


def _today(model: Installed, args: argparse.Namespace) -> InstallPlan | None:
    """The plan the catalog gives now, under the conditions the model was installed with; ``None``: no such entry."""
    from gezel_rules.catalog import find, has
    from gezel_rules.store.plan import plan_install

    catalog = request.catalog_of(args)
    if not has(catalog, model.model_id):
        return None
    entry = find(catalog, model.model_id)
    return plan_install(entry, model.backend, model.vision, drafter_rule(entry, request.policies_of(args)))


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


def size_words(count: int) -> str:
    """Bytes as people read them (binary units)."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


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
