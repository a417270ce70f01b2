"""Reading one entry: what each part of it becomes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gezel_rules.catalog import Source, load_entry
from gezel_rules.engines.llama_cpp.described_header import header_of
from gezel_rules.errors import BadInput
from gezel_rules.places import catalog_dir

TEXT = """\
id: small
name: Small
family: small
summary: A small model.
quant: Q8_0
files:
  - role: model
    shards:
      - small-00001-of-00002.gguf
      - {name: small-00002-of-00002.gguf, size: 12, sha256: DIGEST}
    sources:
      - {path: "/models/{shard}"}
      - {hub: user/repo, file: "Q8_0/{shard}", revision: 0123abcd, unverified: true}
      - {url: "https://example.org/small/{shard}"}
  - role: draft
    name: drafter.gguf
    sources:
      - {package: drafter-package, parts: [drafter/one.bin, drafter/two.bin]}
draft:
  file: drafter.gguf
  backends: [cuda, rocm]
  resident:
    bytes: 734003200
    sha256: 0000000000000000000000000000000000000000000000000000000000000000
    evidence: {note: resident set on one card, measured: 2026-08-03}
excluded:
  - {backend: sycl, reason: It crashes.}
tuning:
  window: 32768
  slots: 2
  temperature: 1
  reasoning: {format: deepseek, budget: 4096}
  spec:
    type: draft-mtp
    n_max: 3
    by_backend:
      cuda: {type: draft-dflash, sampling: greedy}
      rocm: {n_max: 4}
""".replace("DIGEST", "ABCDEF0123456789" * 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(TEXT)
    return path


def test_shards_are_parts_each_with_its_own_sources(path: Path) -> None:
    first, second = load_entry(path).model.parts
    assert (first.name, first.size, first.sha256) == ("small-00001-of-00002.gguf", None, None)
    assert (second.size, second.sha256) == (12, "abcdef0123456789" * 4)
    assert second.sources == (
        Source("path", "/models/small-00002-of-00002.gguf", f"{path}:12"),
        Source(
            "hub",
            "user/repo",
            f"{path}:13",
            file="Q8_0/small-00002-of-00002.gguf",
            revision="0123abcd",
            unverified=True,
        ),
        Source("url", "https://example.org/small/small-00002-of-00002.gguf", f"{path}:14"),
    )


def test_a_file_has_the_name_of_its_first_part_and_a_size_only_when_all_are_known(path: Path) -> None:
    model = load_entry(path).model
    assert model.name == "small-00001-of-00002.gguf"
    assert model.size is None
    path.write_text(TEXT.replace("- small-00001-of-00002.gguf", "- {name: small-00001-of-00002.gguf, size: 30}"))
    assert load_entry(path).model.size == 42


def test_the_drafter_its_limits_and_its_measurement(path: Path) -> None:
    entry = load_entry(path)
    assert entry.draft is not None and entry.draft.resident is not None
    assert entry.draft.file == entry.role("draft")
    assert entry.draft.backends == ("cuda", "rocm")
    assert entry.draft.resident.bytes == 700 << 20
    assert entry.draft.resident.measured == "2026-08-03"
    assert entry.draft.resident.place == f"{path}:23"


def test_a_drafter_nothing_is_said_about_is_not_limited(path: Path) -> None:
    head, _, tail = TEXT.partition("draft:\n  file")
    path.write_text(head + "excluded:" + tail.partition("excluded:")[2])
    draft = load_entry(path).draft
    assert draft is not None and draft.file is not None
    assert (draft.file.name, draft.backends, draft.resident) == ("drafter.gguf", None, None)


def test_tuning_is_flat_and_every_value_knows_its_line(path: Path) -> None:
    entry = load_entry(path)
    assert {key: tuned.value for key, tuned in entry.tuned.items()} == {
        "window": 32768,
        "slots": 2,
        "temperature": 1,
        "reasoning.format": "deepseek",
        "reasoning.budget": 4096,
        "spec.type": "draft-mtp",
        "spec.n_max": 3,
    }
    assert entry.tuned["window"].place == f"{path}:29"
    assert {backend: sorted(overlay) for backend, overlay in entry.overlays.items()} == {
        "cuda": ["spec.sampling", "spec.type"],
        "rocm": ["spec.n_max"],
    }
    assert entry.overlays["rocm"]["spec.n_max"] == (4, f"{path}:38")


def test_exclusions_carry_the_reason_people_are_told(path: Path) -> None:
    (exclusion,) = load_entry(path).excluded
    assert (exclusion.backend, exclusion.reason, exclusion.place) == ("sycl", "It crashes.", f"{path}:27")


def test_what_is_left_out_is_not_known(path: Path) -> None:
    entry = load_entry(path)
    assert (entry.license, entry.chat, entry.header, header_of(entry)) == (None, None, None, None)
    assert entry.role("projector") is None


def test_an_entry_is_for_llama_cpp_unless_it_says_otherwise(path: Path) -> None:
    assert load_entry(path).engine == "llama-cpp"
    path.write_text(f"{TEXT}engine: other\n")
    assert load_entry(path).engine == "other"


SHIPPED = (catalog_dir() / "models" / "qwen3-8b.yaml").read_text()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    start=st.integers(0, len(SHIPPED)),
    length=st.integers(0, 60),
    put=st.one_of(
        st.text(max_size=12), st.sampled_from(["\n", ": ", "- ", "[", "{", "&a", "*a", "!!x", '"', "'", "|", "0"])
    ),
)
def test_a_damaged_entry_is_read_or_refused_at_a_place(tmp_path: Path, start: int, length: int, put: str) -> None:
    """Whatever stands in the file: an entry, or problems that each name the file, never anything else."""
    path = tmp_path / "qwen3-8b.yaml"
    path.write_bytes((SHIPPED[:start] + put + SHIPPED[start + length :]).encode("utf-8", "replace"))
    try:
        header_of(load_entry(path))
    except BadInput as error:
        assert error.problems
        assert all(problem.span and problem.span.file == str(path) for problem in error.problems)
