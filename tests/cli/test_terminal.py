"""What other people wrote is read on a terminal, not obeyed by it."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.cli.answer import Talk, answer_once
from gezel_rules.cli.shown import tell
from gezel_rules.engines.family import Contract
from gezel_rules.engines.openai_http import Address, Piece
from gezel_rules.facts.printable import HARMLESS, visible
from gezel_rules.runtime.order import Peer

HOSTILE = "\x1b]0;title\x07 \x1b[2J \x9b31m \r\u202e"


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


@given(st.text())
def test_nothing_drives_a_terminal(text: str) -> None:
    shown = visible(text)
    assert all(c.isprintable() or c in HARMLESS for c in shown)
    assert visible(shown) == shown


def test_lines_are_told_as_they_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    tell(["arch  llama", HOSTILE])
    assert capsys.readouterr().out == "arch  llama\n\\x1b]0;title\\x07 \\x1b[2J \\x9b31m \\r\\u202e\n"


@pytest.mark.parametrize("out", [Terminal(), io.StringIO()], ids=["terminal", "pipe"])
def test_an_answer(out: Any) -> None:
    """On a terminal it is shown; what a program reads is what the model said."""
    requests = {"chat": lambda call: iter([Piece("hi ", False), Piece(HOSTILE, False)])}
    contract = Contract("", "", lambda address, key: True, requests)
    engine = Peer("m", "hostile", contract, Address("", 0), "", lambda seconds: False)
    talk = Talk(engine, "chat", 8, 1.0, out, io.StringIO())
    answer_once(talk, "hello", out)
    assert out.getvalue() == "hi " + (visible(HOSTILE) if out.isatty() else HOSTILE) + "\n"
