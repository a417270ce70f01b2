"""Faulty catalog files: the loader says exactly what is expected, and the schema refuses what a schema can see.

``tests/data/bad-catalog/<kind>/<case>.yaml`` has its expected lines in ``<case>.expected`` beside it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from gezel_rules.catalog import load_entry
from gezel_rules.catalog.against_policy import check
from gezel_rules.documents.source import load_yaml
from gezel_rules.engines.llama_cpp.described_header import header_of
from gezel_rules.errors import BadInput, Problem
from gezel_rules.facts.described_host import load_host
from gezel_rules.places import schemas_dir

BAD = Path(__file__).parent.parent / "data" / "bad-catalog"
CASES = sorted(path.relative_to(BAD).as_posix() for path in BAD.glob("*/*.yaml"))
NO_DATA = {"shortcuts", "not-yaml", "two-documents", "not-text"}
"""Refused before there is any data for a schema."""
NOT_STRUCTURAL = {
    "other-id": "compares with the file's name",
    "other-name": "compares with the file's name",
    "same-name": "compares two files",
    "same-role": "compares two files",
    "reserved-name": "the store's own name, in any case",
    "draft-id-and-file": "compares two places",
    "more-free-than-total": "arithmetic",
    "unknown-names": "policy's vocabulary",
    "unknown-family": "which engine families there are",
    "packaged-shards": "compares a file and its sources",
}
"""Cases no schema can see, and why."""


KNOWN = {
    "backends": {"cuda", "rocm", "vulkan"},
    "spec_types": {"draft-mtp", "draft-dflash"},
    "draft_sampling_modes": {"greedy"},
    "reasoning_formats": {"deepseek"},
    "models": {"llama-3.2-1b"},
    "engine_families": {"llama-cpp"},
}


def said(path: Path) -> list[Problem]:
    """Every problem the loader and the checks have with a file."""
    try:
        if path.parent.name == "hosts":
            load_host(path, {"backends": {"cuda", "cpu"}})
            return []
        entry = load_entry(path)
    except BadInput as error:
        return list(error.problems)
    problems = check(entry.values, KNOWN)
    try:
        header_of(entry)
    except BadInput as error:
        problems.extend(error.problems)
    return problems


@pytest.mark.parametrize("case", CASES)
def test_the_loader_says_exactly_what_is_wrong(case: str) -> None:
    path = BAD / case
    lines = [str(problem).removeprefix(f"{path.parent}/") for problem in said(path)]
    assert lines == path.with_suffix(".expected").read_text().splitlines()
    assert lines
    assert all(problem.span is not None and problem.span.file == str(path) for problem in said(path))


@pytest.mark.parametrize("case", [case for case in CASES if Path(case).stem not in NO_DATA])
def test_the_schema_refuses_what_a_schema_can_see(case: str) -> None:
    name = "host" if case.startswith("hosts/") else "catalog-entry"
    validator = Draft202012Validator(json.loads((schemas_dir() / f"{name}.schema.json").read_text()))
    refused = any(True for _ in validator.iter_errors(load_yaml(BAD / case).plain()))
    assert refused is (Path(case).stem not in NOT_STRUCTURAL)


def test_every_exception_is_still_a_case() -> None:
    assert {*NO_DATA, *NOT_STRUCTURAL} <= {Path(case).stem for case in CASES}


@pytest.mark.parametrize("case", sorted(NO_DATA))
def test_what_is_no_data_is_refused_by_the_yaml_reader(case: str) -> None:
    with pytest.raises(BadInput):
        load_yaml(BAD / "models" / f"{case}.yaml")
