"""The policies of a directory, as every command reads them."""

from __future__ import annotations

from pathlib import Path

from gezel_rules.engines.llama_cpp.language import FAMILY, language
from gezel_rules.planner.needs import CORE
from gezel_rules.policy.language import Language, Languages
from gezel_rules.policy.model import PolicySet
from gezel_rules.policy.seal import load_policies


def _llama_cpp() -> Language:
    own = language()
    return own._replace(needs=CORE.plus(own.needs))


LANGUAGES: Languages = {FAMILY: _llama_cpp}


def read_policies(directory: Path, cache: Path | None, family: str = FAMILY) -> PolicySet:
    """The policies of a directory, checked against the family's language. Raises BadInput with every problem."""
    return load_policies(directory, family, LANGUAGES, cache)
