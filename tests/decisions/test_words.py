"""Values and lost conditions in words: whatever a rule says, its failure can be told."""

from __future__ import annotations

from typing import Any

import pytest
from expressions import CALLABLES, SCOPE, TYPES, checked, conditions, worlds
from hypothesis import given

from gezel_rules.decisions.words import say, say_bytes, why_not
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.lang.check import check
from gezel_rules.lang.evaluate import EvaluationError, Evaluator

UNITS = {"settings.window": "tokens", "gpu.share": "bytes"}


def told(text: str, **values: Any) -> str:
    """Why a condition does not hold over a world where everything else is unknown."""
    names = dict.fromkeys(TYPES, UNKNOWN) | {name.replace("_", ".", 1): value for name, value in values.items()}
    evaluator = Evaluator(names, CALLABLES)
    tree = check(text, SCOPE).tree
    assert evaluator.evaluate(tree) is not True
    return why_not(tree, evaluator.record, names, UNITS)


@given(conditions, worlds())
def test_every_lost_condition_can_be_told(text: str, names: dict[str, Any]) -> None:
    tree = checked(text).tree
    evaluator = Evaluator(names, CALLABLES)
    try:
        held = evaluator.evaluate(tree)
    except EvaluationError:
        return
    if held is True:
        return
    said = why_not(tree, evaluator.record, names, UNITS)
    assert said and "\n" not in said
    if held is UNKNOWN:
        assert "unknown" in said


@pytest.mark.parametrize(
    ("text", "values", "said"),
    [
        ("model.layers > 40", {"model_layers": 32}, "model.layers is 32, not above 40"),
        ("model.layers >= 40", {"model_layers": 32}, "model.layers is 32, below 40"),
        ("model.layers < 32", {"model_layers": 32}, "model.layers is 32, not below 32"),
        ("model.layers <= 3", {"model_layers": 32}, "model.layers is 32, above 3"),
        ("model.arch == 'llama'", {"model_arch": "qwen3"}, "model.arch is qwen3, not llama"),
        ("model.arch in ['llama', 'gemma']", {"model_arch": "qwen3"}, "model.arch is qwen3, not in llama, gemma"),
        ("'--a' in engine.flags", {"engine_flags": ["--b"]}, "--a is not in engine.flags (--b)"),
        ("'--a' not in engine.flags", {"engine_flags": ["--a"]}, "--a is in engine.flags (--a)"),
        ("'--a' in engine.flags", {"engine_flags": list("abcdefgh")}, "--a is not in engine.flags"),
        ("model.moe", {"model_moe": False}, "model.moe is no"),
        ("not model.moe", {"model_moe": True}, "model.moe is yes"),
        ("settings.window is not none", {"settings_window": None}, "settings.window is not set"),
        ("model.moe and model.layers > 3", {"model_moe": True, "model_layers": 2}, "model.layers is 2, not above 3"),
        ("model.layers > 3", {}, "model.layers is unknown"),
        ("model.moe and model.layers > 3", {"model_moe": True}, "model.layers is unknown"),
        ("model.moe or model.layers > 3", {"model_moe": False, "model_layers": 2},
         "model.moe is no and model.layers is 2, not above 3"),
    ],
)  # fmt: skip
def test_why_not(text: str, values: dict[str, Any], said: str) -> None:
    assert told(text, **values) == said


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (None, "", "none"), (True, "", "yes"), (False, "", "no"), (UNKNOWN, "tokens", "unknown"), ([], "", "nothing"),
        (["a", "b"], "", "a, b"), (65536, "tokens", "65,536 tokens"), (5, "percent", "5 %"), (0.125, "", "0.125"),
        (23 << 30, "bytes", "23.0 GiB"), ("q8_0", "", "q8_0"),
    ],
)  # fmt: skip
def test_say(value: object, unit: str, said: str) -> None:
    assert say(value, unit) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 B"), (87_040, "87,040 B"), (512 << 20, "512 MiB"), (3 << 29, "1.5 GiB"), (-(1 << 30), "-1.0 GiB")],
)
def test_say_bytes(count: int, said: str) -> None:
    assert say_bytes(count) == said
