"""What the `gguf` package's own reader says, in the shape of our ``Header``; and hand-made files to read."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf

from gezel_rules.gguf import Array, Header, Tensor

STRING = gguf.GGUFValueType.STRING
ARRAY = gguf.GGUFValueType.ARRAY


def oracle(path: Path) -> Header:
    """The header by ``gguf.GGUFReader``; raises whatever that raises."""
    reader = gguf.GGUFReader(path)
    fields = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    start = int(reader.data_offset)
    tensors = (
        Tensor(t.name, tuple(t.shape.tolist()), t.tensor_type.name, int(t.n_bytes), int(t.data_offset) - start)
        for t in reader.tensors
    )
    return Header(
        int(reader.fields["GGUF.version"].parts[0][0]),
        {key: _value(field) for key, field in fields.items()},
        tuple(tensors),
        start,
        path.stat().st_size,
        "little" if reader.endianess == gguf.GGUFEndian.LITTLE else "big",
    )


def _value(field: gguf.ReaderField):
    if field.types[0] == STRING:
        return bytes(field.parts[-1]).decode(errors="replace")
    if field.types[0] != ARRAY:
        return field.contents()
    kind, length = gguf.GGUFValueType(int(field.parts[3][0])), int(field.parts[4][0])
    if kind == STRING or length > 4096:
        return Array(kind.name, length)
    return tuple(field.contents()) if length else ()


def same(ours: Header, theirs: Header) -> bool:
    """Equality in which NaN equals NaN and the types of values count."""
    return repr(ours._replace(metadata=dict(ours.metadata))) == repr(theirs)


def text(value: str | bytes) -> bytes:
    """A length-prefixed string."""
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def key(name: str | bytes, kind: int, value: bytes) -> bytes:
    """One key-value pair of GGUF value type ``kind``."""
    return text(name) + struct.pack("<I", kind) + value


def tensor(name: str | bytes, dims: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    """One tensor's entry."""
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def gguf_file(*keys: bytes, tensors: tuple[bytes, ...] = (), version: int = 3, data: int = 0) -> bytes:
    """A little-endian file of these parts, padded to 32 bytes, with ``data`` zero bytes behind it."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys)) + b"".join(keys) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + bytes(data)
