"""The policies of one engine family: read, checked against its vocabulary, kept compiled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gezel_rules.engines import registry
from gezel_rules.policy.seal import load_policies

if TYPE_CHECKING:
    from gezel_rules.engines.protocol import Family
    from gezel_rules.policy.language import Language, Needs
    from gezel_rules.policy.model import PolicySet


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


LANGUAGES = registry.EveryFamily(language_of)


def read_policies(
    directory: Path, family: Family, cache: Path | None, layers: Sequence[Path] = ()
) -> PolicySet:  # fmt: skip
    """The policies that hold for a family, with the ``layers`` laid over them. Raises BadInput with every problem."""
    code = partial(registry.code_of, family)
    return load_policies(directory, family.name, LANGUAGES, cache, code=code, layers=layers)
