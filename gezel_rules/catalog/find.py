"""Finding entries in a catalog directory: one by id, touching only its file, or all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gezel_rules.catalog.names import id_fault
from gezel_rules.catalog.read import Further, load_entry
from gezel_rules.catalog.records import Entry
from gezel_rules.documents.source import did_you_mean
from gezel_rules.errors import BadInput, Problem


def has(catalog_dir: Path, model: str) -> bool:
    """Whether the catalog has an entry of this id (read or not, well-formed or not)."""
    return not id_fault(model) and _file(catalog_dir, model).exists()


def find(catalog_dir: Path, model: str, cache: Path | None = None, further: Further | None = None) -> Entry:
    """The entry ``models/<model>.yaml``; no other is read. ``further``: see ``load_entry``. Raises BadInput, with the
    nearest id when it is unknown."""
    if fault := id_fault(model):
        raise BadInput(f"{model!a:.120} cannot be a catalog id: it {fault}")
    path = _file(catalog_dir, model)
    if not path.exists():
        raise BadInput(f"unknown model '{model}'{did_you_mean(model, ids(catalog_dir)) or _no_hint(catalog_dir)}")
    return load_entry(path, cache, further)


def ids(catalog_dir: Path) -> list[str]:
    """All ids, sorted; other files in the directory are not entries. Empty when there is no such directory."""
    return sorted(path.stem for path in (catalog_dir / "models").glob("*.yaml") if not id_fault(path.stem))


def entries(catalog_dir: Path) -> Iterator[Entry]:
    """Every well-formed entry, by id; raises BadInput at the end with the problems of all the others."""
    problems: list[Problem] = []
    for model in ids(catalog_dir):
        try:
            entry = load_entry(_file(catalog_dir, model))
        except BadInput as error:
            problems.extend(error.problems)
            continue
        yield entry
    if problems:
        raise BadInput(problems)


def _file(catalog_dir: Path, model: str) -> Path:
    return catalog_dir / "models" / f"{model}.yaml"


def _no_hint(catalog_dir: Path) -> str:
    if not (catalog_dir / "models").is_dir():
        return f": {catalog_dir} is no catalog (it has no directory 'models')"
    return "; nothing in the catalog has a name like it"
