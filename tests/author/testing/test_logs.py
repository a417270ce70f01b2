"""Cases of logs: what they say of a verdict that is otherwise, what they show, and which mistakes they notice."""

from __future__ import annotations

import pytest

from gezel_rules.author.testing.cases import Log
from gezel_rules.author.testing.logs import RanLog, court_of, covered_logs, log_mutants, noticed, run_log
from gezel_rules.author.testing.run import Results
from gezel_rules.author.testing.told import failures
from gezel_rules.documents.node import Text
from gezel_rules.documents.source import parse_yaml
from gezel_rules.engines import registry
from gezel_rules.logs.model import LogPolicy
from gezel_rules.logs.sealed import log_policy
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies

GPU = "policies/llama-cpp/logs/gpu.yaml"
NAMED = "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 4070) - 11011 MiB free"
NONE = "llm_load_tensors: offloaded 0/33 layers to GPU"


@pytest.fixture(scope="module")
def policy() -> LogPolicy:
    return log_policy(read_policies(policies_dir(), registry.family("llama-cpp"), None))


def ran(policy: LogPolicy, *lines: str, **expected: object) -> RanLog:
    node = parse_yaml(Text("policies/llama-cpp/logs/gpu_test.yaml", "it is so: 1")).value["it is so"]
    return run_log(Log("it is so", node, lines, None, None, None, tuple(expected.items())), policy)


def test_a_verdict_that_is_otherwise(policy: LogPolicy) -> None:
    found = ran(policy, NAMED, NONE, gpu="in-use", failure=None)
    line = next(rule.place.line for rule in policy.rules if rule.id == "nothing-offloaded")
    results = Results(None, (), (), (found,))  # type: ignore[arg-type]
    results = results._replace(suite=type("Suite", (), {"words": None}))
    assert list(failures(results)) == [[
        "policies/llama-cpp/logs/gpu_test.yaml:1: log: it is so",
        "    expected  gpu in-use",
        "    got       gpu not-loaded",
        f"    rule      nothing-offloaded ({GPU}:{line})",
        f"    line      {NONE}",
    ]]  # fmt: skip


def test_a_backend_that_nobody_knows(policy: LogPolicy) -> None:
    found = ran(policy, NAMED, gpu="in-use").case._replace(backend="cudda")
    assert [each.got for each in run_log(found, policy).differences] == ["cudda"]


def test_what_one_log_shows(policy: LogPolicy) -> None:
    found = covered_logs(GPU, policy, [ran(policy, NAMED, gpu="in-use")])
    before = [rule.id for rule in policy.rules].index("named")
    assert found.rules == (before + 2, 2 * len(policy.rules))  # it, those before it, and the last, which needs nothing
    said = {(gap.rule, gap.says) for gap in found.gaps}
    assert {("named", "fires in every log that tries it"), ("named", "never missing: device-named")} < said
    assert {("context-refused", "fires in no log"), ("filled", "no log tries it")} < said


def test_mistakes_that_one_log_notices(policy: LogPolicy) -> None:
    log = ran(policy, NAMED, NONE, gpu="not-loaded", gpu_rule="nothing-offloaded")
    assert log.passed
    court = court_of(log, policy)
    found = [each.mutant for each in log_mutants(GPU, policy) if noticed(each, log, court)]
    assert [f"{each.part}: {each.kind}: {each.says}" for each in found] == [
        "context-refused: negate: without 'backend-init-failed'",
        "nothing-offloaded: drop: without it",
    ]


def test_verdicts_that_exclude_each_other_need_no_order(policy: LogPolicy) -> None:
    swaps = [each.mutant.part for each in log_mutants(GPU, policy) if each.mutant.kind == "swap"]
    assert "named" in swaps
    assert "software-renderer" in swaps and "software-renderer-found" not in swaps  # none: [device-named]
