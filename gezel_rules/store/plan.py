"""Install plans: from a catalog entry, or from a reference to a hub repository, a URL or a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gezel_rules.catalog.records import Entry, ModelFile
from gezel_rules.catalog.records import Source as CatalogSource
from gezel_rules.store.wanted import InstallPlan, Source, Wanted

DrafterApplies = Callable[[str], tuple[bool, str]]
_REASONS = {
    "model": "the model itself",
    "projector": "images are wanted",
    "vision-encoder": "the engine always needs it",
}


def plan_install(entry: Entry, backend: str, vision: bool, drafter_applies: DrafterApplies) -> InstallPlan:
    """Which of an entry's files this machine needs. ``drafter_applies(backend)`` is policy's answer with its reason."""
    wanted: list[Wanted] = []
    left_out: list[tuple[str, str]] = []
    for file in entry.files:
        take, reason = _choice(file, backend, vision, drafter_applies)
        if take:
            wanted.extend(_wanted(file, reason))
        else:
            left_out.extend((part.name, reason) for part in file.parts)
    also = _drafter_elsewhere(entry, backend, drafter_applies, left_out)
    return InstallPlan(
        entry.id,
        entry.id,
        tuple(wanted),
        tuple(left_out),
        fingerprint(wanted),
        entry_digest(entry),
        catalog_version(),
        entry.quant,
        backend,
        vision,
        also,
    )


def _choice(file: ModelFile, backend: str, vision: bool, drafter_applies: DrafterApplies) -> tuple[bool, str]:
    if file.role == "draft":
        return drafter_applies(backend)
    if file.role == "projector" and not vision:
        return False, "images were declined"
    return True, _REASONS.get(file.role, file.role)


def _drafter_elsewhere(
    entry: Entry, backend: str, drafter_applies: DrafterApplies, left_out: list[tuple[str, str]]
) -> tuple[str, ...]:
    """The id of another entry that is this one's drafter, if it applies here."""
    if entry.draft is None or entry.draft.id is None:
        return ()
    take, reason = drafter_applies(backend)
    if take:
        return (entry.draft.id,)
    left_out.append((entry.draft.id, reason))
    return ()


def _wanted(file: ModelFile, reason: str) -> Iterator[Wanted]:
    for number, part in enumerate(file.parts, 1):
        why = reason if len(file.parts) == 1 else f"{reason} (shard {number} of {len(file.parts)})"
        yield Wanted(file.role, part.name, part.size, part.sha256, tuple(map(source_of, part.sources)), why)


def source_of(source: CatalogSource) -> Source:
    """The catalog's source as the store asks it; no revision means the default branch."""
    return Source(source.kind, source.address, source.file, source.revision or "main", source.parts)


def fingerprint(wanted: Sequence[Wanted]) -> str:
    """What is described for this engine, backend and vision choice: roles, names, digests; where no digest is known,
    the sources stand for it. Metadata (names for people, tuning) does not enter."""
    return _digest([[w.role, w.name, w.sha256 or [w.size, *map(str, w.sources)]] for w in wanted])


def entry_digest(entry: Entry) -> str:
    """The whole entry, metadata included; comments and layout do not count."""
    return _digest(entry.root.plain())


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def catalog_version() -> str:
    """The shipped catalog has the version of the package that carries it."""
    from gezel_rules import __version__

    return __version__


def at_revision(plan: InstallPlan, revision: str) -> InstallPlan:
    """The plan with every hub source at another commit, tag or branch. Raises BadInput for what can be none."""
    from gezel_rules.catalog.names import revision_fault
    from gezel_rules.errors import BadInput

    if fault := revision_fault(revision):
        raise BadInput(f"--revision {fault}")
    wanted = tuple(item._replace(sources=tuple(_moved(s, revision) for s in item.sources)) for item in plan.wanted)
    return plan._replace(wanted=wanted, fingerprint=fingerprint(wanted))


def _moved(source: Source, revision: str) -> Source:
    return source._replace(revision=revision) if source.kind == "hub" else source
