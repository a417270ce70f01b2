"""From the first bytes of a file to a ``Header``; refuses what llama.cpp's own reader (gguf.cpp) refuses."""

from __future__ import annotations

from math import prod
from struct import Struct, unpack_from
from sys import getsizeof

from gezel_rules.errors import BadInput
from gezel_rules.gguf.cursor import KINDS, LONGEST_KEPT_TEXT, Buffer, Cursor, shown
from gezel_rules.gguf.quants import QUANTS
from gezel_rules.gguf.records import Array, Header, Tensor, Value
from gezel_rules.gguf.strings import skip_strings

_KEPT_ITEMS = 4096
_LONGEST_KEY = 65535  # the GGUF specification's limit, bytes
_LONGEST_TENSOR_NAME = 63  # GGML_MAX_NAME less the closing zero, bytes
_MOST_TENSORS = 32768  # thirty times what the largest models have; bounds memory on a corrupt count
_MOST_DIMS = 4  # GGML_MAX_DIMS
_LARGEST = 2**63 - 1  # sizes are int64 in the engine
_UINT32, _STRING, _ARRAY = 4, 8, 9


def parse_header(buf: Buffer, name: str, size: int | None) -> Header:
    """The header at the start of ``buf``, the first bytes of file ``name`` of ``size`` bytes.

    Raises ``BadInput`` for anything malformed, ``Incomplete`` when only ``buf`` ends within the header.
    """
    cursor = Cursor(buf, name, size)
    version = _version(cursor)
    tensor_count = cursor.count(24, "tensor count")
    metadata = _metadata(cursor, cursor.count(13, "key count"))
    tensors = _tensors(cursor, tensor_count)
    alignment = _alignment(cursor, metadata)
    data_offset = -(-cursor.pos // alignment) * alignment
    _check_layout(cursor, tensors, alignment)
    byte_order = "little" if cursor.order == "<" else "big"
    return Header(version, metadata, tensors, data_offset, size, byte_order)


def _version(cursor: Cursor) -> int:
    if cursor.size == 0:
        raise BadInput(f"{cursor.name}: empty file, not a GGUF")
    end = cursor.need(4, "the GGUF magic")
    magic = bytes(cursor.buf[:4])
    if magic != b"GGUF":
        raise cursor.bad(f"not a GGUF file: it starts with {magic!r} instead of b'GGUF'")
    cursor.pos = end
    version: int = cursor.number(4, "the GGUF version")
    if version and not version & 0xFFFF:
        cursor.set_order(">")
        version = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version == 1:
        raise cursor.bad("GGUF v1 is not supported: convert the model again (v2 or v3 is needed)", 4)
    if version not in (2, 3):
        raise cursor.bad(f"GGUF version {version} is not known (v2 or v3 is needed)", 4)
    return version


def _metadata(cursor: Cursor, count: int) -> dict[str, Value]:
    metadata: dict[str, Value] = {}
    for _ in range(count):
        at = cursor.pos
        key = cursor.identifier(_LONGEST_KEY, "a key")
        if not key:
            raise cursor.bad("a key is empty", at)
        if key in metadata:
            raise cursor.bad(f"duplicate key {shown(key)}", at)
        cursor.keep(getsizeof(key), shown(key))
        metadata[key] = _value(cursor, key)
    return metadata


def _value(cursor: Cursor, key: str) -> Value:
    at = cursor.pos
    kind: int = cursor.number(4, "a value type")
    if key == "general.alignment" and kind != _UINT32:
        raise cursor.bad("general.alignment is not a UINT32", at)
    if kind in cursor.structs:
        value: Value = cursor.number(kind, "a value")
        return value
    if kind == _STRING:
        return _text(cursor, key)
    if kind == _ARRAY:
        return _array(cursor, key)
    raise cursor.bad(f"key {shown(key)} has unknown value type {kind}", at)


def _text(cursor: Cursor, key: str) -> str | Array:
    """A string value; bytes that are not UTF-8 become U+FFFD, since the engine takes any."""
    what = shown(key)
    length: int = cursor.number(10, f"length of {what}")
    end = cursor.need(length, what)
    if length > LONGEST_KEPT_TEXT:
        cursor.pos = end
        return Array("TEXT", length)
    text = bytes(cursor.buf[cursor.pos : end]).decode(errors="replace")
    cursor.pos = end
    cursor.keep(getsizeof(text), what)
    return text


def _array(cursor: Cursor, key: str) -> tuple[object, ...] | Array:
    at, what = cursor.pos, shown(key)
    kind: int = cursor.number(4, f"item type of {what}")
    if kind not in KINDS or kind == _ARRAY:
        raise cursor.bad(f"array {what} has items of unknown type {kind}", at)
    kind_name, code = KINDS[kind]
    item_bytes = 8 if kind == _STRING else cursor.structs[kind].size
    count = cursor.count(item_bytes, f"number of items of {what}")
    if kind == _STRING:
        skip_strings(cursor, count, what)
        return Array(kind_name, count)
    end = cursor.need(count * item_bytes, what)
    start, cursor.pos = cursor.pos, end
    if count > _KEPT_ITEMS:
        return Array(kind_name, count)
    cursor.keep(count * 40, what)
    return unpack_from(f"{cursor.order}{count}{code}", cursor.buf, start)


def _tensors(cursor: Cursor, count: int) -> tuple[Tensor, ...]:
    if count > _MOST_TENSORS:
        raise cursor.bad(f"tensor count is {count}, more than {_MOST_TENSORS}", 8)
    layouts = tuple(Struct(f"{cursor.order}{dims}QIQ") for dims in range(_MOST_DIMS + 1))
    names: set[str] = set()
    tensors = []
    for _ in range(count):
        at = cursor.pos
        tensor = _tensor(cursor, layouts)
        if tensor.name in names:
            raise cursor.bad(f"duplicate tensor {shown(tensor.name)}", at)
        names.add(tensor.name)
        tensors.append(tensor)
    return tuple(tensors)


def _tensor(cursor: Cursor, layouts: tuple[Struct, ...]) -> Tensor:
    at = cursor.pos
    name = cursor.identifier(_LONGEST_TENSOR_NAME, "the name of a tensor")
    dim_count: int = cursor.number(4, "a number of dimensions")
    if dim_count > _MOST_DIMS:
        raise cursor.bad(f"tensor {shown(name)} has {dim_count} dimensions, more than {_MOST_DIMS}", at)
    layout = layouts[dim_count]
    end = cursor.need(layout.size, "a tensor's shape and place")
    *dims, kind, offset = layout.unpack_from(cursor.buf, cursor.pos)
    cursor.pos = end
    if kind not in QUANTS:
        raise cursor.bad(f"tensor {shown(name)} has unknown type {kind}", at)
    kind_name, block, block_bytes = QUANTS[kind]
    if (dims and dims[0] % block) or (not dims and block > 1):
        raise cursor.bad(f"tensor {shown(name)}: a row of {dims[:1]} is not a multiple of {block} for {kind_name}", at)
    return Tensor(name, tuple(dims), kind_name, _elements(cursor, name, dims, at) // block * block_bytes, offset)


def _elements(cursor: Cursor, name: str, dims: list[int], at: int) -> int:
    elements = prod(dims)
    if elements > _LARGEST or (not elements and max(dims) > _LARGEST):
        raise cursor.bad(f"tensor {shown(name)}: shape {dims} overflows 63 bits", at)
    return elements


def _alignment(cursor: Cursor, metadata: dict[str, Value]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not alignment or alignment & (alignment - 1):
        raise BadInput(f"{cursor.name}: general.alignment is {shown(str(alignment))}, not a power of two")
    return alignment


def _check_layout(cursor: Cursor, tensors: tuple[Tensor, ...], alignment: int) -> None:
    """Tensors lie one behind the other, padded: the engine refuses anything else."""
    expected = 0
    for tensor in tensors:
        if tensor.offset != expected:
            place = f"is at data offset {tensor.offset}, expected {expected}"
            raise BadInput(f"{cursor.name}: tensor {shown(tensor.name)} {place}")
        expected += -(-tensor.nbytes // alignment) * alignment
