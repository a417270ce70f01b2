"""``gezel-rules serve MODEL``: an engine in the foreground, watched and started again when it dies, until Ctrl-C.

The endpoint is printed; the API key is not: it is in a file only its owner can read.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TextIO

from gezel_rules.cli.request import add_conditions
from gezel_rules.cli.run import Ground, Prepare, Prepared, _prepare, ground_of
from gezel_rules.cli.ticker import ticking
from gezel_rules.errors import EngineFailed
from gezel_rules.runtime import registry
from gezel_rules.runtime.interrupts import Interrupted, Interrupts
from gezel_rules.runtime.launch import Launched, Order, died, entry_of, following, launched
from gezel_rules.runtime.state_files import write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="catalog id, GGUF file, or user/repo[:quant]")
    add_conditions(parser)


def run(args: argparse.Namespace, prepare: Prepare | None = None, out: TextIO | None = None) -> int:
    """Serve until a signal comes: 0. Raises GezelError when the engine cannot be kept running."""
    with Interrupts() as interrupts:
        try:
            ground = ground_of(args, interrupts)
            prepared = (prepare or _prepare())(args, ground)
            _keep_serving(prepared, ground, out or sys.stdout, getattr(args, "json", False))
        except Interrupted:
            return 0


def _keep_serving(prepared: Prepared, ground: Ground, out: TextIO, as_json: bool) -> NoReturn:
    """Serve; after an unexpected end pause and start again, as often as policy allows."""
    deaths = 0
    while True:
        begun = time.monotonic()
        try:
            _serve(prepared, ground, out, as_json)
        except _DiedError as death:
            steady = time.monotonic() - begun >= ground.rules.steady
            deaths = 1 if steady else deaths + 1
            if deaths > len(ground.rules.restart_pauses):
                raise death.failure from None
            pause = ground.rules.restart_pauses[deaths - 1]
            prepared.guide.say(f"{death.failure}; starting again in {pause:g} s")
            prepared = prepared._replace(order=death.order)
            time.sleep(pause)


class _DiedError(Exception):
    """The engine was ready and ended on its own; ``order`` is what to start next."""

    def __init__(self, failure: EngineFailed, order: Order) -> None:
        self.failure, self.order = failure, order


def _serve(prepared: Prepared, ground: Ground, out: TextIO, as_json: bool) -> NoReturn:
    with (
        ticking(f"loading {prepared.order.model}", sys.stderr) as ticker,
        launched(
            prepared.order, prepared.guide._replace(tick=ticker), ground.rules, ground.state_dir, ground.environ,
            ground.interrupts,
        ) as engine,
        _key_file(engine, ground) as key_file,
    ):  # fmt: skip
        ticker.wipe()
        _announce(engine, key_file, out, as_json)
        while engine.running.process.poll() is None:  # short waits: a signal is handled between them everywhere
            time.sleep(0.2)
        failure = died(engine, prepared.guide, ground.state_dir)
        order, said = following(engine, prepared.guide) or (engine.order, "")
        raise _DiedError(EngineFailed(f"{failure}; {said}") if said else failure, order)


@contextmanager
def _key_file(engine: Launched, ground: Ground) -> Iterator[Path]:
    """The key where its owner can read it, for as long as the engine runs."""
    path = ground.state_dir / registry.KEYS / f"{engine.running.id}.key"
    try:
        write_text(path, engine.running.key + "\n")
        registry.enter(ground.state_dir, entry_of(engine.running, engine.order, str(path)))
        yield path
    finally:
        path.unlink(missing_ok=True)


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
