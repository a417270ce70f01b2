"""The policies of one engine family: read, checked against its vocabulary, kept compiled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gezel_rules.facts.vocabulary import fact_types
from gezel_rules.policy.seal import load_policies

if TYPE_CHECKING:
    from gezel_rules.engines.protocol import Family
    from gezel_rules.policy.model import PolicySet
    from gezel_rules.policy.needs import Needs


def read_policies(directory: Path, family: Family, cache: Path | None) -> PolicySet:
    """The policies that hold for a family. Raises BadInput with every problem."""
    words = family.vocabulary()
    return load_policies(directory, fact_types(words), family.signatures(), cache, lambda: needs_of(family))


def needs_of(family: Family) -> Needs:
    """What code reads of the policies by name: the core's, and the family's."""
    from gezel_rules.planner.needs import CORE  # only when a set is compiled

    return CORE.plus(family.needs())
