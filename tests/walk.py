"""A mistake somebody makes in a file by hand, and what a check must say of it: for the walks through policies and
catalog."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_CARET = re.compile(r"(?P<file>[^:]+):\d+:(?P<column>\d+): (?P<said>.*)\n    (?P<text>.*)\n    (?P<under>\s*\^+)\n")


class Mistake(NamedTuple):
    """In ``file``, ``old`` becomes ``new`` (once); ``under`` is what the caret must point at, ``said`` a part of the
    message."""

    file: str
    old: str
    new: str
    under: str
    said: str


def make(mistake: Mistake, directory: Path) -> None:
    """Write it into a copy of what is shipped."""
    text = (directory / mistake.file).read_text()
    assert mistake.old in text, "what is shipped says this no more"
    (directory / mistake.file).write_text(text.replace(mistake.old, mistake.new, 1))


def shown(mistake: Mistake, out: str, file: str) -> str:
    """What stands behind the one problem that is printed, which is in ``file`` with the caret under what is wrong."""
    found = _CARET.match(out)
    assert found is not None, out
    assert found["file"] == file
    assert mistake.said in found["said"]
    at = int(found["column"]) - 1
    assert found["text"][at : at + max(1, len(mistake.under))] == mistake.under or not mistake.under
    assert found["under"].index("^") == at
    return out[found.end() :]
