"""A model before its download: which files it would be, and its header, read by ranges of bytes from its server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.catalog.references import Reference
from gezel_rules.engines import registry
from gezel_rules.errors import TransferFailed
from gezel_rules.store import hub
from gezel_rules.store.reference_plan import plan_reference
from gezel_rules.store.repository import Companions
from gezel_rules.store.wanted import InstallPlan, Source, Wanted
from gezel_rules.store.web import DroppedError, Remote, Web, content_range, shown, whole_number

if TYPE_CHECKING:
    from gezel_rules.engines.family import FirstBytes
    from gezel_rules.engines.protocol import Family, ModelFile

_PIECE = 1 << 16  # bytes read at once


def look(reference: Reference, web: Web, companions: Companions) -> tuple[InstallPlan, Family, ModelFile]:
    """What an install of a hub or URL reference would bring, and what the model's header says. Raises BadInput,
    TransferFailed."""
    plan = plan_reference(reference, web, companions=companions)
    files = {wanted.name: wanted for wanted in plan.wanted if wanted.role == "model"}
    family = registry.family(DEFAULT_FAMILY)
    model = family.read_elsewhere(next(iter(files)), lambda name: _first_bytes(web, _wanted(files, name)))
    return plan, family, model


def path_of(plan: InstallPlan, wanted: Wanted, store: Path) -> str:
    """Where the store will have a file."""
    return str(store / plan.directory / wanted.name)


def _wanted(files: dict[str, Wanted], name: str) -> Wanted:
    if name not in files:
        raise TransferFailed(f"{name}: a part of the model that its repository does not list")
    return files[name]


def _first_bytes(web: Web, wanted: Wanted) -> FirstBytes:
    """Reads on where it stopped: what came once is not asked for again."""
    remote, kept = _remote(wanted.sources[0]), bytearray()
    known = [wanted.size]

    def first_bytes(count: int) -> tuple[bytes, int | None]:
        size = known[0]
        missing = (count if size is None else min(count, size)) - len(kept)
        if missing > 0:
            known[0] = _read_on(web, remote, kept, missing) or size
        return bytes(kept[:count]), known[0]

    return first_bytes


def _remote(source: Source) -> Remote:
    return hub.remote_for(source) if source.kind == "hub" else Remote(source.location, shown(source.location))


def _read_on(web: Web, remote: Remote, kept: bytearray, missing: int) -> int | None:
    """Adds ``missing`` bytes to those that are ``kept``, fewer at the end of the file. Returns its size, if said."""
    begin = len(kept)
    try:
        answer = web.ask("GET", remote, {"Range": f"bytes={begin}-{begin + missing - 1}"})
        try:
            _check(answer.response, remote, begin)
            skip = begin if answer.response.status == 200 else 0
            _take(answer.response.read, kept, skip, missing)
            return _size(answer.response)
        finally:
            answer.response.close()
    except DroppedError as trouble:
        raise TransferFailed(f"{remote.name}: {trouble}") from None
    except OSError as trouble:
        raise TransferFailed(f"{remote.name}: {trouble.strerror or 'connection broken'}") from None


def _check(response: Any, remote: Remote, begin: int) -> None:
    found = content_range(response.headers)
    if response.status == 200 or (response.status == 206 and found and found.first == begin):
        return
    from gezel_rules.store.troubles import meaning

    what = "sends another part than was asked for" if response.status == 206 else ""
    raise TransferFailed(f"{remote.name}: {what or meaning(response.status, bool(remote.token))}")


def _take(read: Callable[[int], bytes], kept: bytearray, skip: int, missing: int) -> None:
    """A server that knows no ranges sends the file from its start: what is here already is passed over."""
    while skip + missing > 0 and (piece := read(min(_PIECE, skip or missing))):
        if skip:
            skip -= len(piece)
        else:
            kept += piece
            missing -= len(piece)


def _size(response: Any) -> int | None:
    if response.status == 206:
        found = content_range(response.headers)
        return found.total if found else None
    return whole_number(response.headers.get("Content-Length", ""))
