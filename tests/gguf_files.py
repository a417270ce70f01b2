"""GGUF files of headers as the catalog describes them: true size, no disk used."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

from gezel_rules.engines.llama_cpp.described_header import _names
from gezel_rules.gguf.quants import QUANTS

LONG_AGO = 1_000_000_000  # a modification time at which a file counts as at rest


def write_gguf(path: Path, header: Mapping[str, Any]) -> None:
    """A GGUF file with this ``header`` block, as long as its tensors would make it."""
    data, size = gguf_bytes(header)
    path.write_bytes(data)
    os.truncate(path, size)
    os.utime(path, (LONG_AGO, LONG_AGO))


def gguf_bytes(header: Mapping[str, Any]) -> tuple[bytes, int]:
    """Such a file up to its weights, and how long it is with them."""
    tensors = list(_tensors(header["tensors"]))
    body = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(header["metadata"]))
    body += b"".join(_text(key) + _value(value) for key, value in header["metadata"].items())
    at = 0
    for name, dims, number, size in tensors:
        body += _text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, at)
        at += -(-size // 32) * 32
    return body, -(-len(body) // 32) * 32 + at


def _tensors(lines: str) -> Iterator[tuple[str, tuple[int, ...], int, int]]:
    numbers = {name: (number, block, size) for number, (name, block, size) in QUANTS.items()}
    for line in lines.splitlines():
        run, kind, dims_text = line.split()
        dims = tuple(map(int, dims_text.split("x")))
        number, block, size = numbers[kind]
        for name in _names(run):
            yield name, dims, number, prod(dims) // block * size


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, list) and isinstance(value[0], float):
        return struct.pack("<IIQ", 9, 6, len(value)) + struct.pack(f"<{len(value)}f", *value)
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, 4, len(value)) + struct.pack(f"<{len(value)}I", *value)
    return struct.pack("<II", 4, value)
