"""Finding entries: only the file that is asked for is read, and no id leads out of the catalog."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.catalog import entries, find, has, ids, load_entry
from gezel_rules.errors import BadInput
from gezel_rules.places import catalog_dir


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    for model in ("qwen3-8b", "llama-3.2-1b"):
        shutil.copy(catalog_dir() / "models" / f"{model}.yaml", tmp_path / "models")
    return tmp_path


def test_an_entry_is_found_though_its_neighbours_are_broken(catalog: Path) -> None:
    (catalog / "models" / "broken.yaml").write_text("id: [")
    assert find(catalog, "qwen3-8b").id == "qwen3-8b"
    assert ids(catalog) == ["broken", "llama-3.2-1b", "qwen3-8b"]
    assert has(catalog, "broken")
    with pytest.raises(BadInput, match=r"broken\.yaml:2:1: not valid YAML"):
        find(catalog, "broken")


def test_all_entries_come_before_the_problems_of_the_broken_ones(catalog: Path) -> None:
    for model in ("a-broken", "z-broken"):
        (catalog / "models" / f"{model}.yaml").write_text(f"id: {model}\n")
    found = []
    with pytest.raises(BadInput) as caught:
        for entry in entries(catalog):
            found.append(entry.id)
    assert found == ["llama-3.2-1b", "qwen3-8b"]
    named = {Path(str(problem.span and problem.span.file)).stem for problem in caught.value.problems}
    assert named == {"a-broken", "z-broken"}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("qwen3-8", "unknown model 'qwen3-8'; did you mean 'qwen3-8b'?"),
        ("zzz", "unknown model 'zzz'; nothing in the catalog has a name like it"),
        ("../hosts/h200", "'../hosts/h200' cannot be a catalog id: it must be made of"),
        ("a\nb", "'a\\nb' cannot be a catalog id"),
        ("con", "'con' cannot be a catalog id: it is a device's name on Windows"),
    ],
)
def test_an_unknown_model_is_one_line(catalog: Path, model: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        find(catalog, model)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_directory_that_is_no_catalog_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is no catalog"):
        find(tmp_path / "nowhere", "qwen3-8b")
    assert ids(tmp_path / "nowhere") == []


def test_an_entry_outside_the_models_is_never_reached(catalog: Path) -> None:
    outside = catalog / "outside.yaml"
    shutil.copy(catalog_dir() / "models" / "qwen3-8b.yaml", outside)
    for model in ("../outside", "..\\outside", str(outside.with_suffix("")), "models/../../outside"):
        assert not has(catalog, model)
        with pytest.raises(BadInput, match="cannot be a catalog id"):
            find(catalog, model)


@given(st.text())
def test_any_text_is_found_or_refused(model: str) -> None:
    if has(catalog_dir(), model):
        assert find(catalog_dir(), model).id == model
    else:
        with pytest.raises(BadInput):
            find(catalog_dir(), model)


def test_shipped_files_are_known_by_a_short_name() -> None:
    """So that traces and snapshots are the same wherever the package lies."""
    entry = find(catalog_dir(), "qwen3-8b")
    assert entry.file == "catalog/models/qwen3-8b.yaml"
    assert entry.draft is not None and entry.draft.place.startswith("catalog/models/qwen3-8b.yaml:")


def test_a_file_elsewhere_is_known_by_its_path(catalog: Path) -> None:
    path = catalog / "models" / "qwen3-8b.yaml"
    assert load_entry(path).file == str(path)
