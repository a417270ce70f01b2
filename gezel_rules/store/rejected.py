"""Whole files that arrived and were wrong: remembered, so that nobody pays for the same wrong bytes a third time.

One wrong arrival may be damage on the way; the same wrong digest twice is what the server has. From then on it is not
downloaded again until the server shows another ETag or states the wanted digest, or the entry wants another.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from gezel_rules.plain_file import NO_LINK, read_plain
from gezel_rules.store.durable import replace_durably

MAX_BYTES = 1 << 16
MOST = 16  # versions remembered of one file: one a source, and those that sources had before
TIMES = 2
REJECTED = ".rejected"
"""What the name of such a memory ends in, behind the file's own."""


class Rejected:
    """The memory of one file name, beside its part."""

    def __init__(self, part: Path) -> None:
        self.path = part.with_suffix(REJECTED)

    def note(self, source: str, etag: str, wanted: str, got: str) -> None:
        """A whole file arrived with digest ``got`` where ``wanted`` was asked for."""
        this = {"source": source, "etag": etag, "wanted": wanted}
        known = _read(self.path)
        others = [version for version in known if not this.items() <= version.items()]
        times = sum(version["times"] for version in known if {**this, "got": got}.items() <= version.items())
        versions = [*others, {**this, "got": got, "times": times + 1}][-MOST:]
        with contextlib.suppress(OSError):
            replace_durably(self.path, json.dumps(versions).encode())

    def digest(self, source: str, etag: str, wanted: str) -> str:
        """The wrong digest this very version is known to have; empty when it may still be right."""
        this = {"source": source, "etag": etag, "wanted": wanted}
        known = (version for version in _read(self.path) if this.items() <= version.items())
        return next((str(version["got"]) for version in known if etag and version["times"] >= TIMES), "")


def is_refused(path: Path) -> bool:
    """Whether a memory is of a version that is not downloaded again."""
    return any(version["etag"] and version["times"] >= TIMES for version in _read(path))


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        data = json.loads(read_plain(path, MAX_BYTES, NO_LINK))
    except (OSError, ValueError, RecursionError):
        return []
    return [version for version in data if _is_version(version)] if isinstance(data, list) else []


def _is_version(data: Any) -> bool:
    kinds = {"source": str, "etag": str, "wanted": str, "got": str, "times": int}
    return isinstance(data, dict) and all(type(data.get(key)) is kind for key, kind in kinds.items())
