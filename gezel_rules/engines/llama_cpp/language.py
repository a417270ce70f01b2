"""The language of this family's policies."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.functions import SIGNATURES
from gezel_rules.engines.llama_cpp.needs import NEEDS
from gezel_rules.facts.vocabulary import fact_types
from gezel_rules.policy.language import Language

FAMILY = "llama-cpp"


def language() -> Language:
    """Facts of the vocabulary, functions bound by ``capacity``, and what this family's code reads."""
    return Language(fact_types(), SIGNATURES, NEEDS)
