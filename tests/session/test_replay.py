"""A launch decided again: what differs is followed to the rule that makes the difference."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gezel_rules.places import policies_dir
from gezel_rules.planner.record import plan_record
from gezel_rules.session import Conditions, session_for
from gezel_rules.session.recorded import Recorded, valid
from gezel_rules.session.replay import replay, replay_json

KV, CAPACITY = "llama-cpp/kv.yaml", "memory/capacity.yaml"


@pytest.fixture
def session():
    return session_for(None, None, None)


@pytest.fixture
def changed(session, tmp_path):
    """Makes a session whose policies have one text of one file replaced."""

    def change(file: str, old: str, new: str):
        copy = tmp_path / "policies"
        shutil.copytree(policies_dir(), copy, dirs_exist_ok=True)
        path = copy / file
        assert path.read_text().count(old) == 1
        path.write_text(path.read_text().replace(old, new))
        return session._replace(policies=copy)

    return change


def recorded(session, model: str, host: str, *settings: str) -> Recorded:
    plan = session.plan(model, Conditions(settings, host))
    return Recorded("a-launch", valid(json.loads(json.dumps(plan_record(plan))), "a record"))


def line_of(text: str, file: str = KV) -> int:
    """The line of a rule whose text is given."""
    return Path(policies_dir() / file).read_text().partition(text)[0].count("\n") + 1


def test_the_same_policies_decide_alike(session):
    found = replay(session, recorded(session, "llama-3.1-8b", "rtx-4090"))
    assert found.difference.empty and found.same_policies
    assert replay_json(found)["same"] is True and replay_json(found)["changes"] == []


def test_a_changed_line_is_named(session, changed):
    launch = recorded(session, "llama-3.2-1b", "rtx-4090")
    found = replay_json(replay(changed(KV, "then: \"'f16'\"", "then: \"'q8_0'\""), launch))
    types = [change for change in found["changes"] if change["decision"].startswith("flag.cache-type")]
    assert [change["after"][1] for change in types] == ["q8_0", "q8_0"]
    line = line_of("- id: f16\n")
    for change in types:
        (turn,) = change["because_of"]
        assert turn["decision"] == "kv.finest" and (turn["before"]["value"], turn["after"]["value"]) == ("f16", "q8_0")
        assert turn["before"]["source"] == turn["after"]["source"] == {"file": f"policies/{KV}", "line": line}
    assert found["memory"]["CUDA0"]["after"] < found["memory"]["CUDA0"]["before"]
    assert found["figures"]["kv_type_k"] == {"before": "f16", "after": "q8_0"}


def test_a_rule_that_takes_over_is_named_beside_the_one_it_beats(session, changed):
    launch = recorded(session, "llama-3.2-1b", "cpu-32g")
    before = "      - id: f16\n        then"
    rule = "      - id: small\n        when: model.weights_bytes > 0\n        then: \"'q8_0'\"\n" + before
    found = replay_json(replay(changed(KV, before, rule), launch))
    (turn,) = found["changes"][0]["because_of"]
    assert (turn["before"]["rule"], turn["after"]["rule"]) == ("f16", "small")


def test_what_changes_without_effect_shows_nothing(session, changed):
    launch = recorded(session, "llama-3.1-8b", "rtx-4090")
    found = replay(changed(KV, "because: the engine's own, and", "because: it is the engine's own, and"), launch)
    assert found.difference.empty and not found.same_policies


def test_a_table_that_only_code_reads_changes_a_launch(session, changed):
    launch = recorded(session, "llama-3.1-8b", "rtx-4090", "window=64k")
    found = replay_json(replay(changed(CAPACITY, "discrete:   {share: 1.0", "discrete:   {share: 0.25"), launch))
    assert found["changes"] and all(change["because_of"] for change in found["changes"])
    assert found["memory"]["CUDA0"]["after"] < 6 << 30


def test_a_refusal_is_a_difference(session, changed):
    launch = recorded(session, "llama-3.1-8b", "cpu-32g")
    found = replay_json(replay(changed(CAPACITY, "ram:        {share: 1.0", "ram:        {share: 0.1"), launch))
    (refusal,) = [change for change in found["changes"] if change["decision"] == "refusal"]
    assert (refusal["before"], refusal["after"]) == (None, "no-room")
