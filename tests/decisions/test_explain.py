"""A decision explained in lines: value and place, reason, level, facts, what was beaten, evidence; and why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_set import TABLES, decided

from gezel_rules.decisions.explain import block, passed_on, sources, why_not_value
from gezel_rules.decisions.trace import Explainer

UNITS = {"gpu.free": "bytes", "settings.window": "tokens"}
LADDER = """
window:
  says: How long.
  rules:
    - {id: operator, when: settings.window is not none, then: settings.window, because: "chosen {settings.window}"}
    - {id: default, then: 65536}
kv.type:
  says: Which type.
  rules:
    - id: room
      when: gpu.free > 1000000 and model.layers < 100
      then: "'f16'"
      because: "{gpu.free} are free"
    - id: deep
      when: model.layers >= 32
      then: "'q8_0'"
      because: "{model.layers} layers are many at {window}"
      evidence: {note: no measurable cost, measured: 2026-08-03}
    - id: default
      then: "'f16'"
flag.kv: {flag: --fit-k, then: kv.type}
enough:
  hit: search
  over: kv_types
  rules:
    - {id: too-wide, when: candidate.bytes > 40, then: reject, because: "{candidate.bytes} is wide"}
    - {id: fits, then: accept}
chosen: {when: enough is not none, then: enough}
"""


@pytest.fixture
def explain(tmp_path: Path) -> Explainer:
    return Explainer(decided(tmp_path, LADDER, TABLES), UNITS)


def lines(explain: Explainer, name: str) -> list[str]:
    return list(block(explain, explain.trace.judgements[name]))


def test_a_block(explain: Explainer) -> None:
    assert lines(explain, "kv.type") == [
        "  kv.type = q8_0      policies/kv/kv.yaml:22 · rule deep · kv/kv 1.0.0",
        "    because   32 layers are many at 8,192 tokens",
        "    level     policy default",
        "    facts     model.layers 32 (GGUF llama.block_count)",
        "              window 8,192 tokens: chosen 8,192 tokens",
        "    beat      room: gpu.free is unknown",
        "              default: the default; 'deep' comes first",
        "    evidence  2026-08-03: no measurable cost",
    ]


def test_the_level_says_what_it_was_chosen_over(explain: Explainer) -> None:
    assert "    level     operator over 4096 (site.yaml:3)" in [
        line.replace("4,096", "4096") for line in lines(explain, "window")
    ]


def test_a_search_beats_candidates(explain: Explainer) -> None:
    assert "    beat      too-wide (f16): 64 is wide" in lines(explain, "enough")


def test_a_flag_hands_on_a_decision(tmp_path: Path) -> None:
    trace = decided(tmp_path, LADDER, TABLES, engine_flags=["--fit-k"], launch_arguments=[])
    explain = Explainer(trace, UNITS)
    flag = trace.judgements["flag.kv"]
    assert passed_on(explain, flag) is trace.judgements["kv.type"]
    assert trace.judgements["kv.type"] in sources(explain, flag)


def test_a_flag_that_stands_down_says_why(explain: Explainer) -> None:
    assert "    because   --fit-k is not in this build's --help" in lines(explain, "flag.kv")


def test_unknown_facts_say_what_would_settle_them(tmp_path: Path) -> None:
    rules = "a: {rules: [{id: deep, when: model.layers > 3 and gpu.free > 3, then: 1}]}"
    explain = Explainer(decided(tmp_path, rules), UNITS)
    assert "    because   no rule fires: gpu.free is unknown" in lines(explain, "a")
    assert any(
        "gpu.free unknown (engine --list-devices; gezel-rules devices would tell)" in x for x in lines(explain, "a")
    )


def _why_not(explain: Explainer, name: str, value: str) -> list[Any]:
    return list(why_not_value(explain, explain.trace.judgements[name], value))


def test_why_not(explain: Explainer) -> None:
    assert _why_not(explain, "kv.type", "q8_0") == ["  it is q8_0"]
    assert _why_not(explain, "kv.type", "f16")[0] == "  kv.type is not f16: rule room: gpu.free is unknown"
    assert _why_not(explain, "chosen", "f16") == ["  enough did not take f16: rule too-wide (f16): 64 is wide"]
    assert "no rule of window gives 3" in _why_not(explain, "window", "3")[0]


CHAIN = """
depth: {when: model.layers > 16, then: "'deep'", because: "{model.layers} layers"}
plan.kind:
  rules:
    - {id: slow, when: depth == 'deep', then: "'slow'", because: "it is {depth}"}
    - {id: quick, then: "'quick'"}
mode:
  rules:
    - {id: quick, when: plan.kind == 'quick', then: "'burst'"}
    - {id: calm, then: "'calm'"}
"""


def test_why_not_follows_decision_by_decision(tmp_path: Path) -> None:
    explain = Explainer(decided(tmp_path, CHAIN), UNITS)
    assert list(why_not_value(explain, explain.trace.judgements["mode"], "burst")) == [
        "  mode is not burst: rule quick: plan.kind is slow, not quick",
        "  because plan.kind is slow: it is deep",
        "  because depth is deep: 32 layers",
    ]
