"""The files that people write, and records; their JSON Schemas, which editors read, from the declarations.

``python -m gezel_rules.author.schemas`` writes the schemas to ``schemas/``; a test holds that they are up to date.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

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


class Form(NamedTuple):
    """One kind of file; ``name`` begins its schema's file name, ``blocks`` are declared by others."""

    name: str
    title: str
    shape: Shape
    blocks: Mapping[str, Kind] = {}


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
        file = f"{form.name}.schema.json"
        schema = json_schema(file, form.title, form.shape, form.blocks)
        yield file, f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n"


def write(directory: Path) -> None:
    """Write every schema into a directory that is there."""
    for file, text in schema_files():
        (directory / file).write_text(text, "utf-8")


if __name__ == "__main__":
    write(schemas_dir())
