"""Weights: what each tensor costs, which part of the model it belongs to, and which buffer the CPU gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.engines.llama_cpp.memory.header_info import HeaderInfo, TensorInfo
    from gezel_rules.engines.llama_cpp.memory.tables import Architecture, MemoryTables

INPUT, OUTPUT = -1, -2
"""Places beside the layers: the input side always stays on the host; the output side counts as one more layer."""

_PLACES = {"input": INPUT, "first": 0, "output": OUTPUT}

ALIGNMENT = 32  # bytes; ggml pads every tensor of a buffer


class Weight(NamedTuple):
    """One tensor as loaded. ``place``: layer index, ``INPUT`` or ``OUTPUT``; ``repack``: the CPU re-packs it; ``kept``:
    loaded with the trunk even if it belongs to the MTP head."""

    name: str
    bytes: int
    place: int
    repack: bool
    experts: bool
    ffn: bool
    lazy: bool
    dims: tuple[int, ...]
    twice: bool = True
    kept: bool = False


def all_weights(header: HeaderInfo, row: Architecture, tables: MemoryTables) -> tuple[Weight, ...]:
    """Every tensor of the header. A tied output is a second use of the token embedding and appears as one more
    ``OUTPUT`` weight of the same size; ``twice`` says whether it costs bytes again when both stay on the host."""
    found = [_weight(t, tables, row.mtp_keeps) for t in header.tensors]
    tied = _tied(header)
    if tied is not None:
        repack = _repacks(tied, 2, tables)
        twice = repack or row.tied_twice
        found.append(_weight(tied, tables)._replace(name=TIED, place=OUTPUT, lazy=False, repack=repack, twice=twice))
    return tuple(found)


TIED = "output.weight (tied)"


def _tied(header: HeaderInfo) -> TensorInfo | None:
    """The token embedding when it serves as output too: the file has no output tensor of its own."""
    embedding = None
    for tensor in header.tensors:
        if tensor.name == "output.weight":
            return None
        if tensor.name == "token_embd.weight":
            embedding = tensor
    return embedding


def _weight(tensor: TensorInfo, tables: MemoryTables, kept: tuple[str, ...] = ()) -> Weight:
    name = tensor.name
    block, stem = _parted(name)
    bare = stem.rsplit(".", 1)[0]
    experts = bare in EXPERTS
    row = tables.tensors.get(bare, tables.other_tensor)
    return Weight(
        name=name,
        bytes=-(-tensor.nbytes // ALIGNMENT) * ALIGNMENT,
        place=_PLACES[row.place] if block is None else block,
        repack=not row.lookup and _repacks(tensor, 3 if experts else 2, tables),
        experts=experts,
        ffn=bare in DENSE,
        lazy=row.lazy and tensor.nbytes > tables.defaults.lazy_read_above_bytes,
        dims=tensor.dims,
        kept=bare in kept,
    )


EXPERTS = frozenset(f"ffn_{part}_{kind}exps" for part in ("up", "down", "gate", "gate_up") for kind in ("", "ch"))
"""What --cpu-moe keeps on the CPU (``llm_ffn_exps_cpu_override``)."""
DENSE = frozenset({"ffn_up", "ffn_down", "ffn_gate", "ffn_gate_up"})


def _parted(name: str) -> tuple[int | None, str]:
    """``blk.7.attn_q.weight`` → 7 and ``attn_q.weight``; names outside the layers have no number."""
    if name.startswith("blk."):
        number, _, stem = name[4:].partition(".")
        if number.isdecimal() and len(number) < 5 and stem:
            return int(number), stem
    return None, name


def _repacks(tensor: TensorInfo, rank: int, tables: MemoryTables) -> bool:
    """The CPU re-packs matrices (experts: stacks of them) of some types whose rows come in whole groups."""
    row = tables.repack.get(tensor.type)
    dims = tensor.dims
    while len(dims) > 1 and dims[-1] == 1:
        dims = dims[:-1]
    return row is not None and len(dims) == rank and dims[1] % row.rows == 0


def layer_shapes(
    found: Sequence[Weight], blocks: int
) -> tuple[tuple[Mapping[str, tuple[int, ...]], ...], tuple[int, ...]]:
    """Dimensions of every layer's tensors by stem (``attn_q``; a bias keeps its suffix), and a number per layer that
    is equal for layers of equal shape."""
    layers: list[dict[str, tuple[int, ...]]] = [{} for _ in range(blocks)]
    for weight in found:
        if 0 <= weight.place < blocks and weight.name.startswith("blk."):
            stem = weight.name.split(".", 2)[2]
            layers[weight.place][stem.removesuffix(".weight")] = weight.dims
    kinds: dict[tuple[tuple[str, tuple[int, ...]], ...], int] = {}
    return tuple(layers), tuple(kinds.setdefault(tuple(sorted(x.items())), len(kinds)) for x in layers)
