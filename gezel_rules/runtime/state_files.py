"""Small JSON files in the state directory: written whole or not at all, readable by their owner only."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gezel_rules.owned import read_owned, write_owned

MAX_BYTES = 8 << 20  # a record; a larger file was not written by us
_LATEST = 1 << 40  # seconds since 1970 that a clock can show everywhere


def new_id() -> str:
    """A name that sorts by time and is taken once: ``20261129T172400-1f3a9c``."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"


def write_text(path: Path, text: str) -> None:
    """Write a file of mode 0600 by an atomic rename; its folder is made for its owner only. Raises OSError."""
    write_owned(path, text.encode("utf-8", "surrogatepass"))  # names of files may be no text


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write one JSON object, see ``write_text``."""
    write_text(path, json.dumps(data, ensure_ascii=False, indent=1, default=str) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; ``None`` when it is gone, broken, too large, something else, or not ours alone."""
    try:
        data = json.loads(read_owned(path, MAX_BYTES) or b"")
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def seconds(value: Any) -> float | None:
    """A time or a duration of a file; ``None`` for what is none, or lies beyond what clocks can show."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST  # which no NaN is
    return value if known else None


def each_json(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The readable JSON objects of a folder, oldest name first; none when there is no folder."""
    for path in _files(folder):
        if (data := read_json(path)) is not None:
            yield path, data


def forget_oldest(folder: Path, kept: int) -> None:
    """Delete all but the newest files of a folder, by their names. What cannot be deleted stays."""
    for path in _files(folder)[:-kept]:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _files(folder: Path) -> list[Path]:
    """The JSON files of a folder, oldest name first; none when there is no folder."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []
    return [folder / name for name in sorted(names) if name.endswith(".json") and name[0] != "."]
