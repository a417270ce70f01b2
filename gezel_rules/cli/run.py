"""``gezel-rules run MODEL [PROMPT]``: pull if needed, plan, launch, answer, stop; nothing is left running.

An engine that ``serve`` keeps running for MODEL answers instead, and goes on running. The answer goes to stdout;
everything else to stderr. Without a prompt: line by line on a terminal, else the prompt is what stdin holds.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import TextIO

from gezel_rules.cli.answer import Talk, answer_as_json, answer_once, asked_again, converse
from gezel_rules.cli.arguments import add_conditions, add_model, conditions_of, session_of
from gezel_rules.cli.ticker import ticking
from gezel_rules.errors import BadInput, EngineFailed
from gezel_rules.record import NamedTuple
from gezel_rules.runtime.interrupts import Interrupted, Interrupts
from gezel_rules.runtime.order import Launched, Order, Peer
from gezel_rules.runtime.rules import Supervision
from gezel_rules.session import Prepared, Session, to_stderr
from gezel_rules.session.joining import Joined, join

SERVED = """
Where 'serve' already runs MODEL, its engine answers and goes on running. What it was not started
with (--set, GEZEL_…, --engine, --policies) starts another engine, for this answer alone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.epilog = SERVED
    add_model(parser)
    add_conditions(parser)
    parser.add_argument("prompt", metavar="PROMPT", nargs="?", help="what to answer; without it, line by line")
    parser.add_argument("--max-tokens", type=_bound, metavar="N", help="length of an answer at most; -1 = no bound")


def _bound(text: str) -> int:
    value = int(text)
    if value < 1 and value != -1:
        raise argparse.ArgumentTypeError(f"{value} (1 or more, or -1 for no bound)")
    return value


_bound.__name__ = "count"


def run(args: argparse.Namespace) -> int:
    """Run the command. Returns 0, or 128 + the signal that ended it; raises GezelError."""
    session = session_of(args)
    with Interrupts() as interrupts:
        try:
            prompt, conditions = _prompt(args), conditions_of(args)
            asked = Asked(prompt, sys.stdout, args.max_tokens, args.json)
            if (joined := join(session, args.model, conditions, to_stderr)) is not None:
                answer_by(joined, asked)
            else:
                prepared = session.prepare(args.model, conditions, to_stderr)
                with session.holding(prepared) as held:
                    Answering(session, held, interrupts).answer(asked)
        except Interrupted as stopped:
            return 128 + stopped.number
        except BrokenPipeError:  # the reader has enough
            with contextlib.suppress(OSError, io.UnsupportedOperation):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


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


class Asked(NamedTuple):
    """What the person wants: an answer to the prompt, or a talk (``None``), on ``out``; tokens at most (``None``: as
    policy has it); one JSON object instead of text. ``read`` reads a line of the person's."""

    prompt: str | None
    out: TextIO
    max_tokens: int | None
    as_json: bool
    read: Callable[[str], str] = input

    def talk(self, engine: Peer, endpoint: str, rules: Supervision) -> Talk:
        """A talk with an engine that has said nothing yet."""
        tokens = rules.answer_tokens[endpoint] if self.max_tokens is None else self.max_tokens
        return Talk(engine, endpoint, tokens, rules.answer_idle, self.out, sys.stderr)

    def have(self, talk: Talk) -> None:
        """Have the talk, or the one answer. Raises EngineFailed."""
        if self.prompt is None:
            converse(talk, self.out, self.read)
        else:
            (answer_as_json if self.as_json else answer_once)(talk, self.prompt, self.out)


def answer_by(joined: Joined, asked: Asked) -> None:
    """Have an answer of the engine that ``serve`` runs. Raises EngineFailed."""
    asked.have(asked.talk(joined.engine, joined.endpoint, joined.rules))


class Answering(NamedTuple):
    """An engine to be started for one talk, and stopped after it."""

    session: Session
    prepared: Prepared
    interrupts: Interrupts

    def answer(self, asked: Asked) -> None:
        """Launch, answer, stop; once more where recovery knows an answer to the engine's death over the first token.
        Raises EngineFailed when the engine does not start, refuses or dies."""
        trying = self
        while True:
            try:
                trying._once(asked)
                return
            except _DiedFirstError as death:
                trying = trying._replace(prepared=trying.prepared._replace(order=death.order))
                asked = asked._replace(read=asked_again(death.prompt))

    def _once(self, asked: Asked) -> None:
        with (
            ticking(f"loading {self.prepared.order.model}", sys.stderr) as ticker,
            self.session.launched(self.prepared, self.interrupts, ticker) as engine,
        ):
            ticker.wipe()
            talk = asked.talk(engine.peer, self.prepared.endpoint, self.prepared.rules)
            try:
                asked.have(talk)
            except EngineFailed as error:
                raise self._after(engine, talk, error) from None

    def _after(self, engine: Launched, talk: Talk, error: EngineFailed) -> Exception:
        """The next try when the engine died before it said anything and recovery has one; else the engine's own reason,
        or what the connection said while it lives."""
        death = self.session.death(self.prepared, engine)
        if death is None:
            return error
        if talk.answered or death.next_order is None:
            return death.failure
        self.prepared.guide.say(f"{death.failure}; {death.said}")
        return _DiedFirstError(death.next_order, talk.prompt)


class _DiedFirstError(Exception):
    """The engine died before it said anything; ``order`` is what to try next, ``prompt`` what it was asked."""

    def __init__(self, order: Order, prompt: str) -> None:
        self.order, self.prompt = order, prompt
