"""The one value that stands for "not known". It has a module of its own because everything below facts needs it too."""

from __future__ import annotations

from typing import Final


class Unknown:
    """Neither true, false, zero nor ``None``: whoever treats it as one of them finds out at once."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "unknown"

    def __bool__(self) -> bool:
        raise TypeError("unknown is neither true nor false")


UNKNOWN: Final = Unknown()
