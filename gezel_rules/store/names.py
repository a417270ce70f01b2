"""Names a catalog or a hub may put on our disk: one plain component, the same file on every operating system."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from gezel_rules.catalog.names import file_name_fault
from gezel_rules.errors import BadInput

MANIFEST = "manifest.json"
STAGING = ".staging"
LOCKS = ".locks"
READY = "ready"
"""Of a staging folder: verified files waiting to be published together."""


def check_name(name: str, what: str = "file name") -> str:
    """The name, if it is one safe path component. Raises BadInput saying what is wrong with it."""
    if fault := file_name_fault(name):
        raise BadInput(f"{what} {name!a:.200} {fault}")
    return name


def folded(name: str) -> str:
    """What the name becomes on a file system that ignores case and normal form."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def check_names(names: Iterable[str]) -> None:
    """Refuse unsafe, doubled and case-colliding names, and the manifest's own. Raises BadInput."""
    seen: dict[str, str] = {}
    for name in names:
        key = folded(check_name(name))
        if key in seen:
            raise BadInput(f"file name {name!a:.200} is the same file as {seen[key]!a:.200} where case does not count")
        seen[key] = name


def check_directory(store: Path, directory: str) -> None:
    """Refuse a directory that is a link, or that differs from an existing one only by case. Raises BadInput."""
    check_name(directory, "model directory")
    staging = store / STAGING / directory
    for place in (store / directory, store / STAGING, staging, staging / READY, store / LOCKS):
        if place.is_symlink():
            raise BadInput(f"{place}: is a symbolic link; the store only writes into directories of its own")
    if (store / directory).is_dir() or not store.is_dir():
        return
    wish = folded(directory)
    for other in store.iterdir():
        if folded(other.name) == wish:
            raise BadInput(f"model directory {directory!r} differs only by case from {other.name!r}, which is there")


def directory_for(model_id: str) -> str:
    """The store directory of an id: a catalog id as it is, others as a plain name with a digest of the id."""
    if re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", model_id):
        return model_id
    plain = re.sub(r"[^A-Za-z0-9._-]+", "--", model_id.partition("://")[2] or model_id).strip("-.")
    return f"{plain[:100]}--{hashlib.sha256(model_id.encode()).hexdigest()[:8]}"
