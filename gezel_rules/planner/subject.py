"""What is to be launched: MODEL understood, its header read or taken from the catalog, its files where they are or
will be. Nothing is downloaded here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.errors import BadInput
from gezel_rules.gguf.records import Header
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.catalog import Entry

OnShelf = Callable[[str], Any]
"""Model id → what the store holds of it (``by_role(role)`` gives files with path, size and sha256), or ``None``."""


class Companion(NamedTuple):
    """A drafter or projector that belongs to the model: where it is or will be, whether an install brings or has
    brought it, its bytes on the GPU when loaded (``None``: nobody knows), where that figure is from, and whether it
    was measured in a running engine, its context included."""

    name: str
    path: str
    here: bool
    resident_bytes: int | None
    source: str
    header: Header | None = None
    measured: bool = False


class Places(NamedTuple):
    """Where models are looked for: the catalog, the store (``on_shelf`` knows what is in it), kept headers."""

    catalog: Path
    store: Path
    on_shelf: OnShelf
    cache: Path | None = None


class Subject(NamedTuple):
    """The model of a plan. ``installed``: its files are in the store, or it is a file by itself; ``header_source``
    says what its geometry rests on."""

    id: str
    entry: Entry | None
    header: Header
    header_source: str
    model_path: str
    installed: bool
    draft: Companion | None
    projector: Companion | None


def find_subject(model: str, places: Places) -> Subject:
    """Understand MODEL (a catalog id, a GGUF file, ``user/repo[:quant]``, a URL).

    Raises BadInput for an unknown model, an unreadable file, or a hub model that is not installed yet.
    """
    from gezel_rules.catalog.find import find, has
    from gezel_rules.catalog.references import parse_reference

    reference = parse_reference(model, lambda model_id: has(places.catalog, model_id))
    if reference.kind == "file":
        return _file(reference.name, places)
    named = reference.kind == "catalog"
    if named and has(places.catalog, reference.name):
        return _entry(find(places.catalog, reference.name, places.cache), places)
    found = places.on_shelf(reference.name if named else str(reference))
    if found is not None:
        return _from_store(found, places)
    if named:
        find(places.catalog, reference.name)  # says what it is not, and what is near
    raise BadInput(f"{reference} is not installed: fetch it first with 'gezel-rules pull {model}'")


def _header(path: str, places: Places) -> Header:
    from gezel_rules.gguf import read_header

    return read_header(path, cache_dir=places.cache / "headers" if places.cache else None)


def header_at(path: str, places: Places) -> Header | None:
    """The header of a file that may not be there, or not be a GGUF: ``None`` then."""
    try:
        return _header(path, places)
    except BadInput:
        return None


def _file(path: str, places: Places) -> Subject:
    header = _header(path, places)
    return Subject(Path(path).stem, None, header, f"GGUF {Path(path).name}", path, True, None, None)


def _from_store(found: Any, places: Places) -> Subject:
    """An installed model without a catalog entry."""
    model = found.by_role("model")[0]
    header = _header(model.path, places)
    return Subject(
        found.model_id, None, header, f"GGUF {model.name}", model.path, True,
        _installed_companion(found, "draft", places), _installed_companion(found, "projector", places),
    )  # fmt: skip


def _installed_companion(found: Any, role: str, places: Places) -> Companion | None:
    files = found.by_role(role)
    if not files:
        return None
    header = _header(files[0].path, places) if role == "draft" else None
    return Companion(files[0].name, files[0].path, True, files[0].size, f"size of {files[0].name}", header)


def _entry(entry: Entry, places: Places) -> Subject:
    from gezel_rules.engines.llama_cpp.described_header import header_of

    found = places.on_shelf(entry.id)
    if found is not None and found.by_role("model"):
        path = found.by_role("model")[0].path
        header, source = _header(path, places), f"GGUF {Path(path).name}"
    else:
        path, source = str(places.store / entry.id / entry.model.name), f"{entry.file} header"
        described = header_of(entry)
        if described is None:
            raise BadInput(
                f"{entry.id} has no header in the catalog: fetch it first with 'gezel-rules pull {entry.id}'"
            )
        header = described
    return Subject(
        entry.id, entry, header, source, path, found is not None,
        _draft(entry, found, places), _projector(entry, found, places),
    )  # fmt: skip


def _draft(entry: Entry, found: Any, places: Places) -> Companion | None:
    """The entry's drafter; the measured figure counts only for the file that was measured."""
    draft = entry.draft
    if draft is None:
        return None
    from gezel_rules.engines.llama_cpp.described_header import draft_header_of

    header = draft_header_of(entry)
    here = found.by_role("draft") if found else ()
    if draft.id is not None:
        return _other_entry(draft.id, places, header)
    name = draft.file.name if draft.file else ""
    path = here[0].path if here else str(places.store / entry.id / name)
    measured = draft.resident
    size: int | None
    counts = measured is not None and (not here or here[0].sha256 == measured.sha256)
    if measured and counts:
        size, source = measured.bytes, f"measured {measured.measured}, {measured.place}"
    elif here:
        size, source = here[0].size, f"size of {name}"
    else:
        size, source = sum(t.nbytes for t in header.tensors) if header else None, f"{draft.place} header"
    return Companion(name, path, bool(here) or found is None, size, source, header, counts)


def _other_entry(model_id: str, places: Places, header: Header | None) -> Companion:
    found = places.on_shelf(model_id)
    if found is None:
        size = sum(t.nbytes for t in header.tensors) if header else None
        return Companion(model_id, str(places.store / model_id), False, size, "catalog header", header)
    model = found.by_role("model")[0]
    header = header_at(model.path, places) or header
    return Companion(model_id, model.path, True, model.size, f"size of {model.name}", header)


def _projector(entry: Entry, found: Any, places: Places) -> Companion | None:
    file = entry.role("projector")
    if file is None:
        return None
    here = found.by_role("projector") if found else ()
    path = here[0].path if here else str(places.store / entry.id / file.name)
    size = here[0].size if here else file.size
    return Companion(file.name, path, bool(here) or found is None, size, f"size of {file.name}")
