"""The recorded logs, and the shipped log policy, for the tests of the watch."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.logs.model import LogPolicy
from gezel_rules.logs.sealed import log_policy
from gezel_rules.logs.watch import Verdict, classify
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies

FOLDER = Path(__file__).parent.parent / "data" / "logs"


@cache
def cases() -> tuple[dict[str, Any], ...]:
    """The recorded cases of the first collection."""
    return _read("cases.jsonl")


@cache
def further_cases() -> tuple[dict[str, Any], ...]:
    """Those of the later collections, chosen for unusual wording; ``gpu_also`` and ``failure_also`` are right too."""
    return _read("cases-2.jsonl") + _read("reported.jsonl")


def _read(name: str) -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines())


@cache
def shipped() -> LogPolicy:
    """The log policy that is shipped."""
    return log_policy(read_policies(policies_dir(), FAMILY, None))


def judged(case: dict[str, Any], lines: list[str] | None = None) -> Verdict:
    """The verdict on a case, or on other lines with its exit status."""
    return classify(case["lines"] if lines is None else lines, shipped(), exit_status=case.get("exit_code"))


def outcome(verdict: Verdict) -> tuple[str, str | None]:
    """What a verdict comes to."""
    return verdict.gpu, verdict.failure
