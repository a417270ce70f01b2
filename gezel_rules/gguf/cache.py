"""Headers already read, kept as JSON: reading one back takes a tenth of walking over a large vocabulary.

An entry is named by device, inode, size and modification time of its file, so it never needs invalidating. A damaged
or foreign entry is ignored (its first line is a checksum), and failing to write one harms nobody.
"""

from __future__ import annotations

import json
import os
from binascii import crc32
from contextlib import suppress
from pathlib import Path
from typing import Any

from gezel_rules.cache import keep
from gezel_rules.gguf.records import Array, Header, Tensor
from gezel_rules.owned import read_owned

_FORMAT = "header-1"  # raise the number whenever the records change


def load(directory: str | os.PathLike[str], status: os.stat_result) -> Header | None:
    """The header kept for the file with this ``status``, or ``None``."""
    checksum, _, payload = (read_owned(_entry(directory, status)) or b"").partition(b"\n")
    try:
        if int(checksum, 16) != crc32(payload):
            return None
        return _from_json(json.loads(payload), status.st_size)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def store(directory: str | os.PathLike[str], status: os.stat_result, header: Header) -> None:
    """Keep ``header`` for the file with this ``status`` and drop what was kept for its earlier contents."""
    entry = _entry(directory, status)
    payload = json.dumps(_to_json(header), separators=(",", ":")).encode()
    with suppress(OSError):
        for old in entry.parent.glob(f"{_inode(status)}-*.json"):
            old.unlink(missing_ok=True)
    keep(entry, b"%08x\n%s" % (crc32(payload), payload))


def _inode(status: os.stat_result) -> str:
    return f"{_FORMAT}-{status.st_dev:x}-{status.st_ino:x}"


def _entry(directory: str | os.PathLike[str], status: os.stat_result) -> Path:
    return Path(directory, f"{_inode(status)}-{status.st_size:x}-{status.st_mtime_ns:x}.json")


def _to_json(header: Header) -> dict[str, Any]:
    kept = {k: {"array": v} if isinstance(v, Array) else v for k, v in header.metadata.items()}
    return {
        "version": header.version,
        "metadata": kept,
        "tensors": header.tensors,
        "data_offset": header.data_offset,
        "byte_order": header.byte_order,
    }


def _from_json(data: dict[str, Any], size: int) -> Header:
    tensors = tuple([Tensor(n, tuple(dims), kind, nbytes, offset) for n, dims, kind, nbytes, offset in data["tensors"]])
    metadata = {k: _value(v) for k, v in data["metadata"].items()}
    return Header(data["version"], metadata, tensors, data["data_offset"], size, data["byte_order"])


def _value(value: Any) -> Any:
    if type(value) is list:
        return tuple(value)
    if type(value) is dict:
        kind, length = value["array"]
        return Array(kind, length)
    return value
