"""Kinds and values in the words that messages and pages have for them."""

from __future__ import annotations

from gezel_rules.documents import declare
from gezel_rules.documents.declare import Kind
from gezel_rules.documents.kinds import FLAG, INTEGER, LIST, MAP, NUMBER, TEXT

_ACCEPTS: dict[type, tuple[str, ...]] = {
    declare.Text: (TEXT,),
    declare.Word: (TEXT,),
    declare.Name: (TEXT,),
    declare.Flag: (FLAG,),
    declare.List: (LIST,),
    declare.Map: (MAP,),
    declare.Shape: (MAP,),
    declare.Variants: (MAP,),
}


def accepts(kind: Kind) -> tuple[str, ...]:
    """The kinds of YAML values that may be one, in the words of messages."""
    if (always := _ACCEPTS.get(type(kind))) is not None:
        return always
    if isinstance(kind, declare.Number):
        return (INTEGER,) if kind.whole else (NUMBER,)
    if isinstance(kind, declare.Either):
        return tuple(dict.fromkeys(word for each in kind.kinds for word in accepts(each)))
    return kind.kinds if isinstance(kind, (declare.Anything, declare.Block)) else ()


def wanted(kind: Kind) -> str:
    """What a value must be, as far as YAML tells: ``text or mapping``, or what the kind itself is called."""
    if isinstance(kind, declare.Either):
        return " or ".join(dict.fromkeys(map(wanted, kind.kinds)))
    return kind.a if isinstance(kind, declare.Anything) and kind.a else " or ".join(accepts(kind))


def bounds(kind: declare.Number) -> str:
    """``from 0 to 10``, ``at least 1 token``, ``more than 0 bytes``; nothing for a number without bounds."""
    if kind.least is not None and kind.most is not None:
        return f"from {kind.least:,} to {_counted(kind.most, kind.unit)}"
    ends = (("at least", kind.least), ("more than", kind.above), ("at most", kind.most))
    return " and ".join(f"{said} {_counted(end, kind.unit)}" for said, end in ends if end is not None)


def as_yaml(value: object) -> str:
    """A scalar as YAML writes it: ``true``, not ``True``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _counted(number: float, unit: str) -> str:
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}".rstrip()
