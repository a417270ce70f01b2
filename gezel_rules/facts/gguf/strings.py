"""Walking over an array of length-prefixed strings without creating them: a vocabulary has 262,144.

A possessive pattern over blocks of 256 strings, commonest lengths first, does in the regex engine's C loop what
``struct`` does at twice the time; a block with a longer string in it is walked by ``struct``, exactly.
"""

from __future__ import annotations

import re
from functools import cache

from gezel_rules.facts.gguf.cursor import Cursor

_BLOCK = 256
_LENGTHS = 64  # longer strings are rare in vocabularies and merges
_COMMONEST = (6, 7, 5, 4, 8, 3, 9, 10, 12, 11, 13, 2, 15, 14)  # of Gemma's and Llama's vocabularies, in bytes
_WORTH_COMPILING = 8192  # strings; compiling the pattern takes 1.3 ms, as long as walking this many


def skip_strings(cursor: Cursor, count: int, what: str) -> None:
    """Move ``cursor`` behind ``count`` strings; raises as ``Cursor.need`` does at the first that does not fit."""
    if cursor.order == "<" and count >= _WORTH_COMPILING:
        count = _skip_blocks(cursor, count, what)
    _walk(cursor, count, what)


def _skip_blocks(cursor: Cursor, count: int, what: str) -> int:
    """Whole blocks; returns how many strings are left over."""
    match, buf = _pattern().match, cursor.buf
    for _ in range(count // _BLOCK):
        block = match(buf, cursor.pos)
        if block:
            cursor.pos = block.end()
        else:
            _walk(cursor, _BLOCK, what)
    return count % _BLOCK


@cache
def _pattern() -> re.Pattern[bytes]:
    order = [*_COMMONEST, *(n for n in range(_LENGTHS) if n not in _COMMONEST)]
    strings = (re.escape(n.to_bytes(8, "little")) + (b".{%d}" % n if n else b"") for n in order)
    return re.compile(b"(?:" + b"|".join(strings) + b"){%d}+" % _BLOCK, re.DOTALL)


def _walk(cursor: Cursor, count: int, what: str) -> None:
    u64, buf, have, pos = cursor.u64, cursor.buf, cursor.have, cursor.pos
    for _ in range(count):
        if pos + 8 > have:
            break
        end = pos + 8 + u64(buf, pos)[0]
        if end > have:
            break
        pos = end
    else:
        cursor.pos = pos
        return
    cursor.pos = pos
    cursor.pos = cursor.need(8, f"a string of {what}")
    cursor.need(u64(buf, pos)[0], f"a string of {what}")
