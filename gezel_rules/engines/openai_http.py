"""The OpenAI endpoint of a local engine: health, and answers as they are streamed.

What the engine sends is untrusted: lines are bounded, JSON is checked, and every error is one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gezel_rules.errors import EngineFailed
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from http.client import HTTPResponse

    from gezel_rules.engines.timed_http import Clock

LINE_BYTES = 1 << 20
BODY_BYTES = 1 << 16
COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"

Message = Mapping[str, str]


class Address(NamedTuple):
    """Where an engine listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The base URL; an IPv6 address in brackets."""
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"


class Piece(NamedTuple):
    """A piece of an answer; ``thought`` when it is the model's reasoning, not the answer itself."""

    text: str
    thought: bool = False


class Call(NamedTuple):
    """One request for an answer: whom to ask with which key, the messages so far (the last is the prompt), tokens at
    most (< 0: no bound), and the seconds that the head of the answer, and each line of it, may take."""

    address: Address
    key: str
    messages: Sequence[Message]
    max_tokens: int
    idle: float


def complete(call: Call) -> Iterator[Piece]:
    """The last message, continued. Raises EngineFailed."""
    return stream(call, COMPLETIONS, {"prompt": call.messages[-1]["content"]})


def chat(call: Call) -> Iterator[Piece]:
    """The answer to all messages. Raises EngineFailed."""
    return stream(call, CHAT, {"messages": list(call.messages)})


def status(address: Address, path: str, key: str | None, seconds: float) -> int | None:
    """The HTTP status of a GET, ``None`` when nobody answers within so many seconds."""
    from http.client import HTTPException

    from gezel_rules.engines.timed_http import TimedConnection

    connection = TimedConnection(address.host, address.port, seconds)
    try:
        connection.request("GET", path, headers=_headers(key))
        return connection.getresponse().status
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def stream(call: Call, path: str, body: Mapping[str, Any]) -> Iterator[Piece]:
    """Pieces of the answer as they come. Raises EngineFailed when the engine refuses, gives no whole line for
    ``call.idle`` seconds, breaks off or sends nonsense. Closing the iterator cancels the answer."""
    from http.client import HTTPException

    from gezel_rules.engines.timed_http import TimedConnection

    connection = TimedConnection(call.address.host, call.address.port, call.idle)
    bound = {"max_tokens": call.max_tokens} if call.max_tokens >= 0 else {}
    try:
        data = json.dumps({"stream": True, **body, **bound}).encode()
        connection.request("POST", path, data, {**_headers(call.key), "Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise EngineFailed(f"the engine refused: {_reason(response.read(BODY_BYTES), response.status)}")
        yield from _pieces(_lines(response, connection.clock, call.idle))
    except TimeoutError:
        raise EngineFailed(f"the engine was silent for {call.idle:.0f} s") from None
    except (OSError, HTTPException) as error:
        raise EngineFailed(f"the engine broke off: {_one_line(str(error)) or type(error).__name__}") from None
    finally:
        connection.close()


def _headers(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _lines(response: HTTPResponse, clock: Clock, seconds: float) -> Iterator[bytes]:
    """The lines of an answer, each whole in time. What is done with one takes nothing from the time of the next."""
    clock.give(seconds)
    while line := response.readline(LINE_BYTES):
        yield line
        clock.give(seconds)


def _pieces(lines: Iterator[bytes]) -> Iterator[Piece]:
    """Server-sent events: ``data:`` lines; comments are pings. Ends with ``[DONE]``."""
    for line in lines:
        if not line.startswith(b"data:"):
            if line.startswith(b"error:"):
                raise EngineFailed(f"the engine refused: {_reason(line[6:], 500)}")
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            return
        yield from _event(data)
    raise EngineFailed("the engine broke off before the answer ended")


def _event(data: bytes) -> Iterator[Piece]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        raise EngineFailed("the engine sent an event that is not JSON") from None
    if not isinstance(event, dict):
        raise EngineFailed("the engine sent an event that is not an object")
    if "error" in event:
        raise EngineFailed(f"the engine refused: {_reason(data, 500)}")
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        yield from _choice(choice)


def _choice(choice: Any) -> Iterator[Piece]:
    if not isinstance(choice, dict):
        return
    delta = choice.get("delta")
    source = delta if isinstance(delta, dict) else choice
    for name, thought in (("reasoning_content", True), ("content", False), ("text", False)):
        text = source.get(name)
        if isinstance(text, str) and text:
            yield Piece(text, thought)


def _reason(body: bytes, code: int) -> str:
    """The engine's own words in an error body, on one line; else the status."""
    try:
        error = json.loads(body)
        message = error["error"]["message"] if isinstance(error["error"], dict) else error["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        message = None
    return _one_line(str(message)) if message else f"HTTP status {code}"


def _one_line(text: str) -> str:
    """Words of the engine's, fit for a person's terminal."""
    words = " ".join(text.split())[:500]
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in words)
