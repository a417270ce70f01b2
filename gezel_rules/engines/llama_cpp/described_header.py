"""The ``header`` block: a GGUF header small enough to read in a review, exact enough to plan on.

One line per run of equal tensors, ``blk.0-3,7.attn_q.weight Q4_K 4096x4096``: name, ggml type, dimensions with ne0
first. A list of layers stands for as many tensors. Metadata holds what decides memory: the architecture's own keys,
the file type, the size of the vocabulary. Figures with a point are FLOAT32, as they are in GGUF files.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from math import prod
from typing import Any

from gezel_rules.catalog.records import Entry
from gezel_rules.documents.declare import SINGLE, TEXT, Either, List, Shape, required, whole
from gezel_rules.documents.node import Node, Text, did_you_mean
from gezel_rules.documents.read import Value, in_file_order, read
from gezel_rules.documents.source import parse_yaml
from gezel_rules.engines.llama_cpp.header_sense import contradictions
from gezel_rules.errors import BadInput, Problem
from gezel_rules.gguf import Array, Header, Tensor
from gezel_rules.gguf.quants import QUANTS

TEMPLATE = "tokenizer.chat_template"

NOT_WRITTEN_OUT = Shape(
    "an array that is not written out",
    {
        "array": required(TEXT, "GGUF type of the items."),
        "length": required(whole(least=0), "Number of items."),
    },
    "An array that is not written out.",
)
METADATA = Shape(
    "'metadata'",
    {"general.architecture": required(TEXT, "Architecture, which also begins the names of its own keys.")},
    others=Either((SINGLE, List(SINGLE), NOT_WRITTEN_OUT)),
)
HEADER = Shape(
    "'header'",
    {
        "origin": required(TEXT, "Where it was read, or what it was derived from."),
        "metadata": required(METADATA, "The architecture's own keys, the file type, the length of the vocabulary."),
        "tensors": required(
            TEXT,
            "One line per run of equal tensors: NAME TYPE DIMxDIM, ne0 first; blk.0-3,7.x stands for five tensors.",
        ),
    },
    "A GGUF header: what decides memory. 'gezel-rules catalog header FILE' writes it.",
)

_LINE = re.compile(r"(\S+) +(\S+) +([1-9]\d{0,14}(?:x[1-9]\d{0,14}){0,3})", re.ASCII)
_LAYERS = re.compile(r"(?<=\.)\d{1,4}(?:[-,]\d{1,4})+(?=\.)", re.ASCII)
_LAYER = re.compile(r"(?<=\.)\d{1,4}(?=\.)", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z][\w.-]*( [\w.,;-]+)*", re.ASCII)
_SIZES = {name: (block, size) for name, block, size in QUANTS.values()}
_MOST_TENSORS = 32768  # as many as the GGUF reader takes
_MOST_ELEMENTS = 2**63 - 1
_LONGEST_NAME = 63  # bytes, GGML_MAX_NAME less the closing zero


def header_of(entry: Entry) -> Header | None:
    """The header that ``entry`` describes; ``None`` when it describes none.

    Its tensors are those of the file, in no particular order, with no offsets; ``data_offset`` is 0 and
    ``file_bytes`` the verified size, if any. Where the entry says that the file has a chat template, the header has
    one of unrecorded length. Raises BadInput with all problems of the block.
    """
    if entry.header is None:
        return None
    header = _read(entry.header)
    metadata = dict(header.metadata)
    if entry.chat:
        metadata.setdefault(TEMPLATE, Array("TEXT", 0))
    return Header(3, metadata, header.tensors, 0, entry.model.size)


def draft_header_of(entry: Entry) -> Header | None:
    """The header of the drafter that ``entry`` brings along, as ``header_of``; ``None`` when it describes none."""
    if entry.draft is None or entry.draft.header is None:
        return None
    return _read(entry.draft.header)


def _read(node: Node) -> Header:
    problems: list[Problem] = []
    header = checked_header_block(node, problems)
    if problems:
        raise BadInput(in_file_order(problems))
    return header


def read_text(text: str, name: str) -> Header:
    """The header that a text describes, as ``describe_header`` writes it; ``name`` is what messages call it. Raises
    BadInput with all problems."""
    root = parse_yaml(Text(name, text))
    block = root.value.get("header") if isinstance(root.value, dict) else None
    if block is None:
        raise BadInput(root.problem("no 'header' block"))
    return _read(block)


def checked_header_block(node: Node, problems: list[Problem]) -> Header:
    """``read_header_block``, and what in the block contradicts the rest of it among the problems."""
    before = len(problems)
    header = read_header_block(node, problems)
    problems += contradictions(read(node, HEADER, []), header, whole=len(problems) == before)
    return header


def read_header_block(node: Node, problems: list[Problem]) -> Header:
    """The header in a ``header`` block; what is wrong with it is added to ``problems``."""
    block = read(node, HEADER, problems)
    values = block.at("metadata") or {}
    metadata = {key: _value(value) for key, value in values.items()}
    tensors = tuple(_tensors(block["tensors"].node, problems)) if "tensors" in block else ()
    return Header(3, metadata, tensors, 0, None)


def _value(value: Value) -> Any:
    """As GGUF has it: FLOAT32, an array, or one that is only counted."""
    if isinstance(value.value, list):
        return tuple(map(_value, value.value))
    if isinstance(value.value, dict):
        return Array(value.at("array") or "", value.at("length") or 0)
    return _float32(value.value) if isinstance(value.value, float) else value.value


def _float32(value: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
        return rounded
    except OverflowError:
        return value


def _tensors(node: Node, problems: list[Problem]) -> Iterator[Tensor]:
    seen: set[str] = set()
    at = 0
    for line in node.value.splitlines(keepends=True):
        text = line.strip()
        start = at + len(line) - len(line.lstrip())
        at += len(line)
        if not text or text.startswith("#"):
            continue
        for tensor in _run(text, node, start, problems):
            if tensor.name in seen:
                problems.append(node.problem_within(f"tensor '{tensor.name}' is here twice", start, len(text)))
                break
            seen.add(tensor.name)
            yield tensor
        if len(seen) > _MOST_TENSORS:
            problems.append(node.problem_within(f"more than {_MOST_TENSORS} tensors", start, len(text)))
            return


def _run(text: str, node: Node, start: int, problems: list[Problem]) -> list[Tensor]:
    """The tensors of one line, which stands at ``start`` of the block."""
    match = _LINE.fullmatch(text)
    if match is None:
        problems.append(node.problem_within("expected: NAME TYPE DIMxDIM…", start, len(text)))
        return []
    name, kind, shape = match.groups()
    dims, names = tuple(map(int, shape.split("x"))), _names(name)
    if fault := _fault(names, kind, dims):
        group, message = fault
        problems.append(node.problem_within(message, start + match.start(group), len(match[group])))
        return []
    block, size = _SIZES[kind]
    return [Tensor(each, dims, kind, prod(dims) // block * size) for each in names]


def _fault(names: list[str], kind: str, dims: tuple[int, ...]) -> tuple[int, str] | None:
    """Which part of a line (1 name, 2 type, 3 dimensions) is wrong, and how."""
    if not names or len(max(names, key=len).encode()) > _LONGEST_NAME:
        return 1, "not a tensor name with a rising list of layers"
    if kind not in _SIZES:
        return 2, f"unknown tensor type {kind!a}{did_you_mean(kind, _SIZES)}"
    if dims[0] % _SIZES[kind][0]:
        return 3, f"a row of {dims[0]} is not a multiple of {_SIZES[kind][0]}, the block of {kind}"
    if prod(dims) > _MOST_ELEMENTS:
        return 3, "more elements than 63 bits can count"
    return None


def _names(name: str) -> list[str]:
    """``blk.0-1,4.x`` → ``blk.0.x``, ``blk.1.x``, ``blk.4.x``; none when the list does not rise."""
    match = _LAYERS.search(name)
    if match is None:
        return [] if "," in name else [name]
    before, after = name[: match.start()], name[match.end() :]
    layers: list[int] = []
    for run in match.group().split(","):
        first, *rest = run.split("-")
        last = rest[0] if rest else first
        if len(rest) > 1 or int(last) < int(first) or (layers and int(first) <= layers[-1]):
            return []
        layers.extend(range(int(first), int(last) + 1))
    return [f"{before}{layer}{after}" for layer in layers]


def describe_file(header: Header, origin: str) -> Node:
    """The ``header`` block of a model as ``describe_header`` writes it, read again: an entry can hold it. Raises
    BadInput where it contradicts itself."""
    block: Node = parse_yaml(Text("header", describe_header(header, origin))).value["header"]
    _read(block)
    return block


def describe_header(header: Header, origin: str) -> str:
    """The ``header`` block that describes ``header``, as YAML text; ``origin`` says where it was read."""
    lines = ["header:", f"  origin: {_scalar(origin)}", "  metadata:"]
    lines += [f"    {key}: {_yaml(value)}" for key, value in header.metadata.items() if _kept(key, header.arch)]
    return "\n".join([*lines, "  tensors: |", *(f"    {line}" for line in _runs(header.tensors))]) + "\n"


def _kept(key: str, arch: str) -> bool:
    general = ("general.architecture", "general.file_type", "tokenizer.ggml.tokens", TEMPLATE)
    return key.startswith(f"{arch}.") or key in general


def _runs(tensors: tuple[Tensor, ...]) -> Iterator[str]:
    runs: dict[tuple[str, str, str, tuple[int, ...]], list[int]] = {}
    for tensor in tensors:
        match = _LAYER.search(tensor.name)
        before, after = (tensor.name[: match.start()], tensor.name[match.end() :]) if match else (tensor.name, "")
        runs.setdefault((before, after, tensor.type, tensor.dims), []).extend([int(match.group())] if match else [])
    for (before, after, kind, dims), layers in runs.items():
        yield f"{before}{_ranges(sorted(layers))}{after} {kind} {'x'.join(map(str, dims or (1,)))}"


def _ranges(layers: list[int]) -> str:
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][1] + 1:
            runs[-1][1] = layer
        else:
            runs.append([layer, layer])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _yaml(value: Any) -> str:
    if isinstance(value, Array):
        return f"{{array: {value.type}, length: {value.length}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_scalar, value))}]"
    if isinstance(value, str) and len(value) > 200:
        return f"{{array: TEXT, length: {len(value.encode())}}}"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _shortest(value)
    return _text(value) if isinstance(value, str) else str(value)


def _text(text: str) -> str:
    """A plain word or sentence as it is; anything YAML could take for something else in quotes."""
    if _PLAIN.fullmatch(text) and text.lower() not in ("true", "false", "null", "yes", "no", "on", "off"):
        return text
    safe = (char if char.isprintable() and char not in '"\\' else f"\\U{ord(char):08x}" for char in text)
    return f'"{"".join(safe)}"'


def _shortest(value: float) -> str:
    """The fewest digits that give the same FLOAT32 (all digits when it is no FLOAT32)."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if _float32(float(text)) == value:
            break
    else:
        text = repr(value)
    return text if "." in text or "e" in text else f"{text}.0"
