"""The files that people write, and records; their JSON Schemas, which editors read, from the declarations.

``python -m gezel_rules.author.schemas`` writes the schemas to ``schemas/``; a test holds that they are up to date.

Editors keep schemas by their ``$id``, which names the version. ``schemas/released.json`` keeps the digest of every
version there was, and a version once written there never changes: what accepts other files is a new version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.author.testing.form import TESTS
from gezel_rules.catalog.entry import ENTRY
from gezel_rules.documents.declare import Kind, Shape
from gezel_rules.documents.json_schema import json_schema
from gezel_rules.engines import registry
from gezel_rules.facts.described_host import HOST
from gezel_rules.facts.recorded import RECORD
from gezel_rules.facts.site import site
from gezel_rules.facts.vocabulary import Word
from gezel_rules.logs.file import LOG_POLICY
from gezel_rules.places import schemas_dir
from gezel_rules.policy.file import BLOCKS, POLICY
from gezel_rules.policy.layer_file import LAYER
from gezel_rules.record import NamedTuple

RELEASED = "released.json"


class Form(NamedTuple):
    """One kind of file; ``name`` begins its schema's file name, ``blocks`` are declared by others. ``version``: raised
    when the schema accepts other files than before."""

    name: str
    title: str
    shape: Shape
    blocks: Mapping[str, Kind] = {}
    version: int = 1


def _settings() -> tuple[Word, ...]:
    """The settings of every family of this package, each once: a site file is for a whole machine."""
    words = (word for name in registry.FAMILIES for word in registry.family(name).vocabulary())
    return tuple({word.name: word for word in words}.values())


FORMS = (
    Form("catalog-entry", "Catalog entry", ENTRY, {"header": registry.family(DEFAULT_FAMILY).description()}),
    Form("host", "Described host", HOST),
    Form("site", "Site settings", site(_settings())),
    Form("policy", "Policy", POLICY, BLOCKS),
    Form("layer", "Layer over policies", LAYER, BLOCKS),
    Form("log-policy", "Log policy", LOG_POLICY),
    Form("record", "Record of a launch", RECORD),
    Form("policy-test", "Policy tests", TESTS),
)


def schema_files() -> Iterator[tuple[str, str]]:
    """File name and text of every schema."""
    for form in FORMS:
        yield f"{form.name}.schema.json", f"{json.dumps(_schema(form), indent=2, ensure_ascii=False)}\n"


def _schema(form: Form) -> Mapping[str, Any]:
    return json_schema(f"v{form.version}/{form.name}.schema.json", form.title, form.shape, form.blocks)


def digest(form: Form) -> str:
    """Of what a schema accepts: words for people are left out."""
    told = json.dumps(_accepted(_schema(form)), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(told.encode()).hexdigest()


def _accepted(part: Any) -> Any:
    if isinstance(part, list):
        return [_accepted(item) for item in part]
    if not isinstance(part, dict):
        return part
    said = {key for key in ("description", "title", "$id") if isinstance(part.get(key), str)}
    return {key: _accepted(value) for key, value in part.items() if key not in said}


def released(directory: Path) -> dict[str, str]:
    """The digests of all versions that were ever written, by ``policy v1``."""
    kept = directory / RELEASED
    found: dict[str, str] = json.loads(kept.read_text("utf-8")) if kept.is_file() else {}
    return found


def write(directory: Path) -> None:
    """Write every schema into a directory that is there, and the digests of versions that are new."""
    for file, text in schema_files():
        (directory / file).write_text(text, "utf-8")
    digests = {**{f"{form.name} v{form.version}": digest(form) for form in FORMS}, **released(directory)}
    (directory / RELEASED).write_text(f"{json.dumps(digests, indent=2, sort_keys=True)}\n", "utf-8")


if __name__ == "__main__":
    write(schemas_dir())
