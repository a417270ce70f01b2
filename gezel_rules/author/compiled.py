"""The compiled policies that a package carries: a copy, so that a first start reads no YAML."""

from __future__ import annotations

from pathlib import Path

from gezel_rules.logs.sealed import log_policy
from gezel_rules.policy.language import Languages
from gezel_rules.policy.seal import load_policies


def compile_all(directory: Path, languages: Languages, into: Path) -> None:
    """Leave the compiled set of every family in ``into``, log policies proved. Raises BadInput with every problem."""
    for family in languages:
        log_policy(load_policies(directory, family, languages, into))
