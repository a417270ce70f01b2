"""Every model of the catalog on every described host: a plan or a refusal, kept as snapshots.

A changed rule shows here as the plans it changes; ``pytest tests/planner --snapshot-update`` accepts them. Nothing in
them depends on the machine the tests run on.
"""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import Any

import pytest
from shipped import HOSTS, MODELS, PAIRS, explained, plan
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from gezel_rules.decisions.explain import said_value
from gezel_rules.decisions.words import say
from gezel_rules.places import policies_dir
from gezel_rules.planner.plan import plan_with
from gezel_rules.planner.report import explainer, plan_json
from gezel_rules.policy.model import STAND_DOWNS

TELLING = [
    ("qwen3-8b", "rtx-4090"),  # a drafter for this backend
    ("glm-4.5-air", "rtx-4090"),  # experts on the CPU
    ("deepseek-v3", "h200"),  # refused: no room
]


@pytest.fixture
def kept(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(JSONSnapshotExtension)


def test_there_is_enough_to_see() -> None:
    assert len(MODELS) >= 12
    assert len(HOSTS) == 8


# ---------------------------------------------------------------- what was decided


def compact(model: str, host: str) -> dict[str, Any]:
    """A plan in one line per flag passed and per decision that a rule made: value, rule, level, because."""
    said, made = explained(model, host), plan(model, host)
    explain = explainer(made)
    passed = {flag["decision"]: shlex.join(flag["tokens"]) for flag in said["flags"]}
    lines = {}
    for decision in said["decisions"]:
        name = decision["name"]
        if name in passed or (decision["rule"] and not name.startswith("flag.")):
            value = passed.get(name) or said_value(explain, made.trace.judgements[name])
            lines[name] = f"{value} | {decision['rule']} | {decision['level']} | {decision['because']}"
    return {"refused": said["refused"], "warnings": said["warnings"], "notes": said["notes"], "decisions": lines}


@pytest.mark.parametrize("host", HOSTS)
def test_every_model_on_a_host(host: str, kept: SnapshotAssertion) -> None:
    assert {model: compact(model, host) for model in MODELS} == kept


@pytest.mark.parametrize(("model", "host"), TELLING)
def test_a_whole_trace(model: str, host: str, kept: SnapshotAssertion) -> None:
    """Facts with their sources, every rule beaten and why, the ladder; without line numbers, which every added line
    would change. The digest changes with every comment."""
    said = plan_json(plan(model, host))
    assert len(said["policy"]["digest"]) == 64
    assert without_lines({**said, "policy": {**said["policy"], "digest": "DIGEST"}}) == kept


def without_lines(data: Any) -> Any:
    """JSON data without the lines of files, in places and in words."""
    if isinstance(data, dict):
        return {key: without_lines(value) for key, value in data.items() if key != "line"}
    if isinstance(data, list | tuple):
        return [without_lines(item) for item in data]
    return re.sub(r"(\.yaml):\d+", r"\1", data) if isinstance(data, str) else data


# ---------------------------------------------------------------- each token has its rule


@cache
def policy_line(file: str, line: int) -> str:
    path = policies_dir().parent / file
    return path.read_text().splitlines()[line - 1].strip()


@pytest.mark.parametrize("host", HOSTS)
def test_every_decision_stands_where_it_says(host: str) -> None:
    """The rule's id is on that very line; a rule without one of its own is at its decision or at its flag."""
    for model in MODELS:
        for decision in explained(model, host)["decisions"]:
            line = policy_line(decision["source"]["file"], decision["source"]["line"])
            rule, name = decision["rule"], decision["name"]
            if rule in STAND_DOWNS:
                assert line.startswith("flag: "), decision
            elif rule in (None, "always", "passes"):
                assert line == f"{name}:" or line == f"- id: {rule}", decision
            else:
                assert line == f"- id: {rule}", decision


@pytest.mark.parametrize("host", HOSTS)
def test_every_token_belongs_to_a_decision(host: str) -> None:
    for model in MODELS:
        said = explained(model, host)
        decisions = {decision["name"]: decision for decision in said["decisions"]}
        assert [token for flag in said["flags"] for token in flag["tokens"]] == said["argv"]
        for flag in said["flags"]:
            decision = decisions[flag["decision"]]
            assert decision["rule"]
            assert decision["because"]
            assert decision["value"] is not None
            assert decision["value"] is not False


def test_every_reason_is_in_words() -> None:
    """No decision that is read anywhere says merely 'always', and no template is left unfilled."""
    for model, host in PAIRS:
        for decision in explained(model, host)["decisions"]:
            assert decision["because"] not in ("", "always"), decision["name"]
            assert "{" not in decision["because"], decision["because"]


# ---------------------------------------------------------------- refusals


REFUSED = [(model, host) for model, host in PAIRS if plan(model, host).refused]


@pytest.mark.parametrize(("model", "host"), REFUSED)
def test_a_refusal_says_what_is_short_and_what_would_fit(model: str, host: str) -> None:
    refused = explained(model, host)["refused"]
    if refused["kind"] == "excluded":
        assert "Choose another engine build" in refused["because"]
        return
    assert refused["kind"] == "no-room"
    assert refused["shortfall_bytes"] > 0
    assert f"{say(refused['shortfall_bytes'], 'bytes')} have no place" in refused["because"]
    other = refused["try"]
    if other["model"] is None:
        assert all(plan(name, host).refused for name in MODELS)
    elif other["model"] == model:
        assert not plan_with(plan(model, host), other["set"]).refused
    else:
        assert other["model"] in refused["nearest"]
        assert not plan(other["model"], host).refused


def test_a_plan_takes_no_more_than_there_is() -> None:
    for model, host in PAIRS:
        made = plan(model, host)
        for pool in () if made.refused else made.memory.pools:
            assert pool.used <= pool.usable, (model, host, pool)
