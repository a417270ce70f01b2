"""``gezel-rules serve MODEL``: an engine in the foreground, watched and started again when it dies, until Ctrl-C.

The endpoint is printed; the API key is not: it is in a file only its owner can read.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TextIO

from gezel_rules.cli.arguments import add_conditions, add_model, conditions_of, session_of
from gezel_rules.cli.ticker import ticking
from gezel_rules.runtime.interrupts import Interrupted, Interrupts
from gezel_rules.runtime.order import Launched
from gezel_rules.session import to_stderr
from gezel_rules.session.serving import serve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_model(parser)
    add_conditions(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until a signal comes: 0. Raises GezelError when the engine cannot be kept running."""
    session = session_of(args)
    with Interrupts() as interrupts:
        try:
            prepared = session.prepare(args.model, conditions_of(args), to_stderr)
            with ticking(f"loading {prepared.order.model}", sys.stderr) as ticker:

                def announce(engine: Launched, key_file: Path) -> None:
                    ticker.wipe()
                    _announce(engine, key_file, sys.stdout, args.json)

                serve(session, prepared, interrupts, announce, ticker)
        except Interrupted:
            return 0


def _announce(engine: Launched, key_file: Path, out: TextIO, as_json: bool) -> None:
    running = engine.running
    if as_json:
        shown = {"model": engine.order.model, "url": running.address.url, "key_file": str(key_file)}
        out.write(json.dumps({**shown, "pid": running.pid, "log": str(running.log.path)}) + "\n")
    else:
        out.write(f"{running.address.url}\n")
        bearer = f'-H "Authorization: Bearer $(cat {key_file})"'
        print(f"key in {key_file}: curl {bearer} {running.address.url}/v1/models", file=sys.stderr)
        print("Ctrl-C stops it", file=sys.stderr)
    out.flush()
