"""``gezel-rules run MODEL [PROMPT]``: pull if needed, plan, launch, answer, stop; nothing is left running.

The answer goes to stdout; everything else to stderr. Without a prompt: line by line on a terminal, else the prompt is
what stdin holds.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO

from gezel_rules.cli.answer import Talk, answer_as_json, answer_once, asked_again, converse
from gezel_rules.cli.request import add_conditions
from gezel_rules.cli.ticker import ticking
from gezel_rules.errors import BadInput, EngineFailed
from gezel_rules.record import NamedTuple
from gezel_rules.runtime.interrupts import Interrupted, Interrupts
from gezel_rules.runtime.launch import Guide, Launched, Order, died, following, launched
from gezel_rules.runtime.rules import Supervision, load_supervision


class Prepared(NamedTuple):
    """What a plan becomes before launch: the order, the endpoint that fits the model, and whom to ask on the way."""

    order: Order
    endpoint: str
    guide: Guide


class Ground(NamedTuple):
    """What a launch stands on: the runtime's policy, the state directory, the environment, and who holds Ctrl-C."""

    rules: Supervision
    state_dir: Path
    environ: Mapping[str, str]
    interrupts: Interrupts


Prepare = Callable[[argparse.Namespace, Ground], Prepared]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="catalog id, GGUF file, or user/repo[:quant]")
    add_conditions(parser)
    parser.add_argument("prompt", metavar="PROMPT", nargs="?", help="what to answer; without it, line by line")
    parser.add_argument("--max-tokens", type=_bound, metavar="N", help="length of an answer at most; -1 = no bound")


def _bound(text: str) -> int:
    value = int(text)
    if value < 1 and value != -1:
        raise argparse.ArgumentTypeError(f"{value} (1 or more, or -1 for no bound)")
    return value


_bound.__name__ = "count"


def run(args: argparse.Namespace, prepare: Prepare | None = None, out: TextIO | None = None) -> int:
    """Run the command. Returns 0, or 128 + the signal that ended it; raises GezelError."""
    sink = out or sys.stdout
    with Interrupts() as interrupts:
        try:
            ground = ground_of(args, interrupts)
            prompt = _prompt(args)
            prepared = (prepare or _prepare())(args, ground)
            launch_and_answer(prepared, ground, prompt, sink, args.max_tokens, getattr(args, "json", False))
        except Interrupted as stopped:
            return 128 + stopped.number
        except BrokenPipeError:  # the reader has enough
            with contextlib.suppress(OSError, io.UnsupportedOperation):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def ground_of(args: argparse.Namespace, interrupts: Interrupts) -> Ground:
    """What this launch stands on."""
    from gezel_rules import places

    policies = getattr(args, "policies", None)
    rules = load_supervision(Path(policies) if policies else None)
    return Ground(rules, places.state_dir(), os.environ, interrupts)


def _prepare() -> Prepare:
    from gezel_rules.cli.prepare import prepare

    return prepare


def _prompt(args: argparse.Namespace) -> str | None:
    """The prompt given, or what a pipe holds; ``None`` for a talk. Raises BadInput when a pipe holds nothing."""
    if args.prompt is not None:
        return str(args.prompt)
    if sys.stdin is not None and sys.stdin.isatty():
        return None
    text = sys.stdin.read() if sys.stdin is not None else ""
    if not text.strip():
        raise BadInput("no prompt: give one as an argument or on stdin")
    return text


def launch_and_answer(
    prepared: Prepared, ground: Ground, prompt: str | None, out: TextIO, max_tokens: int | None, as_json: bool
) -> None:
    """Launch, answer, stop; once more where recovery knows an answer to the engine's death over the first token. Raises
    EngineFailed when the engine does not start, refuses or dies."""
    limit = ground.rules.answer_tokens[prepared.endpoint] if max_tokens is None else max_tokens
    read: Callable[[str], str] = input
    while True:
        try:
            _answer(prepared, ground, prompt, out, limit, as_json, read)
            return
        except _DiedFirstError as death:
            prepared, read = prepared._replace(order=death.order), asked_again(death.prompt)


class _DiedFirstError(Exception):
    """The engine died before it said anything; ``order`` is what to try next, ``prompt`` what it was asked."""

    def __init__(self, order: Order, prompt: str) -> None:
        self.order, self.prompt = order, prompt


def _answer(
    prepared: Prepared, ground: Ground, prompt: str | None, out: TextIO, limit: int, as_json: bool,
    read: Callable[[str], str],
) -> None:  # fmt: skip
    with (
        ticking(f"loading {prepared.order.model}", sys.stderr) as ticker,
        launched(
            prepared.order, prepared.guide._replace(tick=ticker), ground.rules, ground.state_dir, ground.environ,
            ground.interrupts,
        ) as engine,
    ):  # fmt: skip
        ticker.wipe()
        talk = Talk(engine, prepared.endpoint, limit, ground.rules.answer_idle, out, sys.stderr)
        try:
            if prompt is None:
                converse(talk, out, read)
            else:
                (answer_as_json if as_json else answer_once)(talk, prompt, out)
        except EngineFailed as error:
            raise _after(talk, error, prepared.guide, ground) from None


def _after(talk: Talk, error: EngineFailed, guide: Guide, ground: Ground) -> Exception:
    """The next try when the engine died before it said anything and recovery has one; else the engine's own reason, or
    what the connection said while it lives."""
    if not _ended(talk.engine):
        return error
    failure = died(talk.engine, guide, ground.state_dir)
    found = None if talk.answered else following(talk.engine, guide)
    if found is None:
        return failure
    guide.say(f"{failure}; {found[1]}")
    return _DiedFirstError(found[0], talk.prompt)


def _ended(engine: Launched) -> bool:
    """Whether the engine is gone, or goes within a second."""
    import subprocess

    try:
        engine.running.process.wait(1.0)
    except subprocess.TimeoutExpired:
        return False
    return True
