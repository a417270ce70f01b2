"""Header files on disk: mapped when they are at rest, read in growing pieces when not, all parts of a split model."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable
from io import FileIO
from typing import TYPE_CHECKING

from gezel_rules.errors import BadInput
from gezel_rules.gguf import cache
from gezel_rules.gguf.records import Header, Tensor

if TYPE_CHECKING:
    from mmap import mmap

    from gezel_rules.gguf.cursor import Buffer

FirstBytes = Callable[[int], "tuple[Buffer, int | None]"]
"""Given a count: that many bytes from the start (fewer only at the end of the file), and the file's size if known."""

_SPLIT_NAME = r"(?s)(?P<prefix>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf"  # compiled when one is met
_GROWTH = 2 << 20
_AT_REST = 5.0
"""Seconds since the last write: a map of a file that shrinks ends the process with SIGBUS, and a file written twice
within one clock tick cannot be told apart by its modification time."""
FIRST_PIECE = 8 << 20
LARGEST_HEADER = 32 << 20
"""Bytes read at most where no map is possible; the largest vocabularies with their merges take about half."""


def read_header(
    path: str | os.PathLike[str], *, check_size: bool = True, cache_dir: str | os.PathLike[str] | None = None
) -> Header:
    """The header of the GGUF file at ``path``; given the first part of a split model, that of all its parts.

    ``check_size=False`` accepts a file that ends before its tensor data does (a header alone, a download under way).
    ``cache_dir`` is where headers already read are kept (created when missing); ``None`` keeps nothing.
    Raises ``BadInput``, in one line, for whatever is wrong with the file.
    """
    name = os.fspath(path)
    return join_parts(read_one(name, check_size, cache_dir), name, lambda part: read_one(part, check_size, cache_dir))


def read_one(name: str, check_size: bool = True, cache_dir: str | os.PathLike[str] | None = None) -> Header:
    """The header of one file, parts of a split model not followed."""
    try:
        with open(_opened(name), "rb", buffering=0) as file:
            header = _read_open(file, name, cache_dir)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadInput(f"{name}: cannot be read: {reason}") from None
    if check_size:
        check_complete(header, name)
    return header


def _opened(name: str) -> int:
    """A descriptor; opening a pipe must not block, so that it can be refused."""
    return os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))


def _read_open(file: FileIO, name: str, cache_dir: str | os.PathLike[str] | None) -> Header:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "a device or pipe"
        raise BadInput(f"{name}: {kind}, not a GGUF file")
    at_rest = time.time() - status.st_mtime > _AT_REST
    if not at_rest or cache_dir is None:
        return _parse_open(file, name, status.st_size, at_rest)
    header = cache.load(cache_dir, status)
    if header is None:
        header = _parse_open(file, name, status.st_size, at_rest)
        cache.store(cache_dir, status, header)
    return header


def _parse_open(file: FileIO, name: str, size: int, at_rest: bool) -> Header:
    if size and at_rest:
        from mmap import ACCESS_READ, mmap

        try:
            mapped = mmap(file.fileno(), size, access=ACCESS_READ)
        except (OSError, ValueError):
            pass  # some file systems cannot map
        else:
            with mapped:
                return _parse_mapped(mapped, name, size)
    return parse_growing(lambda count: _first_bytes(file, min(count, size), size), name)


def _parse_mapped(mapped: mmap, name: str, size: int) -> Header:
    from gezel_rules.gguf.cursor import LARGEST_MAPPED, Incomplete
    from gezel_rules.gguf.parse import parse_header

    try:
        return parse_header(mapped, name, size)
    except Incomplete:
        raise BadInput(f"{name}: the header goes on for more than {LARGEST_MAPPED >> 20} MiB") from None


def check_complete(header: Header, name: str) -> None:
    """Raises ``BadInput`` when tensor data of ``header`` lies beyond the end of its file (one file, not all parts)."""
    if header.file_bytes is None or not header.tensors:
        return
    last = header.tensors[-1]
    end = header.data_offset + last.offset + last.nbytes
    if end > header.file_bytes:
        short = f"tensor data ends at byte {end}, but the file has only {header.file_bytes} bytes"
        raise BadInput(f"{name}: truncated: {short} (incomplete download?)")


