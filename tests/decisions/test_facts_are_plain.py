"""Evaluation looks keys up in facts and never asks an object for anything: that is sound as facts are plain JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gezel_rules import places
from gezel_rules.engines.llama_cpp.functions import SIGNATURES
from gezel_rules.engines.llama_cpp.vocabulary import WORDS
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.planner.plan import Request, make_plan
from gezel_rules.planner.subject import Places
from gezel_rules.session import session_for

HOSTS = sorted(path.stem for path in (places.catalog_dir() / "hosts").glob("*.yaml"))


def is_plain(value: Any) -> bool:
    """JSON and exactly JSON: a subclass could bring methods of its own."""
    if type(value) is list:
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(type(key) is str and is_plain(item) for key, item in value.items())
    return value is None or value is UNKNOWN or type(value) in (str, int, float, bool)


def request(model: str, host: Path | None, tmp_path: Path) -> Request:
    store = tmp_path / "store"
    where = Places(places.catalog_dir(), store, session_for(None, None, store).on_shelf, tmp_path)
    return Request(model, places.policies_dir(), where, tmp_path, {"GEZEL_WINDOW": "8192"}, (), ("slots=2",), host)


@pytest.mark.parametrize("model", ["qwen3-8b", "gemma-3-270m", "qwen3.5-9b-mtp"])
@pytest.mark.parametrize("host", [*HOSTS, None])
def test_facts_of_a_plan_are_plain_and_of_the_vocabulary(model: str, host: str | None, tmp_path: Path) -> None:
    file = places.catalog_dir() / "hosts" / f"{host}.yaml" if host else None
    trace = make_plan(request(model, file, tmp_path)).trace
    assert {name for name, fact in trace.facts.items() if not is_plain(fact.value)} == set()
    assert {word.name for word in WORDS} <= set(trace.facts)
    for fact in trace.facts.values():
        assert isinstance(fact, Fact) and fact.source


def test_decisions_are_plain_too(tmp_path: Path) -> None:
    trace = make_plan(request("qwen3-8b", places.catalog_dir() / "hosts" / "rtx-4090.yaml", tmp_path)).trace
    assert {name for name, found in trace.judgements.items() if not is_plain(found.value)} == set()


def test_every_function_of_the_vocabulary_is_bound(tmp_path: Path) -> None:
    trace = make_plan(request("qwen3-8b", places.catalog_dir() / "hosts" / "rtx-4090.yaml", tmp_path)).trace
    assert {"known", *trace.functions} == set(SIGNATURES)  # 'known' is the language's own


@pytest.mark.parametrize("value", [(1,), {1: 2}, object(), Path(), frozenset(), [b"x"], {"a": (1,)}])
def test_the_measure_itself(value: object) -> None:
    assert not is_plain(value)
