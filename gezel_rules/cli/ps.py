"""``gezel-rules ps``: the engines this user runs."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from gezel_rules import places
from gezel_rules.cli.shown import columns, json_text
from gezel_rules.runtime.registry import Entry, running


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command takes no arguments of its own."""


def run(args: argparse.Namespace, out: TextIO | None = None) -> int:
    """List running engines, oldest first."""
    sink = out or sys.stdout
    entries = running(places.state_dir())
    if getattr(args, "json", False):
        sink.write(json_text([{**entry._asdict(), "orphan": entry.orphan} for entry in entries]) + "\n")
    else:
        sink.write("".join(f"{line}\n" for line in _table(entries)))
    return 0


def _table(entries: Sequence[Entry]) -> list[str]:
    if not entries:
        return ["no engine is running"]
    rows = [(e.model, e.engine, str(e.pid), _age(e), e.url or "loading", _name(e)) for e in entries]
    return columns(("MODEL", "ENGINE", "PID", "UP", "URL", "ID"), rows)


def _name(entry: Entry) -> str:
    return f"{entry.id} (orphan)" if entry.orphan else entry.id


def _age(entry: Entry) -> str:
    """Two units at most: ``3d 4h``, ``12m 5s``."""
    seconds = max(0, int(time.time() - entry.since))
    units = (("d", seconds // 86400), ("h", seconds // 3600 % 24), ("m", seconds // 60 % 60), ("s", seconds % 60))
    shown = [f"{count}{unit}" for unit, count in units if count]
    return " ".join(shown[:2]) or "0s"
