"""The policies of one engine family: read, checked against its vocabulary, kept compiled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gezel_rules.facts.vocabulary import fact_types
from gezel_rules.policy.seal import load_policies

if TYPE_CHECKING:
    from gezel_rules.engines.family import Family
    from gezel_rules.policy.model import PolicySet


def read_policies(directory: Path, family: Family, cache: Path | None) -> PolicySet:
    """The policies that hold for a family. Raises BadInput with every problem."""
    return load_policies(directory, fact_types(family.vocabulary()), family.signatures(), cache, family.needs)
