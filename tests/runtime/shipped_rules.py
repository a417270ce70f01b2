"""How the shipped policies, or others, have engines supervised, and their logs judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.logs.sealed import log_policy
from gezel_rules.logs.watch import Verdict, classify
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies
from gezel_rules.runtime.rules import Supervision, supervision


def shipped_rules(policies: Path | None = None) -> Supervision:
    """The supervision of a directory's policies."""
    return supervision(read_policies(policies or policies_dir(), FAMILY, None))


def shipped_judge(backend: str | None) -> Callable[..., Verdict]:
    """The shipped log policy's verdict, as for a build of this backend."""
    policy = log_policy(read_policies(policies_dir(), FAMILY, None))
    return lambda lines, exit_status: classify(lines, policy, backend, exit_status)
