"""Whether a ``header`` block agrees with itself: a key that is misspelt, a count that is no number, tensors that are
not those of the counts. A block is written by a person or read from a file that one may have edited since."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gezel_rules.documents.kinds import kind_of
from gezel_rules.documents.node import did_you_mean
from gezel_rules.documents.read import Value
from gezel_rules.errors import Problem
from gezel_rules.gguf import Array, Header

ARCH = "general.architecture"
NEEDED = ("block_count", "context_length", "embedding_length")
"""What no model can do without, for its memory (``memory.layers.needed``) and for its window."""
_COUNT = re.compile(r".*(?:_count(?:_kv)?|_length(?:_mla|_swa)?|_size|_rank|_kernel|_layers|\.sliding_window)")
"""Names that the GGUF specification gives to whole numbers, or to lists with one for each layer."""
_FLAGS_TOO = "recurrent_layers"  # a list that says of each layer whether it is one
_BLOCK = re.compile(r"blk\.(\d+)\.")
_LAYER = re.compile(r"\.\d+\.")
_LIKE = 0.8  # more alike than any two names that the specification has
_RUNS = 4  # a message names so many runs of blocks


def contradictions(block: Value, header: Header, whole: bool) -> Iterator[Problem]:
    """What in a block contradicts the rest of it, the likely cause first and alone. ``whole``: all of the block could
    be read, so that its tensors are those of the model."""
    values = block.at("metadata") or {}
    if not header.arch:
        return
    names = list(_misnamed(values, header.arch, block["metadata"]))
    numbers = [problem for key, value in values.items() for problem in _no_count(key, value)]
    yield from names + numbers
    if whole and not header.tensors:
        yield block["tensors"].problem("'tensors' names none")
    elif whole and not names and not numbers:
        yield from _blocks(values, header)
        yield from _sizes(values, header)


def _misnamed(values: Mapping[str, Value], arch: str, metadata: Value) -> Iterator[Problem]:
    """A needed key that is not there: under another architecture's name, misspelt, or left out."""
    own = [key for key in values if key.startswith(f"{arch}.")]
    others = dict.fromkeys(key.partition(".")[0] for key in values if not key.startswith(("general.", "tokenizer.")))
    if not own and others:
        meant = did_you_mean(arch, others) or f"; they begin with '{next(iter(others))}.'"
        yield values[ARCH].problem(f"no key in 'metadata' begins with '{arch}.'{meant}")
        return
    for key in (f"{arch}.{key}" for key in NEEDED if f"{arch}.{key}" not in values):
        if near := _nearest(key.removeprefix(arch), [each.removeprefix(arch) for each in own]):
            node = values[arch + near].node
            yield (node.key or node).problem(f"unknown key '{arch}{near}'; did you mean '{key}'?")
        else:
            yield metadata.problem(f"'metadata' has no '{key}'", 1)


def _nearest(name: str, names: list[str]) -> str:
    from difflib import get_close_matches  # needed only for a message

    return next(iter(get_close_matches(name, names, 1, _LIKE)), "")


def _no_count(key: str, value: Value) -> Iterator[Problem]:
    if not _COUNT.fullmatch(key) or isinstance(value.value, dict):
        return
    for item in value.value if isinstance(value.value, list) else [value]:
        meant = item.value
        flag = isinstance(meant, bool) and isinstance(value.value, list) and key.endswith(_FLAGS_TOO)
        if not flag and (type(meant) is not int or meant < 0):
            said = f"{meant}" if type(meant) in (int, float) else kind_of(meant)
            yield item.problem(f"'{key}' must be a whole number, at least 0, not {said}")
            return


def _blocks(values: Mapping[str, Value], header: Header) -> Iterator[Problem]:
    """Every block has tensors, but for those of an MTP head that the file leaves out, or of the trunk where it holds
    the head alone; and none is above the last."""
    count, stated = header.get("block_count"), values.get(f"{header.arch}.block_count")
    found = sorted({int(match[1]) for tensor in header.tensors if (match := _BLOCK.match(tensor.name))})
    if type(count) is not int or stated is None:
        return
    if not found:
        if not any(_LAYER.search(tensor.name) for tensor in header.tensors):  # others number their layers elsewhere
            yield stated.problem(f"'{header.arch}.block_count' is {count}, but 'tensors' has no block")
        return
    heads = header.get("nextn_predict_layers", 0)
    trunk = count - heads if type(heads) is int else count
    wanted = {n for n in range(trunk) if not _is_empty(header, n)} if found[0] < trunk else set()
    lacking = sorted(wanted - set(found))
    if lacking or found[-1] >= count:
        have = f"'tensors' has blocks {_ranges(found)}"
        yield stated.problem(f"'{header.arch}.block_count' is {count}, which is blocks 0-{count - 1}, but {have}")


def _is_empty(header: Header, block: int) -> bool:
    """Whether the header says of this one block that it has neither heads nor a feed-forward network."""
    lists = [header.get(key) for key in ("attention.head_count", "feed_forward_length")]
    return all(isinstance(each, tuple) and block < len(each) and each[block] == 0 for each in lists)


def _ranges(numbers: list[int]) -> str:
    """``0-3, 7, 9-11``; a few runs, then ``…``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    said = [f"{first}-{last}" if last > first else f"{first}" for first, last in runs[:_RUNS]]
    return ", ".join([*said, "…"] if len(runs) > _RUNS else said)


def _sizes(values: Mapping[str, Value], header: Header) -> Iterator[Problem]:
    """A row of the token embedding has one value for each of ``embedding_length``, and there is one for each token;
    stacked experts are as many as ``expert_count``."""
    tensors = {tensor.name: tensor.dims for tensor in header.tensors}
    embedding = tensors.get("token_embd.weight", ())
    experts = next((dims for name, dims in tensors.items() if name.endswith("_exps.weight")), ())
    tokens = "tokenizer.ggml.tokens"
    for key, dims, axis, where in (
        (f"{header.arch}.embedding_length", embedding, 0, "rows of token_embd.weight have"),
        (tokens if tokens in values else f"{header.arch}.vocab_size", embedding, 1, "rows in token_embd.weight are"),
        (f"{header.arch}.expert_count", experts, 2, "experts in 'tensors' are"),
    ):
        stated = _length(header.metadata.get(key))
        if stated is not None and axis < len(dims) and stated != dims[axis]:
            yield values[key].problem(f"'{key}' is {stated}, but {where} {dims[axis]}")


def _length(value: Any) -> int | None:
    return value.length if isinstance(value, Array) else value if type(value) is int else None
