"""The shipped catalog against the shipped policies: every backend, algorithm and format it names exists there."""

from __future__ import annotations

from pathlib import Path

import pytest

from gezel_rules.catalog import find, ids
from gezel_rules.catalog.against_policy import check
from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.facts.described_host import load_host
from gezel_rules.places import catalog_dir, policies_dir
from gezel_rules.planner.policies import read_policies


def tables() -> dict[str, set[str]]:
    """Table → its rows, over all policy files that have tables."""
    found = read_policies(policies_dir(), FAMILY, None).tables
    return {name: set(rows) for name, rows in found.items() if isinstance(rows, dict)}


TABLES = tables()


@pytest.mark.parametrize("model", ids(catalog_dir()))
def test_policies_know_every_name_in_an_entry(model: str) -> None:
    assert check(find(catalog_dir(), model).values, {**TABLES, "models": ids(catalog_dir())}) == []


@pytest.mark.parametrize("host", sorted((catalog_dir() / "hosts").glob("*.yaml")), ids=lambda path: path.stem)
def test_policies_know_the_backend_of_a_host(host: Path) -> None:
    facts = load_host(host, {"backends": TABLES["backends"]})
    assert facts["engine.backend"].value in TABLES["backends"]
