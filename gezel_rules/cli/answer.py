"""An answer from a running engine, on its way to the person: what ``run`` does once an engine is ready."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from gezel_rules.engines.openai_http import Call, Piece
from gezel_rules.errors import EngineFailed
from gezel_rules.facts.printable import visible
from gezel_rules.runtime.interrupts import Interrupted
from gezel_rules.runtime.order import Peer

Message = dict[str, str]
ENDING = 0.5  # seconds between a connection that breaks and the end of its engine


class Talk:
    """A talk with one engine. ``endpoint`` is the kind of request its family makes of it; what was said before is
    sent along where that kind takes it: questions that were answered, no others. Answers go to ``out``, thoughts to
    ``err`` where that is a terminal. ``prompt`` is what was asked last; ``answered``: the engine has said something."""

    def __init__(self, engine: Peer, endpoint: str, max_tokens: int, idle: float, out: TextIO, err: TextIO) -> None:
        self.engine, self.endpoint = engine, endpoint
        self._max_tokens, self._idle, self._out, self._err = max_tokens, idle, out, err
        self._said: list[Message] = []
        self.prompt, self.answered = "", False

    def ask(self, prompt: str, show: bool = True) -> str:
        """The whole answer to a prompt, shown as it comes unless told otherwise. Raises EngineFailed."""
        parts: list[str] = []
        asked = [*self._said, {"role": "user", "content": prompt}]
        self.prompt = prompt
        for piece in self._pieces(asked):
            self.answered = True
            if not piece.thought:
                parts.append(piece.text)
            if show:
                (self._think if piece.thought else self._show)(piece.text)
        answer = "".join(parts)
        self._said = [*asked, {"role": "assistant", "content": answer}]
        return answer

    def _pieces(self, messages: list[Message]) -> Iterator[Piece]:
        engine = self.engine
        call = Call(engine.address, engine.key, messages, self._max_tokens, self._idle)
        return engine.contract.requests[self.endpoint](call)

    def _show(self, text: str) -> None:
        self._out.write(visible(text) if self._out.isatty() else text)
        self._out.flush()

    def _think(self, text: str) -> None:
        if self._err.isatty():
            self._err.write(f"\x1b[2m{visible(text)}\x1b[0m")
            self._err.flush()


def answer_once(talk: Talk, prompt: str, out: TextIO) -> None:
    """One prompt, one answer, ended by a line feed."""
    if not talk.ask(prompt).endswith("\n"):
        out.write("\n")
    out.flush()


def answer_as_json(talk: Talk, prompt: str, out: TextIO) -> None:
    """One prompt, one JSON object: model, endpoint, engine and answer."""
    engine = talk.engine
    data: dict[str, Any] = {"model": engine.model, "engine": engine.kind, "endpoint": talk.endpoint}
    out.write(json.dumps({**data, "answer": talk.ask(prompt, show=False)}, ensure_ascii=False) + "\n")
    out.flush()


def converse(talk: Talk, out: TextIO, read: Callable[[str], str] = input) -> None:
    """Line by line until the end of input or ``/bye``. Ctrl-C ends the answer that is being written; at the prompt it
    ends the talk, as Interrupted. An answer that fails is said, and the talk goes on while the
    engine lives."""
    while True:
        try:
            line = read("> ")
        except EOFError:
            out.write("\n")
            return
        if line.strip() == "/bye":
            return
        if not line.strip():
            continue
        try:
            answer_once(talk, line, out)
        except Interrupted as stopped:
            if stopped.number != signal.SIGINT:
                raise
            out.write("\n")
        except EngineFailed as error:
            if talk.engine.ended(ENDING):
                raise
            print(f"gezel-rules: {error}", file=sys.stderr)


def asked_again(prompt: str, read: Callable[[str], str] = input) -> Callable[[str], str]:
    """Reads as ``read`` does, but the first line is a prompt that is asked once more."""
    waiting = [prompt]
    return lambda mark: waiting.pop() if waiting else read(mark)