def read_elsewhere(name: str, first_bytes_of: Callable[[str], FirstBytes], first_piece: int = FIRST_PIECE) -> Header:
    """The header of a file that is not here, all parts of a split model joined: ``first_bytes_of`` knows, by a file's
    name, how to get at it. Raises ``BadInput`` as ``read_header`` does."""

    def read(part: str) -> Header:
        header = parse_growing(first_bytes_of(part), part, first_piece)
        check_complete(header, part)
        return header

    return join_parts(read(name), name, read)


def _first_bytes(file: FileIO, count: int, size: int) -> tuple[bytes, int]:
    file.seek(0)
    piece = file.read(count)
    return piece, size if len(piece) == count else len(piece)


def parse_growing(first_bytes: FirstBytes, name: str, first_piece: int = FIRST_PIECE) -> Header:
    """Parse what ``first_bytes`` returns, asking for more until the header is complete.

    Raises ``BadInput`` as ``parse_header`` does, and when more than ``LARGEST_HEADER`` bytes would be needed.
    """
    from gezel_rules.gguf.cursor import Incomplete
    from gezel_rules.gguf.parse import parse_header

    count = first_piece
    while True:
        piece, size = first_bytes(count)
        try:
            return parse_header(piece, name, size)
        except Incomplete as more:
            needed = more.needed
        del piece
        if needed > LARGEST_HEADER:
            raise BadInput(f"{name}: the header needs more than {LARGEST_HEADER >> 20} MiB")
        count = min(max(needed, count + _GROWTH, count * 3 // 2), LARGEST_HEADER, size or LARGEST_HEADER)


def join_parts(first: Header, name: str, read_part: Callable[[str], Header]) -> Header:
    """``first`` with the tensors of the other parts of its split model; itself when it is not split."""
    count = first.metadata.get("split.count", 0)
    if type(count) is not int or count <= 1:
        return first
    paths = _part_names(first, name, count)
    parts = [first, *(_read_part(read_part, path, number, count) for number, path in enumerate(paths) if number)]
    tensors = tuple(tensor for part in parts for tensor in part.tensors)
    _check_parts(first, name, tensors)
    sizes = [part.file_bytes for part in parts]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    return Header(first.version, first.metadata, tensors, first.data_offset, total, first.byte_order)


def _part_names(first: Header, name: str, count: int) -> list[str]:
    """Names of all parts, from the first one's, as the engine derives them."""
    number = first.metadata.get("split.no", 0)
    found = re.fullmatch(_SPLIT_NAME, name)
    if not found or int(found["count"]) != count:
        raise BadInput(f"{name}: part of a split model, but its name does not end in -00001-of-{count:05d}.gguf")
    names = [f"{found['prefix']}-{part:05d}-of-{count:05d}.gguf" for part in range(1, count + 1)]
    if number != 0 or int(found["number"]) != 1:
        raise BadInput(f"{name}: not the first part of a split model: name {names[0]}")
    return names


def _read_part(read_part: Callable[[str], Header], path: str, number: int, count: int) -> Header:
    part = read_part(path)
    if part.metadata.get("split.no") != number:
        raise BadInput(f"{path}: says it is part {part.metadata.get('split.no')!r:.20} (from 0), expected {number}")
    return part


def _check_parts(first: Header, name: str, tensors: tuple[Tensor, ...]) -> None:
    expected = first.metadata.get("split.tensors.count", len(tensors))
    if expected != len(tensors):
        raise BadInput(f"{name}: {expected!r:.20} tensors expected in all parts, {len(tensors)} found")
    seen: set[str] = set()
    for tensor in tensors:
        if tensor.name in seen:
            raise BadInput(f"{name}: duplicate tensor {tensor.name!a} in its parts")
        seen.add(tensor.name)
