"""The policies of a directory, as every command reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gezel_rules.engines.llama_cpp.functions import SIGNATURES
from gezel_rules.facts.vocabulary import fact_types
from gezel_rules.policy.model import PolicySet
from gezel_rules.policy.seal import load_policies

if TYPE_CHECKING:
    from gezel_rules.policy.needs import Needs


def read_policies(directory: Path, cache: Path | None) -> PolicySet:
    """The policies of a directory, checked against the vocabulary. Raises BadInput with every problem."""
    return load_policies(directory, fact_types(), SIGNATURES, cache, needs)


def needs() -> Needs:
    """What the program reads of a set."""
    from gezel_rules.engines.llama_cpp.needs import NEEDS  # only when a set is compiled
    from gezel_rules.planner.needs import CORE

    return CORE.plus(NEEDS)
