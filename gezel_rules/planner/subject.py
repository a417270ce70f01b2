"""MODEL understood: its catalog entry, its engine family, its files where they are or will be; nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.engines import registry
from gezel_rules.engines.subject import Companion, Subject
from gezel_rules.errors import BadInput, TransferFailed
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.catalog import Entry
    from gezel_rules.catalog.references import Reference
    from gezel_rules.engines.protocol import Family, ModelFile
    from gezel_rules.planner.known import Entries

OnShelf = Callable[[str], Any]
"""Model id → what the store holds of it (``by_role(role)`` gives files with path, size and sha256), or ``None``."""


class RemoteFile(NamedTuple):
    """A file that an install would bring: its plain name, where it will be, its bytes (``None``: nobody knows)."""

    name: str
    path: str
    size: int | None


class Remote(NamedTuple):
    """A model that is in no catalog and not installed, as its server describes it: ``source`` says where ``model`` was
    read."""

    id: str
    family: Family
    model: ModelFile
    source: str
    file: RemoteFile
    projector: RemoteFile | None


class Places(NamedTuple):
    """Where models are looked for: the catalog, the store (``on_shelf`` knows what is in it), kept headers, and servers
    (``elsewhere`` takes a reference; ``None``: nobody is asked. It raises BadInput or TransferFailed)."""

    catalog: Path
    store: Path
    on_shelf: OnShelf
    cache: Path | None = None
    elsewhere: Callable[[Any], Remote] | None = None


def find_subject(model: str, places: Places, entries: Entries) -> Subject:
    """Understand MODEL (a catalog id, a model on disk, ``user/repo[:quant]``, a URL).

    A hub model that is not installed yet is asked of its server: nothing but its header is read. Raises BadInput for an
    unknown model, an unreadable file, or a server that does not answer.
    """
    from gezel_rules.catalog.find import has
    from gezel_rules.catalog.references import parse_reference

    reference = parse_reference(model, lambda model_id: has(places.catalog, model_id))
    if reference.kind == "file":
        return _file(reference.name, places)
    named = reference.kind == "catalog"
    if named and has(places.catalog, reference.name):
        return _entry(entries.entry(reference.name), places, entries)
    found = places.on_shelf(reference.name if named else str(reference))
    if found is not None:
        return _from_store(found, places)
    if named:
        entries.entry(reference.name)  # says what it is not, and what is near
    return _elsewhere(reference, model, places)


def _elsewhere(reference: Reference, model: str, places: Places) -> Subject:
    first = f"{reference} is not installed: fetch it first with 'gezel-rules pull {model}'"
    if places.elsewhere is None:
        raise BadInput(first)
    try:
        found = places.elsewhere(reference)
    except TransferFailed as trouble:
        raise BadInput(f"{first}; its header cannot be read from here: {trouble}") from None
    beside = found.projector
    projector = beside and Companion(beside.name, beside.path, True, beside.size, f"size of {beside.name}")
    return Subject(
        found.id, found.family, None, found.model, found.source, found.file.path, False, None, projector
    )  # fmt: skip


def is_file(model: str, catalog: Path) -> bool:
    """Whether MODEL names a file by itself. Raises BadInput for what names no model."""
    from gezel_rules.catalog.find import has
    from gezel_rules.catalog.references import parse_reference

    return parse_reference(model, lambda model_id: has(catalog, model_id)).kind == "file"


def _file(path: str, places: Places) -> Subject:
    family = registry.of_file(path)
    model = family.read_model(path, places.cache)
    return Subject(Path(path).stem, family, None, model, _read(path, model), path, True, None, None)


def _read(path: str, model: ModelFile) -> str:
    """Where facts about a model on disk come from, for people."""
    return f"{model.format} {Path(path).name}"


def _from_store(found: Any, places: Places) -> Subject:
    """An installed model without a catalog entry."""
    path = found.by_role("model")[0].path
    family = registry.of_file(path)
    model = family.read_model(path, places.cache)
    return Subject(
        found.model_id, family, None, model, _read(path, model), path, True,
        _installed_companion(found, "draft", family, places), _installed_companion(found, "projector", family, places),
    )  # fmt: skip


def _installed_companion(found: Any, role: str, family: Family, places: Places) -> Companion | None:
    files = found.by_role(role)
    if not files:
        return None
    path = files[0].path
    model = family.read_model(path, places.cache) if role == "draft" else _readable(path, family, places)
    size, source = files[0].size, f"size of {files[0].name}"
    return Companion(files[0].name, path, True, size, source, model, identity=_identity(files[0].sha256, path))


def _identity(digest: str | None, otherwise: str) -> str:
    """What tells a file from others of its name: its digest, else where it is or will be."""
    return f"sha256:{digest}" if digest else otherwise


def _readable(path: str, family: Family, places: Places) -> ModelFile | None:
    """What a file says that a launch may do without; ``None`` for one that cannot be read."""
    try:
        return family.read_model(path, places.cache)
    except BadInput:
        return None


def _entry(entry: Entry, places: Places, entries: Entries) -> Subject:
    family, found = registry.family(entry.engine), places.on_shelf(entry.id)
    model: ModelFile | None
    if found is not None and found.by_role("model"):
        path = found.by_role("model")[0].path
        model = family.read_model(path, places.cache)
        source = _read(path, model)
    else:
        path, source = str(places.store / entry.id / entry.model.name), f"{entry.file} header"
        model = entries.model(entry)
        if model is None:
            raise BadInput(
                f"{entry.id} has no header in the catalog: fetch it first with 'gezel-rules pull {entry.id}'"
            )
    return Subject(
        entry.id, family, entry, model, source, path, found is not None,
        _draft(entry, found, family, places, entries.drafter), _projector(entry, found, family, places),
    )  # fmt: skip


def _draft(
    entry: Entry, found: Any, family: Family, places: Places, described: Callable[[Entry], ModelFile | None]
) -> Companion | None:
    """The entry's drafter; the measured figure counts only for the file that was measured."""
    draft = entry.draft
    if draft is None:
        return None
    model = described(entry)
    here = found.by_role("draft") if found else ()
    if draft.id is not None:
        return _other_entry(draft.id, family, places, model)
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
        size, source = model.weights_bytes if model else None, f"{draft.place} header"
    digest = here[0].sha256 if here else draft.file.parts[0].sha256 if draft.file else None
    identity = _identity(digest, f"{entry.id}/{name}")
    return Companion(name, path, bool(here) or found is None, size, source, model, counts, identity)


def _other_entry(model_id: str, family: Family, places: Places, model: ModelFile | None) -> Companion:
    found = places.on_shelf(model_id)
    if found is None:
        size = model.weights_bytes if model else None
        return Companion(model_id, str(places.store / model_id), False, size, "catalog header", model)
    file = found.by_role("model")[0]
    model = _readable(file.path, family, places) or model  # what the catalog says of it stands
    identity = _identity(file.sha256, model_id)
    return Companion(model_id, file.path, True, file.size, f"size of {file.name}", model, identity=identity)


def _projector(entry: Entry, found: Any, family: Family, places: Places) -> Companion | None:
    file = entry.role("projector")
    if file is None:
        return None
    here = found.by_role("projector") if found else ()
    path = here[0].path if here else str(places.store / entry.id / file.name)
    size, model = (here[0].size, _readable(path, family, places)) if here else (file.size, None)
    return Companion(file.name, path, bool(here) or found is None, size, f"size of {file.name}", model)
