"""How far an installed model is from what its catalog entry describes now, told without reading a byte of it."""

from __future__ import annotations

from gezel_rules.store.wanted import Installed, InstalledFile, InstallPlan, Wanted

CURRENT, METADATA, PAYLOAD = "current", "metadata-only", "payload-changed"
NOT_IN_CATALOG, UNKNOWN = "not in catalog", "unknown"
ON_DISK = "changed on disk"
"""What is said instead of a model whose files are not as they were recorded."""


def drift(model: Installed, plan: InstallPlan | None) -> str:
    """One of the five words. ``plan`` is made today, for this machine's backend and the vision choice of the install;
    ``None``: the catalog has no such entry. Without a fingerprint (an unverified install) nothing can be said."""
    if plan is None:
        return NOT_IN_CATALOG
    if model.fingerprint is None:
        return UNKNOWN
    if model.fingerprint == plan.fingerprint:
        return CURRENT if model.entry_digest == plan.entry_digest else METADATA
    return METADATA if same_payload(model, plan) else PAYLOAD


def same_payload(model: Installed, plan: InstallPlan) -> bool:
    """Whether the recorded digests and origins are those the plan wants: an entry whose digests were only written
    down later describes the same bytes."""
    if [file.name for file in model.files] != [wanted.name for wanted in plan.wanted]:
        return False
    return all(matches(file, wanted) for file, wanted in zip(model.files, plan.wanted, strict=True))


def matches(file: InstalledFile, wanted: Wanted) -> bool:
    """Whether an installed file is, by its record, the wanted one: same digest, or same origin where none is known."""
    if file.role != wanted.role or wanted.size not in (None, file.size):
        return False
    if wanted.sha256 is not None:
        return file.sha256 == wanted.sha256
    return file.origin in [str(source) for source in wanted.sources]
