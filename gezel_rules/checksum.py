"""Checksums of what is kept in caches: 16 bytes of BLAKE2b. To import hashlib takes longer than to check them all."""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know this name; typing itself is left to those who need it

if TYPE_CHECKING:
    from collections.abc import Iterable
    from hashlib import blake2b
else:
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

SIZE = 16


def checksum(parts: Iterable[bytes]) -> bytes:
    """``SIZE`` bytes that tell these parts, joined, from any others."""
    state = blake2b(digest_size=SIZE)
    for part in parts:
        state.update(part)
    return state.digest()
