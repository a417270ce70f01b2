"""A bounds-checked position in a header: every length is held against the file before a byte is allocated for it."""

from __future__ import annotations

from collections.abc import Callable
from mmap import mmap
from struct import Struct
from typing import Any

from gezel_rules.errors import BadInput

Buffer = bytes | bytearray | mmap

KINDS = {
    0: ("UINT8", "B"),
    1: ("INT8", "b"),
    2: ("UINT16", "H"),
    3: ("INT16", "h"),
    4: ("UINT32", "I"),
    5: ("INT32", "i"),
    6: ("FLOAT32", "f"),
    7: ("BOOL", "?"),
    8: ("STRING", ""),
    9: ("ARRAY", ""),
    10: ("UINT64", "Q"),
    11: ("INT64", "q"),
    12: ("FLOAT64", "d"),
}
"""GGUF value type → its name and struct code (none for texts and arrays)."""

LONGEST_KEPT_TEXT = 1 << 20
"""Bytes; a chat template has tens of thousands."""
KEPT_BYTES = 12 << 20
"""What all metadata together may take in memory: with the tensors and a read buffer it stays below 64 MiB."""
LARGEST_MAPPED = 128 << 20
"""Bytes of a mapped file that a header may take; what goes on longer is corrupt (zeros read as empty strings)."""
_ENTRY_BYTES = 256  # a dict slot, the objects' own heads, rounded up


class Incomplete(Exception):  # (asks for more bytes; nothing is wrong)
    """The bytes in hand end before the header does; ``needed`` of them (from the start) carry it further."""

    def __init__(self, needed: int) -> None:
        self.needed = needed
        super().__init__(needed)


def shown(text: str, limit: int = 60) -> str:
    """Untrusted text made fit for one line: quoted, control characters escaped, cut."""
    return ascii(text if len(text) <= limit else text[:limit] + "…")


class Cursor:
    """Reads forward through ``buf``, the first bytes of the file ``name`` of ``size`` bytes (``None``: not known)."""

    __slots__ = ("budget", "buf", "have", "name", "order", "pos", "size", "structs", "u32", "u64")

    def __init__(self, buf: Buffer, name: str, size: int | None) -> None:
        self.buf, self.name, self.size = buf, name, size
        self.have = min(len(buf), LARGEST_MAPPED)
        self.pos = 0
        self.budget = KEPT_BYTES
        self.set_order("<")

    def set_order(self, order: str) -> None:
        """``<`` or ``>``: how numbers lie in this file."""
        self.order = order
        self.structs = {kind: Struct(order + code) for kind, (_, code) in KINDS.items() if code}
        self.u32: Callable[..., tuple[Any, ...]] = self.structs[4].unpack_from
        self.u64: Callable[..., tuple[Any, ...]] = self.structs[10].unpack_from

    def bad(self, what: str, at: int | None = None) -> BadInput:
        """The one-line error, to be raised: file, what is wrong, byte offset."""
        return BadInput(f"{self.name}: {what} (at byte {self.pos if at is None else at})")

    def need(self, count: int, what: str) -> int:
        """Where the next ``count`` bytes end, once they are known to be there.

        Raises ``BadInput`` when the file is too short for them, ``Incomplete`` when only the buffer is.
        """
        end = self.pos + count
        if end > self.have:
            if self.size is not None and end > self.size:
                raise self.bad(f"{what} needs {count} bytes, but only {self.size - self.pos} are left in the file")
            raise Incomplete(end)
        return end

    def number(self, kind: int, what: str) -> Any:
        """One number of the GGUF value type ``kind``."""
        layout = self.structs[kind]
        end = self.need(layout.size, what)
        value = layout.unpack_from(self.buf, self.pos)[0]
        self.pos = end
        return value

    def count(self, smallest: int, what: str) -> int:
        """A 64-bit count of things of at least ``smallest`` bytes each, held against what is left of the file."""
        at = self.pos
        count: int = self.number(10, what)
        if self.size is not None and count * smallest > self.size - self.pos:
            raise self.bad(f"{what} is {count}, but only {self.size - self.pos} bytes are left in the file", at)
        return count

    def identifier(self, limit: int, what: str) -> str:
        """A key or a tensor name: a length, then at most ``limit`` bytes of valid UTF-8."""
        at = self.pos
        start = self.need(8, what)
        length = self.u64(self.buf, at)[0]
        if length > limit:
            raise self.bad(f"{what} has {length} bytes, more than {limit}")
        self.pos = start
        self.pos = end = self.need(length, what)
        try:
            return str(self.buf[start:end], "utf-8")
        except UnicodeDecodeError:
            raise self.bad(f"{what} is not UTF-8", at) from None

    def keep(self, size: int, what: str) -> None:
        """Charge ``size`` bytes (plus the entry itself) to the memory that metadata may take."""
        self.budget -= size + _ENTRY_BYTES
        if self.budget < 0:
            raise self.bad(f"metadata takes more than {KEPT_BYTES >> 20} MiB up to {what}")
