"""What a site file may hold, for editors and for people: its frame with every setting there is.

What a setting may be is declared where it is named (``vocabulary.Word``), and read by ``setting_values`` alike from
a file, a variable or the command line. Here the same is said of YAML.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gezel_rules.documents.declare import (
    ANYTHING,
    FLAG,
    Either,
    Field,
    Kind,
    List,
    Map,
    Name,
    Number,
    Shape,
    Text,
    optional,
)
from gezel_rules.documents.declare import whole as whole_number
from gezel_rules.facts.setting_values import AMOUNT, FLAGS, WHOLE
from gezel_rules.facts.settings import SITE

if TYPE_CHECKING:
    from gezel_rules.facts.vocabulary import Word

_PREFIX = "settings."


def _any_case(word: str) -> str:
    """A pattern for the word in capitals or not."""
    return "".join(f"[{letter}{letter.upper()}]" if letter.isalpha() else letter for letter in word)


_SWITCH = Text("a switch", ("on", "off"), pattern=rf"\s*({'|'.join(map(_any_case, FLAGS))})\s*")
_AMOUNTS = {
    "tokens": Text("an amount", ("64k",), pattern=rf"\s*{AMOUNT}\s*"),
    "bytes": Text("an amount", ("24 GiB",), pattern=rf"\s*{AMOUNT}\s*"),
}
_WHOLE = Text("a whole number", ("65,536",), pattern=rf"\s*{WHOLE}\s*")
_NOT_BLANK = Text(pattern=r"[^\0]*[^\0\s][^\0]*")
_KINDS: dict[str, Kind] = {
    "text": Either((_NOT_BLANK, Number())),
    "flag": Either((FLAG, _SWITCH, whole_number(least=0, most=1))),
    "list": Either((List(ANYTHING), Text())),
}


def site(words: Iterable[Word]) -> Shape:
    """The shape of a site file for a vocabulary: its words ``settings.*`` are what may be set."""
    fields = {word.name.removeprefix(_PREFIX): _field(word) for word in words if word.name.startswith(_PREFIX)}
    settings = Shape("settings", fields)
    sections: dict[str, Kind] = {"settings": settings, "models": Map(settings)}
    return SITE._replace(fields={key: SITE.fields[key]._replace(kind=kind) for key, kind in sections.items()})


def _field(word: Word) -> Field:
    unit = f", in {word.unit}" if word.unit and word.unit not in word.says else ""
    return optional(_kind(word), f"{word.says[:1].upper()}{word.says[1:]}{unit}.")


def _kind(word: Word) -> Kind:
    if word.rows_of:
        return Name(word.rows_of, word.name.removeprefix(_PREFIX))
    if word.kind == "integer":
        number = whole_number(least=word.minimum, most=word.maximum, unit=word.unit)
        return Either((number, _AMOUNTS.get(word.unit, _WHOLE)))
    if word.kind == "number":
        return Either((Number(least=word.minimum, most=word.maximum), _NOT_BLANK))
    return _KINDS[word.kind]
