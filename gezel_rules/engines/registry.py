"""Which engine families there are. The one list of them; a package installed beside this one may bring more.

Another package names its family as an entry point ``NAME = "module:FAMILY"`` of the group ``gezel_rules.families``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.cache import code_state
from gezel_rules.errors import BadInput
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.engines.protocol import Family
    from gezel_rules.policy.language import Language

GROUP = "gezel_rules.families"
_PACKAGE = Path(__file__).parents[1]
_CHECKING = [_PACKAGE / room for room in ("documents", "engines", "facts", "lang", "logs", "planner", "policy")]
"""Where the code stands that says what policies of every family may be, and checks them."""


class Listed(NamedTuple):
    """A family before its code is loaded: ``place`` is ``module:attribute``; ``variable`` names its program."""

    place: str
    says: str
    variable: str = ""


FAMILIES: Mapping[str, Listed] = {
    "llama-cpp": Listed(
        "gezel_rules.engines.llama_cpp.family:FAMILY", "llama-server, and the engine this package brings",
        "GEZEL_LLAMA_SERVER",
    ),
}  # fmt: skip


@cache
def family(name: str) -> Family:
    """The family of that name, its code loaded. Raises BadInput when there is none."""
    listed = FAMILIES.get(name) or _brought().get(name)
    if listed is None:
        from gezel_rules.documents.source import did_you_mean

        raise BadInput(f"no engine family '{name}'{did_you_mean(name, names())}")
    module, _, attribute = listed.place.partition(":")
    found: Family = getattr(import_module(module), attribute)
    return found


def names() -> list[str]:
    """Every family, those of this package first."""
    return [*FAMILIES, *(name for name in _brought() if name not in FAMILIES)]


@cache
def _brought() -> dict[str, Listed]:
    """Families of other packages. Looking for them reads the metadata of every installed package: not on a path that
    knows its family."""
    from importlib.metadata import entry_points

    return {point.name: Listed(point.value, f"from {point.value}") for point in entry_points(group=GROUP)}


class EveryFamily(Mapping[str, "Callable[[], Language]"]):
    """The language of each family there is, by its name: what ``language_of`` makes of the name, when it is wanted.
    Policies are read knowing every family, so that a file of another one beside them is not taken for one of all."""

    def __init__(self, language_of: Callable[[str], Language]) -> None:
        self._language_of = language_of

    def __getitem__(self, name: str) -> Callable[[], Language]:
        return partial(self._language_of, name)

    def __contains__(self, name: object) -> bool:
        return name in FAMILIES or name in names()

    def __iter__(self) -> Iterator[str]:
        return iter(names())

    def __len__(self) -> int:
        return len(names())


def code_of(family: Family) -> bytes:
    """What changes when the code that checks a family's policies does: sets are kept for it."""
    own = Path(str(sys.modules[type(family).__module__].__file__)).parent
    return code_state([*_CHECKING, own])


def of_file(path: str) -> Family:
    """The family a model on disk belongs to: the first that recognises it, else the default one, which then says what
    is wrong with it."""
    for name in _in_order():
        if (found := family(name)).recognises(Path(path)):
            return found
    return family(DEFAULT_FAMILY)


def _in_order() -> Iterator[str]:
    """This package's families first: others are looked for only when none of them recognises a file."""
    yield from FAMILIES
    yield from (name for name in _brought() if name not in FAMILIES)
