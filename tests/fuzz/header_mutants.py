"""Model headers with something changed, drawn by chance: a value, a key, a tensor, or bytes of the file."""

from __future__ import annotations

import copy
import os
import random
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gguf_files import gguf_bytes

from gezel_rules.gguf.quants import QUANTS

Header = dict[str, Any]

LARGEST = 1 << 43  # bytes that a file system takes as a hole

NUMBERS = (
    0, 1, 2, 3, 5, 7, 31, 64, 127, 255, 256, 1000, 4095, 4096, 65_535, 1 << 17, 1 << 20, (1 << 31) - 1, 1 << 31,
    (1 << 32) - 1,
)  # fmt: skip
VALUES = (
    *NUMBERS, True, False, -1.0, 0.0, 1e-9, 1e30, 3.4e38, float("inf"), float("nan"), "", "x", "none", "llama", "mamba",
    "deepseek2", "rwkv7", "bert", "\x1b[31m", "a\nb", "ä→", "x" * 300, [0], [1], [1 << 20], [0.5], [8] * 300,
    [0, 1] * 40,
)  # fmt: skip
DIMS = (0, 1, 2, 31, 32, 33, 256, 4096, 65_536, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1)
TYPES = [name for name, *_ in QUANTS.values()]
KEYS = (
    "block_count", "context_length", "embedding_length", "attention.head_count", "attention.head_count_kv",
    "attention.key_length", "attention.value_length", "attention.sliding_window", "attention.kv_lora_rank",
    "attention.sliding_window_pattern", "attention.shared_kv_layers", "ssm.state_size", "ssm.inner_size",
    "ssm.group_count", "ssm.conv_kernel", "expert_count", "expert_used_count", "nextn_predict_layers", "vocab_size",
    "rope.dimension_count", "leading_dense_block_count", "full_attention_interval", "wkv.head_size",
)  # fmt: skip


class Mutant(NamedTuple):
    """A file's bytes and its length with the weights, which are a hole; the change in words."""

    data: bytes
    size: int
    says: str

    def write(self, path: Path) -> None:
        """Put it on disk, just written: no cache keeps it."""
        path.write_bytes(self.data)
        os.truncate(path, max(self.size, len(self.data)))


def mutants(headers: Mapping[str, Header], chance: random.Random) -> Iterator[Mutant]:
    """Mutants without end of headers as the catalog describes them, by their names; one in five is of
    bytes."""
    names = list(headers)
    while True:
        name = chance.choice(names)
        header = copy.deepcopy(headers[name])
        if chance.random() < 0.2:
            data, size = gguf_bytes(header)
            data, said = _bytes(data, chance)
        else:
            said = "; ".join(chance.choice(_CHANGES)(header, chance) for _ in range(chance.choice((1, 1, 1, 2, 3))))
            try:
                data, size = gguf_bytes(header)
            except struct.error:  # a number that has no place in a file
                continue
        yield Mutant(data, min(size, LARGEST), f"{name}: {said}")


def _bytes(data: bytes, chance: random.Random) -> tuple[bytes, str]:
    at = chance.randrange(len(data) - 8)
    new, said = chance.choice((
        (data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :], "flip"),
        (data[:at] + struct.pack("<I", chance.choice(NUMBERS)) + data[at + 4 :], "u32"),
        (data[:at] + struct.pack("<Q", chance.choice(DIMS)) + data[at + 8 :], "u64"),
        (data[:at], "cut"),
        (data[:at] + data[at + chance.randrange(1, 16) :], "drop"),
        (data[:at] + data[at : at + 64] + data[at:], "repeat"),
    ))  # fmt: skip
    return new, f"{said} at {at}"


def _value(header: Header, chance: random.Random) -> str:
    key = chance.choice(list(header["metadata"]))
    return _set(header, key, chance.choice(VALUES))


def _near(header: Header, chance: random.Random) -> str:
    """A number a little or much off, an array with another item or length."""
    key, value = chance.choice(list(header["metadata"].items()))
    if isinstance(value, list):
        at = chance.randrange(len(value))
        return _set(header, key, chance.choice((value[:at] or [0], value + value, [*value[:at], 0, *value[at + 1 :]])))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        off = chance.choice((value + 1, value - 1, value * 2, value * 1000, value // 2, value // 10))
        return _set(header, key, abs(off))
    return _set(header, key, chance.choice(VALUES))


def _known(header: Header, chance: random.Random) -> str:
    """A key that architectures have, with whatever number."""
    arch = header["metadata"].get("general.architecture")
    return _set(header, f"{arch}.{chance.choice(KEYS)}", chance.choice(NUMBERS))


def _set(header: Header, key: str, value: Any) -> str:
    header["metadata"][key] = value
    return f"{key} = {value!r:.60}"


def _gone(header: Header, chance: random.Random) -> str:
    key = chance.choice(list(header["metadata"]))
    del header["metadata"][key]
    return f"no {key}"


def _arch(header: Header, chance: random.Random) -> str:
    """The same file as another architecture's: every key follows."""
    new = chance.choice(("llama", "gemma3", "mamba", "deepseek2", "qwen3moe", "falcon-h1", "lfm2", "gpt-oss", "none"))
    said = header["metadata"]
    old = said.get("general.architecture", "")
    header["metadata"] = {key.replace(f"{old}.", f"{new}.", 1) if key.startswith(f"{old}.") else key: value
                          for key, value in said.items()}  # fmt: skip
    return _set(header, "general.architecture", new)


def _tensor(header: Header, chance: random.Random) -> str:
    """A run of tensors that is gone, double, of another type, or of other dimensions."""
    lines = header["tensors"].splitlines()
    at = chance.randrange(len(lines))
    run, kind, dims = lines[at].split()
    match chance.choice(("gone", "type", "dim", "less", "name")):
        case "gone" if len(lines) > 1:
            new = []
        case "type":
            new = [f"{run} {chance.choice(TYPES)} {dims}"]
        case "dim":
            extents = dims.split("x")
            extents[chance.randrange(len(extents))] = str(chance.choice(DIMS))
            new = [f"{run} {kind} {'x'.join(extents)}"]
        case "less":
            new = [f"{run} {kind} {dims.split('x')[-1]}"]
        case _:
            new = [f"{run.replace('attn', 'ssm').replace('ffn', 'attn')} {kind} {dims}"]
    lines[at : at + 1] = new
    header["tensors"] = "\n".join(lines)
    return f"tensors {run}: {new}"


_CHANGES: tuple[Callable[[Header, random.Random], str], ...] = (
    _value, _value, _near, _near, _near, _known, _known, _gone, _arch, _tensor, _tensor,
)  # fmt: skip
