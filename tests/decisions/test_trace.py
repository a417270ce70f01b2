"""A judgement as data: winner, level, facts with their provenance, and for every rule that lost the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_set import TABLES, WORLD, decided
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from gezel_rules.decisions.trace import Explainer
from gezel_rules.facts.fact import UNKNOWN

UNITS = {"gpu.free": "bytes", "settings.window": "tokens"}
LADDER = """
kv.type:
  says: The precision of the cache.
  rules:
    - id: operator
      when: settings.kv_type is not none
      then: settings.kv_type
      because: the operator chose {settings.kv_type}
    - id: room
      when: gpu.free > 1000000 and model.layers < 100
      then: "'f16'"
      because: "{gpu.free} are free"
    - id: deep
      when: model.layers >= 32
      then: "'q8_0'"
      because: "{model.layers} layers are many"
      evidence: {note: "no measurable cost", measured: 2026-08-03}
      level: gguf
    - id: moe-too
      when: model.moe and model.layers > 3
      then: "'q4_0'"
    - id: default
      then: "'f16'"
"""
SEARCH = """
kv.enough:
  hit: search
  over: kv_types
  rules:
    - {id: asked-only, when: not candidate.automatic, then: reject, because: "{candidate.name} only when asked"}
    - {id: too-wide, when: candidate.bytes * model.layers > 1500, then: reject, because: "{candidate.bytes} is wide"}
    - {id: fits, then: accept, because: "{candidate.name} at {candidate.bytes}"}
"""
FLAGS = """
flag.ctx: {flag: --ctx-size, then: window, because: "{window}"}
flag.fit: {flag: --fit, then: "'off'"}
flag.new: {flag: --new, then: true}
window: {when: settings.window is not none, then: settings.window, because: "the operator chose {settings.window}"}
"""
COLLECT = """
all:
  hit: collect
  rules:
    - {id: moe, when: model.moe, then: "'moe'"}
    - {id: arch, then: model.arch}
    - {id: deep, when: model.layers > 3, then: "'deep'"}
"""
UNIQUE = """
one:
  hit: unique
  rules:
    - {id: moe, when: model.moe == true, then: 1}
    - {id: dense, when: not model.moe, then: 2, because: it is dense}
    - {id: other, when: "model.arch in ['qwen3', 'gemma']", then: 3}
"""
NOTHING = """
nothing.fires: {when: model.moe and model.layers > 3, then: 1}
nothing.known: {when: gpu.free > 3 or model.moe, then: 1}
whole: {then: gpu.free}
"""
CASES = {
    "first": (LADDER, {}),
    "first-operator": (LADDER, {"settings_kv_type": "q4_0"}),
    "first-known": (LADDER, {"gpu_free": 23_000_000_000}),
    "first-default": (LADDER, {"model_layers": 2}),
    "search": (SEARCH, {}),
    "search-in-vain": (SEARCH, {"model_layers": 90}),
    "flags": (FLAGS, {}),
    "collect": (COLLECT, {}),
    "unique": (UNIQUE, {}),
    "nothing": (NOTHING, {}),
}


@pytest.fixture
def as_json(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(JSONSnapshotExtension)


def traced(directory: Path, decisions: str, **facts: Any) -> list[dict[str, Any]]:
    trace = decided(directory, decisions, TABLES, **facts)
    explain = Explainer(trace, UNITS)
    return [explain.to_json(judgement) for judgement in trace.judgements.values()]


@pytest.mark.parametrize("case", CASES)
def test_traces(tmp_path: Path, case: str, as_json: SnapshotAssertion) -> None:
    decisions, facts = CASES[case]
    traces = traced(tmp_path, decisions, **facts)
    assert json.loads(json.dumps(traces)) == traces  # plain JSON, nothing else
    assert traces == as_json


def test_every_rule_is_accounted_for(tmp_path: Path) -> None:
    for decisions, facts in CASES.values():
        trace = decided(tmp_path, decisions, TABLES, **facts)
        explain = Explainer(trace, UNITS)
        for judgement in trace.judgements.values():
            entry = explain.to_json(judgement)
            said = {beaten["rule"].split(" (")[0] for beaten in entry["beaten"]} | {entry["rule"]}
            assert said >= {rule.id for rule in judgement.decision.rules} or judgement.decision.hit == "search"
            assert all(beaten["why"] for beaten in entry["beaten"])


def test_the_level_is_the_rule_s_own_or_that_of_what_it_passes_on(tmp_path: Path) -> None:
    levels = {entry["name"]: entry["level"] for entry in traced(tmp_path, FLAGS + LADDER)}
    assert levels == {
        "flag.ctx": "operator", "flag.fit": "policy", "flag.new": "policy", "window": "operator", "kv.type": "gguf",
    }  # fmt: skip


def test_facts_carry_their_source_what_they_beat_and_what_would_settle_them(tmp_path: Path) -> None:
    (entry,) = traced(tmp_path, "a: {when: gpu.free > 3 or settings.window is not none, then: 1}")
    assert entry["facts"] == {
        "gpu.free": {
            "value": None, "source": "engine --list-devices", "unknown": True, "settle": "gezel-rules devices",
            "level": "probe",
        },
        "settings.window": {
            "value": 8192, "source": "--set", "level": "operator",
            "beaten": [{"level": "machine", "value": 4096, "source": "site.yaml:3"}],
        },
    }  # fmt: skip


def test_an_unknown_value_is_no_number(tmp_path: Path) -> None:
    (entry,) = traced(tmp_path, "whole: {then: gpu.free}")
    assert WORLD["gpu.free"].value is UNKNOWN
    assert entry["value"] is None
