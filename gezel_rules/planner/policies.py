"""The policies of one engine family: read, checked against its vocabulary, kept compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gezel_rules.engines import registry
from gezel_rules.policy.seal import load_policies

if TYPE_CHECKING:
    from gezel_rules.engines.protocol import Family
    from gezel_rules.policy.language import Language, Needs
    from gezel_rules.policy.model import PolicySet


class EveryFamily(Mapping[str, "Callable[[], Language]"]):
    """The language of each family there is, by its name; a family's code is loaded when its language is made."""

    def __getitem__(self, name: str) -> Callable[[], Language]:
        return partial(language_of, name)

    def __contains__(self, name: object) -> bool:
        return name in registry.FAMILIES or name in registry.names()

    def __iter__(self) -> Iterator[str]:
        return iter(registry.names())

    def __len__(self) -> int:
        return len(registry.names())


LANGUAGES = EveryFamily()


def language_of(name: str) -> Language:
    """What a family's policies may read and call, and what the core and the family read of them by name. Raises
    BadInput when there is no such family."""
    from gezel_rules.facts.vocabulary import fact_types  # these, too, only when a set is compiled
    from gezel_rules.policy.language import Language

    family = registry.family(name)
    return Language(fact_types(family.vocabulary()), family.signatures(), partial(_needs, family))


def _needs(family: Family) -> Needs:
    from gezel_rules.planner.needs import CORE  # only when a set is compiled

    return CORE.plus(family.needs())


def read_policies(directory: Path, family: Family, cache: Path | None) -> PolicySet:
    """The policies that hold for a family. Raises BadInput with every problem."""
    return load_policies(directory, family.name, LANGUAGES, cache, code=partial(registry.code_of, family))
