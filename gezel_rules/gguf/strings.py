"""Walking over an array of length-prefixed strings without creating them: a vocabulary has 262,144.

A possessive pattern over blocks of 256 strings, commonest lengths first, does in the regex engine's C loop what
``struct`` does at twice the time; a block with a longer string in it is walked by ``struct``, exactly.
"""

from __future__ import annotations

import re
from functools import cache

from gezel_rules.gguf.cursor import Cursor

_BLOCK = 256
_LENGTHS = 64  # longer strings are rare in vocabularies and merges
_COMMONEST = (6, 7, 5, 4, 8, 3, 9, 10, 12, 11, 13, 2, 15, 14)  # of Gemma's and Llama's vocabularies, in bytes
_WORTH_COMPILING = 8192  # strings; compiling the pattern takes 1.3 ms, as long as walking this many


def skip_strings(cursor: Cursor, count: int, what: str) -> None:
    """Move ``cursor`` behind ``count`` strings.

    Raises ``BadInput`` at the first that the file is too short for, ``Incomplete`` where only the buffer is.
    """
    if cursor.order == "<" and count >= _WORTH_COMPILING:
        match, buf = _pattern().match, cursor.buf
        while count >= _BLOCK:
            block = match(buf, cursor.pos)
            if block:
                cursor.pos = block.end()
            else:
                _walk(cursor, _BLOCK, count, what)
            count -= _BLOCK
    _walk(cursor, count, count, what)


@cache
def _pattern() -> re.Pattern[bytes]:
    order = [*_COMMONEST, *(n for n in range(_LENGTHS) if n not in _COMMONEST)]
    strings = (re.escape(n.to_bytes(8, "little")) + (b".{%d}" % n if n else b"") for n in order)
    return re.compile(b"(?:" + b"|".join(strings) + b"){%d}+" % _BLOCK, re.DOTALL)


def _walk(cursor: Cursor, count: int, to_come: int, what: str) -> None:
    """``count`` strings by ``struct``, of the ``to_come`` the array still has: each is at least its length field."""
    u64, buf, have, pos = cursor.u64, cursor.buf, cursor.have, cursor.pos
    for done in range(count):
        end = pos + 8
        if end <= have:
            end += u64(buf, pos)[0]
        if end > have:
            cursor.pos = pos
            cursor.need(max(end - pos, 8 * (to_come - done)), f"the rest of {what}")
        pos = end
    cursor.pos = pos
