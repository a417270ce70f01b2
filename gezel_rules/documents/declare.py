"""What a file that people write may hold, declared once: keys, kinds, words, bounds, and what each of them means.

A declaration is plain data and does nothing by itself. ``documents.read`` reads a YAML node by it and says everything
that is wrong, ``documents.json_schema`` tells editors the same, ``author.reference`` prints it for people. What no
declaration can say (two keys that must agree, a name that must be the file's) is a function called after the reading.

    HOST = Shape("a host", {
        "cpus": required(whole(least=1), "CPUs a process may use."),
        "unified": optional(FLAG, "Whether the GPU shares the RAM."),
    })
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gezel_rules.documents import kinds as yaml
from gezel_rules.record import NamedTuple


class Text(NamedTuple):
    """A text. ``a`` is what a fitting one is called (``a tag``); ``least`` counts characters; ``pattern`` is a regular
    expression for the whole text that Python and JavaScript read alike.

    Where an expression cannot say it all, ``fault`` judges: it gives what is wrong, as the end of a sentence, or
    nothing. ``pattern`` is for editors then, and must let everything pass that ``fault`` does. ``means`` turns a
    fitting text into the value it stands for; ``None`` says that it stands for none. A text with a ``noun`` is quoted
    in messages.
    """

    a: str = ""
    examples: tuple[str, ...] = ()
    least: int = 0
    pattern: str = ""
    fault: Callable[[str], str] | None = None
    means: Callable[[str], Any] | None = None
    noun: str = ""
    otherwise: str = ""
    """What to do instead, put behind the message: ``leave it out while it is not known``."""


TEXT = Text()


class Word(NamedTuple):
    """One of some words that are known here; ``noun`` says what they are (``role``)."""

    words: tuple[str, ...]
    noun: str


class Name(NamedTuple):
    """The name of something declared elsewhere: ``of`` is a table of the policies, or another list that whoever checks
    it knows (``models``); ``noun`` says what it names (``backend``), ``like`` what every such name looks like.
    ``read.unknown_names`` holds names against what there is."""

    of: str
    noun: str
    like: Text = TEXT


class Number(NamedTuple):
    """A number, or a ``whole`` one: at ``least``, at ``most``, or ``above`` a bound; ``unit`` in the plural."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    unit: str = ""
    whole: bool = False
    otherwise: str = ""


class Flag(NamedTuple):
    """True or false."""


class Anything(NamedTuple):
    """A value that is taken as it stands, of one of these ``kinds`` (words of ``kinds.kind_of``), which messages call
    ``a`` (``a single value``)."""

    kinds: tuple[str, ...]
    a: str = ""


class Block(NamedTuple):
    """What is declared and read elsewhere, under this ``name``: the ``header`` of an entry. ``kinds`` as above."""

    name: str
    kinds: tuple[str, ...] = (yaml.MAP,)


class List(NamedTuple):
    """A list of at ``least`` so many items; ``noun`` is one of them. ``one_with`` (key, word): an item must have it."""

    of: Kind
    least: int = 0
    noun: str = ""
    one_with: tuple[str, str] | None = None
    otherwise: str = ""


class Map(NamedTuple):
    """A mapping whose keys are free, or of the kind ``keys``; every value is ``of`` one kind. Where that is a shape,
    ``{}`` in its ``what`` stands for the key."""

    of: Kind
    keys: Text | Name = TEXT


class Field(NamedTuple):
    """One key of a shape and what it ``says``; ``default`` counts where an optional one is left out."""

    kind: Kind
    says: str
    required: bool
    default: Any = None


class Shape(NamedTuple):
    """A mapping with known keys. ``what`` is what messages call it (``a host``); ``prefix`` stands before the names of
    its keys there; ``one_of`` are keys of which exactly one must be there, and the end of the sentence that says so.
    ``others`` is what any other key may hold; without it there are none. ``editors`` are keywords of JSON Schema that
    say to editors what a function checks after the reading."""

    what: str
    fields: Mapping[str, Field]
    says: str = ""
    prefix: str = ""
    one_of: tuple[tuple[str, ...], str] | None = None
    others: Kind | None = None
    editors: Mapping[str, Any] = {}


class Variants(NamedTuple):
    """A mapping of one of several shapes: the first whose key is there, else what it is ``otherwise``."""

    what: str
    by: Mapping[str, Shape]
    says: str = ""
    otherwise: Shape | None = None


class Either(NamedTuple):
    """One of several kinds that YAML itself tells apart: a text or a mapping."""

    kinds: tuple[Kind, ...]


Kind = Text | Word | Name | Number | Flag | Anything | Block | List | Map | Shape | Variants | Either

SINGLE = Anything((yaml.TEXT, yaml.INTEGER, yaml.NUMBER, yaml.FLAG), "a single value")
ANYTHING = Anything((*SINGLE.kinds, yaml.LIST, yaml.MAP, yaml.NOTHING), "a value")
WORDING = Text(least=1)
"""Text for people to read."""
FLAG = Flag()


def whole(**bounds: Any) -> Number:
    """A whole number; ``bounds`` as in ``Number``."""
    return Number(**bounds, whole=True)


def required(kind: Kind, says: str) -> Field:
    """A key that must be there."""
    return Field(kind, says, True)


def optional(kind: Kind, says: str, default: Any = None) -> Field:
    """A key that may be left out."""
    return Field(kind, says, False, default)
