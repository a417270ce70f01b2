"""Install plans for what is in no catalog: a hub repository and a quant, one file of it, a URL, a local file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from gezel_rules.catalog.references import Reference, file_name
from gezel_rules.engines import registry
from gezel_rules.engines.family import CompanionName
from gezel_rules.errors import BadInput
from gezel_rules.store import hub
from gezel_rules.store.hub import HubFile
from gezel_rules.store.names import directory_for
from gezel_rules.store.plan import fingerprint
from gezel_rules.store.repository import NO_NAMES, Companions, Group, find
from gezel_rules.store.wanted import InstallPlan, Source, Wanted
from gezel_rules.store.web import Web, shown


def reference_id(reference: Reference) -> str:
    """The id an installed reference goes by; what a URL keeps secret is not in it."""
    return shown(reference.name) if reference.kind == "url" else str(reference)


def plan_reference(
    reference: Reference, web: Web, backend: str = "", vision: bool = True, companions: Companions = NO_NAMES
) -> InstallPlan:
    """What to fetch for a reference that is no catalog id. Raises BadInput, TransferFailed (the hub's listing)."""
    wanted, left_out = _wanted(reference, web, vision, companions)
    model_id = reference_id(reference)
    return InstallPlan(
        model_id,
        directory_for(model_id),
        tuple(wanted),
        tuple(left_out),
        fingerprint=fingerprint(wanted),
        catalog_quant=reference.quant,
        backend=backend,
        vision=vision,
    )


def _wanted(
    reference: Reference, web: Web, vision: bool, companions: Companions
) -> tuple[list[Wanted], list[tuple[str, str]]]:
    if reference.kind == "hub":
        listed = hub.listing(web, reference.name, reference.revision or "main")
        return _from_hub(reference, listed, vision, companions)
    if reference.kind == "url":
        return [Wanted("model", file_name(reference), None, None, (Source("url", reference.name),), "asked for")], []
    path = Path(reference.name).absolute()
    if not path.is_file():
        raise BadInput(f"{reference.name}: " + ("is a directory" if path.is_dir() else "no such file"))
    registry.of_file(str(path)).read_model(str(path), None)  # what is no model is refused before a byte is copied
    return [Wanted("model", path.name, path.stat().st_size, None, (Source("path", str(path)),), "asked for")], []


def _from_hub(
    reference: Reference, files: Sequence[HubFile], vision: bool, companions: Companions
) -> tuple[list[Wanted], list[tuple[str, str]]]:
    found = find(reference, files, companions)
    wanted = list(_fetch(reference, "model", found.model, "the model itself"))
    names = {each.name for each in wanted}
    left_out = []
    for group, row in found.along:
        if row.role == "projector" and not vision:
            left_out.append((_name(group.path), "images were declined"))
            continue
        wanted += _beside(_fetch(reference, str(row.role), group, "found by its name; images are wanted"), names)
    return wanted, [*left_out, *((_name(group.path), _offer(reference, group, row)) for group, row in found.beside)]


def _offer(reference: Reference, group: Group, row: CompanionName) -> str:
    if not row.setting:
        return row.says
    named = reference._replace(quant="", folder="", file=group.path)
    return f"{row.says} beside the model; 'gezel-rules pull {named}' fetches it, --set {row.setting}=PATH uses it"


def _fetch(reference: Reference, role: str, group: Group, reason: str) -> Iterator[Wanted]:
    count = len(group.files)
    for number, file in enumerate(group.files, 1):
        source = Source("hub", reference.name, file.path, reference.revision or "main")
        why = reason if count == 1 else f"{reason} (shard {number} of {count})"
        yield Wanted(role, _name(file.path), file.size, file.sha256, (source,), why)


def _beside(files: Iterator[Wanted], taken: set[str]) -> Iterator[Wanted]:
    """The same under names of their own: in a repository only their folder may tell them from the model."""
    return (file._replace(name=f"{file.role}-{file.name}") if file.name in taken else file for file in files)


def _name(path: str) -> str:
    return PurePosixPath(path).name
