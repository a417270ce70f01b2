"""``replay`` and ``explain @ID``: a launch of the journal told and decided again, in words."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from gezel_rules.planner.record import plan_record
from gezel_rules.session import Conditions, session_for
from tests.cli.conftest import NONSENSE, assert_one_line

pytestmark = pytest.mark.usefixtures("in_utc")
NAME = "20261201T034631-6fd955"
LAUNCH = {"engine": ["llama-server"], "argv": [], "started": 1796096791.0, "model": "llama-3.2-1b"}


@pytest.fixture
def recorded(place) -> Path:
    """The record of a launch by the shipped policies, in the journal."""
    plan = session_for(None, None, None).plan("llama-3.2-1b", Conditions((), "rtx-4090"))
    path = place.root / "state" / "journal" / f"{NAME}.json"
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text(json.dumps({**plan_record(plan), "launch": LAUNCH}))
    return path


@pytest.fixture
def coarse(copied) -> str:
    """Policies of which one line is another: the finest cache is a coarser one."""
    return str(copied("policies", "llama-cpp/kv.yaml", "then: \"'f16'\"", "then: \"'q8_0'\""))


def test_the_same_policies_make_the_same_launch(place, recorded):
    said = place.call("replay", f"@{NAME}")
    first, policies, last = said.out.splitlines()
    assert (said.status, said.err) == (0, "")
    assert first == f"llama-3.2-1b, launched 2026-12-01 03:46 (@{NAME})"
    assert policies.endswith(", the very same") and last.startswith("  decided again: the same launch, all ")


def test_other_policies_make_another(place, recorded, coarse):
    said = place.call("--policies", coarse, "replay", str(recorded))
    assert (said.status, said.err) == (1, "")
    lines = said.out.splitlines()
    at = lines.index("  --cache-type-k f16 → q8_0")
    assert lines[at + 1 : at + 3] == ["  --cache-type-v f16 → q8_0", "    because kv.finest was f16 and is q8_0:"]
    assert lines[at + 3].startswith("      then  rule f16, policies/llama-cpp/kv.yaml:")
    assert lines[at + 4].startswith("      now   rule f16, policies/llama-cpp/kv.yaml:")
    assert "  kv_type_k f16 → q8_0" in lines and any(line.startswith("  memory    CUDA0 ") for line in lines)


def test_a_replay_as_json(place, recorded, coarse):
    said = json.loads(place.call("--policies", coarse, "replay", "@last", "--json").out)
    assert (said["id"], said["same"], said["versions"]) == (NAME, False, {})
    assert said["policy"]["then"] != said["policy"]["now"]
    assert [change["decision"] for change in said["changes"]] == ["flag.cache-type-k", "flag.cache-type-v"]


def test_a_launch_is_explained_in_full_while_its_policies_stand(place, recorded):
    said = place.call("explain", f"@{NAME}", "--cache-type-k").out
    planned = place.call("explain", "llama-3.2-1b", "--host", "rtx-4090", "--cache-type-k").out
    assert said == f"llama-3.2-1b, launched 2026-12-01 03:46 (@{NAME}), by the policies here\n\n{planned}"
    assert place.call("explain", f"@{NAME}", "kv.type", "--why-not", "q8_0").out.startswith("  kv.type is not q8_0: ")


def test_else_as_its_record_has_it(place, recorded, coarse):
    said = place.call("--policies", coarse, "explain", f"@{NAME}", "--cache-type-k").out.splitlines()
    assert said[0].endswith("by policies that are not those here: this is what its record kept")
    assert said[2] == "--cache-type-k f16" and said[3].startswith("  kv.type = f16      policies/llama-cpp/kv.yaml:")
    assert [line[:14].strip() for line in said[4:]] == ["because", "level"]
    kept = json.loads(place.call("--policies", coarse, "explain", f"@{NAME}", "kv.type", "--json").out)
    assert kept[0]["value"] == "f16" and kept[0]["source"]["file"] == "policies/llama-cpp/kv.yaml"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("explain", "@nothing"), "@nothing: no such launch is recorded; 'gezel-rules history' lists those that are"),
        (
            ("explain", f"@{NAME}", "--set", "window=1k"),
            "was launched already; ask for its model to plan another launch",
        ),
        (("explain", f"@{NAME}", "kv.typ"), "no flag or decision 'kv.typ'; did you mean 'kv.type'?"),
        (("replay", "nonsuch.json"), "nonsuch.json: no such file or directory"),
        (("replay",), "the following arguments are required"),
    ],
)
def test_bad_input(refused, recorded, words, said):
    assert said in refused(*words)


def test_a_value_nobody_can_explain_by_other_policies(refused, recorded, coarse):
    words = ("--policies", coarse, "explain", f"@{NAME}", "kv.type", "--why-not", "q8_0")
    assert "'replay' compares them" in refused(*words)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_in_a_record_is_told_or_refused_in_one_line(place, recorded, coarse, seed):
    good, chance = recorded.read_text(), random.Random(seed)
    for _ in range(15):
        record = json.loads(good)
        at, key = record, chance.choice(list(record))
        while isinstance(at[key], dict) and at[key] and chance.random() < 0.9:
            at, key = at[key], chance.choice(list(at[key]))
        at[key] = chance.choice(NONSENSE)
        recorded.write_text(json.dumps(record))
        for words in (("replay", "@last"), ("explain", "@last"), ("--policies", coarse, "explain", "@last")):
            said = place.call(*words)
            assert said.status in (0, 1, 2), said
            if said.status == 2:
                assert_one_line(said)
