"""Loading the shipped policies beside ruamel's round trip and jsonschema: ``pytest tests/bench --benchmark-enable``.

The reference reads the same files and holds them against the JSON Schemas; it checks shape only, where ours also types
every expression, orders the decisions and looks for rules that are never reached (of log policies both check little:
ours takes them into the digest). The schemas are read and their validators made beforehand. Wanted: at most 0.25 of its
time on a cache miss, 0.08 on a hit.
"""

from __future__ import annotations

import json
import shutil

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from gezel_rules.places import policies_dir, schemas_dir
from gezel_rules.planner.launch import read_policies
from gezel_rules.policy.files import log_policy_paths, policy_paths

THAN = "ruamel round-trip + jsonschema"


@pytest.fixture(scope="module")
def reference():
    schemas = {name: schemas_dir() / f"{name}.schema.json" for name in ("policy", "log-policy")}
    validators = {name: Draft202012Validator(json.loads(path.read_text())) for name, path in schemas.items()}
    work = [(path, validators["policy"]) for path in policy_paths(policies_dir())]
    work += [(path, validators["log-policy"]) for path in log_policy_paths(policies_dir())]

    def read():
        for path, validator in work:
            document = YAML(typ="rt").load(path.read_text(encoding="utf-8"))
            remarks = [error.message for error in validator.iter_errors(document)]
            assert len(remarks) < 5  # to YAML 1.1, dates and hexadecimal words are no text

    return read


def _texts(policies):
    for decision in policies.decisions.values():
        yield decision.over
        for rule in decision.rules:
            yield rule.when
            yield rule.then if decision.hit != "search" else None


@pytest.mark.benchmark(group="policy")
def test_miss(beside, reference, tmp_path):
    """Read, checked, sealed, and kept for the next time."""
    empty = lambda: shutil.rmtree(tmp_path / "cache", ignore_errors=True)  # noqa: E731
    read = lambda: read_policies(policies_dir(), tmp_path / "cache")  # noqa: E731
    beside("policy load, cache miss", read, THAN, reference, wanted=0.25, before=empty)
    assert list((tmp_path / "cache").iterdir())


@pytest.mark.benchmark(group="policy")
def test_hit(beside, reference, tmp_path):
    made = read_policies(policies_dir(), tmp_path)
    kept = beside(
        "policy load, cache hit", lambda: read_policies(policies_dir(), tmp_path), THAN, reference, wanted=0.08
    )
    assert kept.digest == made.digest
    assert kept.decisions == made.decisions


@pytest.mark.benchmark(group="policy")
def test_hit_with_every_tree(beside, reference, tmp_path):
    """Expressions are parsed on first use; here all of them are."""
    read_policies(policies_dir(), tmp_path)

    def read():
        policies = read_policies(policies_dir(), tmp_path)
        return [policies.tree(text) for text in _texts(policies) if text]

    beside("policy load, hit, every expression parsed", read, THAN, reference, wanted=0.08)
