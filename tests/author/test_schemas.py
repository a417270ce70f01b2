"""The schemas that editors read are those the declarations give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from gezel_rules.author.schemas import FORMS, Form, digest, released, schema_files, write
from gezel_rules.places import schemas_dir


@pytest.mark.parametrize(("file", "text"), [*schema_files()], ids=[form.name for form in FORMS])
def test_the_kept_schema_is_up_to_date(file: str, text: str) -> None:
    kept = (schemas_dir() / file).read_text("utf-8")
    assert kept == text, "run: python -m gezel_rules.author.schemas"
    Draft202012Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_a_released_schema_never_changes(form: Form) -> None:
    kept = released(schemas_dir()).get(f"{form.name} v{form.version}")
    assert kept is not None, "run: python -m gezel_rules.author.schemas"
    assert digest(form) == kept, "it accepts other files now: raise its version in author/schemas.py and write it anew"


def test_a_digest_is_of_what_is_accepted_and_stays_once_written(tmp_path: Path) -> None:
    form = FORMS[0]
    reworded = form._replace(title="Another", shape=form.shape._replace(says="In other words."))
    fewer = form._replace(shape=form.shape._replace(fields=dict(list(form.shape.fields.items())[1:])))
    assert digest(reworded) == digest(form) != digest(fewer)
    (tmp_path / "released.json").write_text(json.dumps({f"{form.name} v1": "as it was", "gone v1": "too"}))
    write(tmp_path)
    kept = released(tmp_path)
    assert (kept[f"{form.name} v1"], kept["gone v1"]) == ("as it was", "too")
    assert kept[f"{FORMS[1].name} v1"] == digest(FORMS[1])


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_every_key_says_what_it_means(form: Form) -> None:
    schema = json.loads(dict(schema_files())[f"{form.name}.schema.json"])
    found = [*_properties(schema)]
    assert found
    assert [key for key, told in found if not told.get("description")] == []


def _properties(schema: object) -> list[tuple[str, dict[str, object]]]:
    if isinstance(schema, list):
        return [pair for item in schema for pair in _properties(item)]
    if not isinstance(schema, dict):
        return []
    own = list(schema.get("properties", {}).items())
    rules = ("if", "then", "else", "allOf", "not", "contains")  # between keys that are declared elsewhere
    return own + [pair for key, value in schema.items() if key not in rules for pair in _properties(value)]


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_shared_shapes_have_names_of_their_own(form: Form) -> None:
    schema = json.loads(dict(schema_files())[f"{form.name}.schema.json"])
    used = set(_references(schema))
    assert used == {f"#/$defs/{name}" for name in schema.get("$defs", {})}


def _references(schema: object) -> list[str]:
    if isinstance(schema, list):
        return [text for item in schema for text in _references(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
    return own + [text for value in schema.values() for text in _references(value)]


def test_writing_replaces_what_was_there(tmp_path: Path) -> None:
    (tmp_path / f"{FORMS[0].name}.schema.json").write_text("old")
    write(tmp_path)
    assert {path.name: path.read_text("utf-8") for path in tmp_path.glob("*.schema.json")} == dict(schema_files())
