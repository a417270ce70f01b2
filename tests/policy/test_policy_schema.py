"""The JSON Schema for editors and the loader say the same about the shape of a policy file."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from small_set import drafts_of

from gezel_rules.documents.source import load_yaml
from gezel_rules.places import policies_dir, schemas_dir
from gezel_rules.policy.files import policy_paths

SCHEMA = Draft202012Validator(json.loads((schemas_dir() / "policy.schema.json").read_text()))

WHOLE: dict[str, Any] = {
    "policy": "kv/kv",
    "engine": "llama-cpp",
    "version": "1.0.0",
    "summary": "A policy with one of everything.",
    "note": "For tests.",
    "tables": {
        "kv_types": {"f16": {"automatic": True, "slow_on": ["x"]}, "q8_0": {"automatic": False}},
        "limits": {"low": 1, "high": 2},
        "steps": ["experts", "layers"],
        "needs": {
            "says": "What a type needs.",
            "columns": {
                "there": {"words": ["head", "model"], "says": "what must be there"},
                "share": {"kind": "number", "unit": "", "default": 1.0, "minimum": 0, "maximum": 1},
                "slow_on": {"kind": "list", "of": {"rows_of": "kv_types"}, "optional": True},
            },
            "same_rows_as": "kv_types",
            "rows": {"f16": {"there": "head"}, "q8_0": {"there": "model", "share": 0.5, "slow_on": ["f16"]}},
        },
        "words": {"says": "Some words.", "of": {"kind": "pattern"}, "rows": ["a+"]},
    },
    "decisions": {
        "kv.type": {
            "says": "Which type.",
            "hit": "first",
            "unit": "bytes",
            "rules": [
                {
                    "id": "operator",
                    "when": "a",
                    "then": "b",
                    "because": "chosen {b}",
                    "level": "operator",
                    "evidence": {"note": "seen", "measured": "2026-08-03", "where": "here", "expires": "2027-08-03"},
                },
                {"id": "default", "then": 3},
            ],
        },
        "flag.kv-type": {"flag": "--kv", "when": True, "then": None, "because": "passed on", "level": "policy"},
        "kv.enough": {
            "hit": "search",
            "over": "kv_types",
            "rules": [{"id": "no", "when": "a", "then": "reject"}, {"id": "yes", "then": "accept"}],
        },
    },
}
BEYOND_SHAPE = (
    "named after its file", "duplicate rule id", "already defined", "unbalanced", "means something else",
    "unknown engine family", "a row of '", "has no column", "' of '", "not a regular expression",
)  # fmt: skip
VALUES: list[Any] = [
    None,
    3,
    1.5,
    True,
    "text",
    "accept",
    "first",
    "search",
    "1.2.3",
    "2026-02-28",
    [],
    {},
    ["x"],
    {"k": 1},
]


def _paths(value: Any, so_far: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [so_far] if so_far else []
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [path for step, child in steps for path in _paths(child, (*so_far, step))]


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    policy = copy.deepcopy(WHOLE)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(_paths(policy)))
        parent, step = _at(policy, path[:-1]), path[-1]
        action = draw(st.sampled_from(("delete", "replace", "add", "rename")))
        if action == "delete":
            del parent[step]
        elif action == "replace":
            parent[step] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        elif isinstance(parent, dict):
            key = draw(
                st.sampled_from(
                    (
                        "extra",
                        "then",
                        "rules",
                        "over",
                        "hit",
                        "when",
                        "Big",
                        "id",
                        "a.b-c",
                        "rows",
                        "columns",
                        "of",
                        "kind",
                        "optional",
                    )
                )
            )
            parent[key] = parent.pop(step) if action == "rename" else copy.deepcopy(draw(st.sampled_from(VALUES)))
        if not _paths(policy):
            break
    return policy


def _loader_refuses(policy: Any, directory: Path) -> list[str]:
    path = directory / "kv" / "kv.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(policy))
    problems = drafts_of([path], directory).problems
    return [p.message for p in problems if not any(words in p.message for words in BEYOND_SHAPE)]


def test_the_policy_with_everything_is_in_order(tmp_path: Path) -> None:
    assert _loader_refuses(WHOLE, tmp_path) == []
    assert SCHEMA.is_valid(WHOLE)


@given(policy=mutated())
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_schema_and_loader_agree_on_shape(policy: dict[str, Any], tmp_path: Path) -> None:
    assume(policy.get("engine", "llama-cpp") == "llama-cpp")  # the file of another family is not read
    refused = _loader_refuses(policy, tmp_path)
    errors = [error.message for error in SCHEMA.iter_errors(policy)]
    assert bool(refused) == bool(errors), (refused, errors)


@pytest.mark.parametrize("path", policy_paths(policies_dir()), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_shipped_policies_satisfy_the_schema(path: Path) -> None:
    assert [error.message for error in SCHEMA.iter_errors(load_yaml(path).plain())] == []
