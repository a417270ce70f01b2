"""The files that people write, and the JSON Schemas that editors read, both from the declarations.

``python -m gezel_rules.author.schemas`` writes the schemas to ``schemas/``; a test holds that they are up to date.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from gezel_rules import engines
from gezel_rules.catalog.entry import ENTRY
from gezel_rules.documents.declare import Either, Kind, Shape
from gezel_rules.documents.json_schema import json_schema
from gezel_rules.facts.described_host import HOST
from gezel_rules.facts.site import site
from gezel_rules.facts.vocabulary import SETTINGS
from gezel_rules.places import schemas_dir
from gezel_rules.record import NamedTuple


class Form(NamedTuple):
    """One kind of file that people write; ``name`` begins its schema's file name, ``blocks`` are declared by others."""

    name: str
    title: str
    shape: Shape
    blocks: Mapping[str, Kind] = {}


def forms() -> tuple[Form, ...]:
    """All of them, with what the engine families add: ``HEADER`` (how they describe a model) and their settings."""
    settings = dict.fromkeys((*SETTINGS, *(word for words in _of_families("vocabulary", "SETTINGS") for word in words)))
    return (
        Form("catalog-entry", "Catalog entry", ENTRY, {"header": _one(_of_families("described_header", "HEADER"))}),
        Form("host", "Described host", HOST),
        Form("site", "Site settings", site(settings)),
    )


def _one(kinds: Iterable[Kind]) -> Kind:
    found = tuple(kinds)
    return found[0] if len(found) == 1 else Either(found)


def _of_families(module: str, name: str) -> Iterator[Any]:
    """What the folder of every engine family declares under that name, where it has such a module."""
    for folder in iter_modules(engines.__path__):
        place = f"{engines.__name__}.{folder.name}.{module}"
        if folder.ispkg and find_spec(place) is not None:
            yield getattr(import_module(place), name)


def schema_files() -> Iterator[tuple[str, str]]:
    """File name and text of every schema."""
    for form in forms():
        file = f"{form.name}.schema.json"
        schema = json_schema(file, form.title, form.shape, form.blocks)
        yield file, f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n"


def write(directory: Path) -> None:
    """Write every schema into a directory that is there."""
    for file, text in schema_files():
        (directory / file).write_text(text, "utf-8")


if __name__ == "__main__":
    write(schemas_dir())
