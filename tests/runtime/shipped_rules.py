"""How the shipped policies, or others, have engines supervised."""

from __future__ import annotations

from pathlib import Path

from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies
from gezel_rules.runtime.rules import Supervision, supervision


def shipped_rules(policies: Path | None = None) -> Supervision:
    """The supervision of a directory's policies."""
    return supervision(read_policies(policies or policies_dir(), FAMILY, None))
