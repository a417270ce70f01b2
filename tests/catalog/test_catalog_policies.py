"""The shipped catalog against the shipped policies: every backend, algorithm and format it names exists there."""

from __future__ import annotations

from pathlib import Path

import pytest

from gezel_rules.catalog import find, ids
from gezel_rules.catalog.against_policy import check
from gezel_rules.documents.source import load_yaml
from gezel_rules.facts.described_host import load_host
from gezel_rules.places import catalog_dir, policies_dir


def tables() -> dict[str, set[str]]:
    """Table → its rows, over all policy files that have tables."""
    roots = [load_yaml(path).value for path in sorted(policies_dir().glob("*/*.yaml"))]
    found = [root["tables"].value for root in roots if "tables" in root]
    return {name: set(node.value) for table in found for name, node in table.items() if isinstance(node.value, dict)}


TABLES = tables()


@pytest.mark.parametrize("model", ids(catalog_dir()))
def test_policies_know_every_name_in_an_entry(model: str) -> None:
    assert check(find(catalog_dir(), model), {**TABLES, "models": ids(catalog_dir())}) == []


@pytest.mark.parametrize("host", sorted((catalog_dir() / "hosts").glob("*.yaml")), ids=lambda path: path.stem)
def test_policies_know_the_backend_of_a_host(host: Path) -> None:
    facts = load_host(host, {"backends": TABLES["backends"]})
    assert facts["engine.backend"].value in TABLES["backends"]
