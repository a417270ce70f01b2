"""Install plans from catalog entries, and how far an installed model has drifted from its entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from gezel_rules import places
from gezel_rules.catalog import Entry, entries, load_entry
from gezel_rules.catalog.names import file_name_fault
from gezel_rules.session import session_for
from gezel_rules.session.installs import drafter_rule
from gezel_rules.store.drift import CURRENT, METADATA, NOT_IN_CATALOG, PAYLOAD, UNKNOWN, drift
from gezel_rules.store.plan import at_revision, plan_install
from gezel_rules.store.wanted import Installed, InstalledFile, InstallPlan

ENTRY = """\
id: thing
name: Thing
family: thing
summary: A thing.
quant: Q4_K_M
files:
  - role: model
    shards: [T-00001-of-00002.gguf, T-00002-of-00002.gguf]
    sources:
      - {hub: u/r, file: "{shard}", revision: abc}
  - role: projector
    name: mmproj.gguf
    size: 10
    sha256: "1111111111111111111111111111111111111111111111111111111111111111"
    sources:
      - {url: "https://h.example/mmproj.gguf"}
  - role: draft
    name: draft.gguf
    sources:
      - {hub: u/d, file: draft.gguf}
draft: {file: draft.gguf, backends: [cuda]}
"""


def entry(tmp_path: Path, text: str = ENTRY) -> Entry:
    path = tmp_path / "thing.yaml"
    path.write_text(text)
    return load_entry(path)


def planned(tmp_path: Path, backend: str = "cuda", vision: bool = True, text: str = ENTRY) -> InstallPlan:
    made = entry(tmp_path, text)
    return plan_install(made, backend, vision, drafter_rule(session_for(None, None, None), made))


def test_everything_that_applies_is_wanted(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert [(w.role, w.name) for w in plan.wanted] == [
        ("model", "T-00001-of-00002.gguf"),
        ("model", "T-00002-of-00002.gguf"),
        ("projector", "mmproj.gguf"),
        ("draft", "draft.gguf"),
    ]
    assert str(plan.wanted[0].sources[0]) == "hub u/r@abc:T-00001-of-00002.gguf"
    assert plan.wanted[1].reason == "the model itself (shard 2 of 2)"
    assert plan.left_out == ()


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ("vulkan", "draft.gguf is limited to cuda; this build is vulkan"),
        ("", "draft.gguf is limited to cuda, and the backend of this build is unknown"),
    ],
)
def test_a_drafter_for_another_backend_is_left_out_with_the_rules_words(
    tmp_path: Path, backend: str, words: str
) -> None:
    plan = planned(tmp_path, backend)
    assert plan.left_out == (("draft.gguf", words),)
    assert "draft" not in [wanted.role for wanted in plan.wanted]


def test_without_vision(tmp_path: Path) -> None:
    plan = planned(tmp_path, vision=False)
    assert plan.left_out == (("mmproj.gguf", "images were declined"),)


def test_a_drafter_that_is_another_entry(tmp_path: Path) -> None:
    start = ENTRY.index("  - role: draft")
    text = ENTRY[:start] + "draft: {id: small, backends: [cuda]}\n"
    assert planned(tmp_path, "cuda", text=text).also == ("small",)
    other = planned(tmp_path, "vulkan", text=text)
    assert other.also == ()
    assert other.left_out[0][0] == "small"


def test_a_revision_moves_hub_sources_only(tmp_path: Path) -> None:
    plan = at_revision(planned(tmp_path), "v2")
    assert [str(wanted.sources[0]) for wanted in plan.wanted] == [
        "hub u/r@v2:T-00001-of-00002.gguf",
        "hub u/r@v2:T-00002-of-00002.gguf",
        "https://h.example/mmproj.gguf",
        "hub u/d@v2:draft.gguf",
    ]
    assert plan.fingerprint != planned(tmp_path).fingerprint


def test_every_entry_of_the_catalog_can_be_planned() -> None:
    for made in entries(places.catalog_dir()):
        for backend in ("cuda", "cpu", ""):
            plan = plan_install(made, backend, True, drafter_rule(session_for(None, None, None), made))
            assert plan.wanted[0].role == "model"
            assert not any(file_name_fault(wanted.name) for wanted in plan.wanted)
            assert all(wanted.sources and wanted.reason for wanted in plan.wanted)
            assert all(reason for _, reason in plan.left_out)


# --- drift -----------------------------------------------------------------------------------------------------------


def as_installed(plan: InstallPlan, verified: bool = True) -> Installed:
    files = tuple(
        InstalledFile(w.role, w.name, f"/s/{w.name}", 10, w.sha256 or "2" * 64, verified, str(w.sources[0]), 1, 1)
        for w in plan.wanted
    )
    print_ = plan.fingerprint if verified else None
    return Installed("thing", "thing", files, print_, plan.entry_digest, "", "Q4_K_M", plan.backend, plan.vision, {})


def test_current(tmp_path: Path) -> None:
    assert drift(as_installed(planned(tmp_path)), planned(tmp_path)) == CURRENT


def test_comments_and_layout_are_no_change(tmp_path: Path) -> None:
    model = as_installed(planned(tmp_path))
    assert drift(model, planned(tmp_path, text="# new comment\n" + ENTRY)) == CURRENT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("summary: A thing.", "summary: Another thing."),
        ("quant: Q4_K_M\n", "quant: Q4_K_M\ntuning: {window: 4096}\n"),
        ("revision: abc}", "revision: abc, unverified: true}"),
        ("name: draft.gguf\n", f"name: draft.gguf\n    size: 10\n    sha256: {'2' * 64}\n"),
    ],
    ids=["text", "tuning", "remark", "digest written down later"],
)
def test_metadata_only(tmp_path: Path, old: str, new: str) -> None:
    model = as_installed(planned(tmp_path))
    assert drift(model, planned(tmp_path, text=ENTRY.replace(old, new))) == METADATA


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1" * 64, "3" * 64),
        ("name: mmproj.gguf", "name: mmproj2.gguf"),
        ("revision: abc", "revision: def"),
        ("backends: [cuda]", "backends: [rocm]"),
        ("name: draft.gguf\n", f"name: draft.gguf\n    size: 10\n    sha256: {'4' * 64}\n"),
    ],
    ids=["digest", "name", "revision", "drafter no longer applies", "another digest written down"],
)
def test_payload_changed(tmp_path: Path, old: str, new: str) -> None:
    model = as_installed(planned(tmp_path))
    assert drift(model, planned(tmp_path, text=ENTRY.replace(old, new))) == PAYLOAD


def test_unknown_and_not_in_catalog(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert drift(as_installed(plan, verified=False), plan) == UNKNOWN
    assert drift(as_installed(plan), None) == NOT_IN_CATALOG
