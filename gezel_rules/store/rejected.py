"""Whole files that arrived and were wrong: remembered, so that nobody pays for the same wrong bytes a third time.

One wrong arrival may be damage on the way; the same wrong digest twice is what the server has. From then on it is not
downloaded again until the server shows another ETag, or the entry wants another digest.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from gezel_rules.plain_file import NO_LINK, read_plain
from gezel_rules.store.durable import replace_durably

MAX_BYTES = 1 << 16
TIMES = 2


class Rejected:
    """The memory of one file name, beside its part."""

    def __init__(self, part: Path) -> None:
        self.path = part.with_suffix(".rejected")

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(read_plain(self.path, MAX_BYTES, NO_LINK))
        except (OSError, ValueError, RecursionError):
            return {}
        return data if isinstance(data, dict) else {}

    def note(self, source: str, etag: str, wanted: str, got: str) -> None:
        """A whole file arrived with digest ``got`` where ``wanted`` was asked for."""
        version = {"source": source, "etag": etag, "wanted": wanted, "got": got}
        old = self._read()
        same = all(old.get(key) == value for key, value in version.items())
        times = old["times"] + 1 if same and isinstance(old.get("times"), int) else 1
        with contextlib.suppress(OSError):
            replace_durably(self.path, json.dumps({**version, "times": times}).encode())

    def digest(self, source: str, etag: str, wanted: str) -> str:
        """The wrong digest this very version is known to have; empty when it may still be right."""
        old = self._read()
        if not etag or (old.get("source"), old.get("etag"), old.get("wanted")) != (source, etag, wanted):
            return ""
        times, got = old.get("times"), old.get("got")
        return got if isinstance(times, int) and times >= TIMES and isinstance(got, str) else ""
