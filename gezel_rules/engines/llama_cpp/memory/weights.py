"""Weights: what each tensor costs, and which part of the model it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gezel_rules.engines.llama_cpp.memory.host_buffers import HOST, Stay, padded_bytes, stays
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.engines.llama_cpp.memory.header_info import HeaderInfo, TensorInfo
    from gezel_rules.engines.llama_cpp.memory.tables import Architecture, MemoryTables

INPUT, OUTPUT = -1, -2
"""Places beside the layers: the input side always stays on the host; the output side counts as one more layer."""
_PLACES = {"input": INPUT, "first": 0, "output": OUTPUT}


class Weight(NamedTuple):
    """One tensor as loaded. ``bytes``: on a device; ``stays``: on the host, by processor; ``place``: layer index,
    ``INPUT`` or ``OUTPUT``; ``kept``: loaded with the trunk even if it belongs to the MTP head."""

    name: str
    bytes: int
    stays: Mapping[str, Stay]
    place: int
    experts: bool
    ffn: bool
    lazy: bool
    dims: tuple[int, ...]
    kept: bool = False


class Load(NamedTuple):
    """Weights that always lie together: those of one place, routed experts and dense feed-forward (``ffn``) apart.
    ``bytes``: on a device; ``buffers``: on the host, bytes by buffer for each processor; ``lazy``: bytes that are read
    on demand; ``largest``: of one of them; ``fixed``: the device that an override gives them; ``kept``: as with a
    weight."""

    place: int
    experts: bool
    ffn: bool
    kept: bool
    fixed: int | None
    bytes: int
    buffers: Mapping[str, Mapping[str, int]]
    lazy: int
    largest: int


def loads_of(found: Iterable[Weight], fixed: Callable[[str], int | None] | None = None) -> tuple[Load, ...]:
    """Weights summed up by where they may lie. ``fixed``: the device that an override gives a tensor of that name."""
    together: dict[Where, list[Weight]] = {}
    for weight in found:
        ffn = weight.ffn and weight.name.endswith(FFN)
        key = weight.place, weight.experts, ffn, weight.kept, fixed(weight.name) if fixed else None
        if key in together:
            together[key].append(weight)
        else:
            together[key] = [weight]
    return tuple(_load(key, weights) for key, weights in together.items())


Where = tuple[int, bool, bool, bool, int | None]
"""The first fields of a ``Load``."""


def _load(key: Where, weights: Sequence[Weight]) -> Load:
    buffers: dict[str, dict[str, int]] = {name: {} for name in weights[0].stays}
    for weight in weights:
        for name, (buffer, size) in weight.stays.items():
            held = buffers[name]
            held[buffer] = held[buffer] + size if buffer in held else size
    sizes = [weight.bytes for weight in weights]
    lazy = sum(weight.bytes for weight in weights if weight.lazy)
    return Load(*key, sum(sizes), buffers, lazy, max(sizes))


def all_weights(header: HeaderInfo, row: Architecture, tables: MemoryTables) -> tuple[Weight, ...]:
    """Every tensor of the header. A tied output is a second use of the token embedding and appears as one more
    ``OUTPUT`` weight of the same size."""
    known = Known(tables, row.mtp_keeps)
    found = [_weight(tensor, known) for tensor in header.tensors]
    tied = _tied(header)
    if tied is not None:
        here = {name: _shared(stay, row.tied_twice) for name, stay in known.stays(tied, "output").items()}
        found.append(_weight(tied, known)._replace(name=TIED, place=OUTPUT, lazy=False, stays=here, kept=False))
    return tuple(found)


def _shared(stay: Stay, twice: bool) -> Stay:
    """A tied output on the host: the embedding's own bytes, unless another buffer holds it (or ``twice``)."""
    return stay if twice or stay.buffer != HOST else Stay(HOST, 0)


class Known:
    """What is worked out once for each name within a layer, type and shape: a model repeats few of them."""

    def __init__(self, tables: MemoryTables, kept: Collection[str]) -> None:
        self.tables, self.kept = tables, kept
        self._made: dict[tuple[str, str, tuple[int, ...]], Weight] = {}

    def weight(self, stem: str, tensor: TensorInfo) -> Weight:
        """The first tensor of this kind, outside the layers."""
        key = stem, tensor.type, tensor.dims
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._make(stem.rsplit(".", 1)[0], tensor)
        return found

    def _make(self, bare: str, tensor: TensorInfo) -> Weight:
        row = self.tables.tensors.get(bare, self.tables.other_tensor)
        return Weight(
            name=tensor.name,
            bytes=padded_bytes(tensor.nbytes),
            stays=self.stays(tensor, bare),
            place=_PLACES[row.place],
            experts=bare in EXPERTS,
            ffn=bare in DENSE,
            lazy=row.lazy and tensor.nbytes > self.tables.defaults.lazy_read_above_bytes,
            dims=tensor.dims,
            kept=bare in self.kept,
        )

    def stays(self, tensor: TensorInfo, bare: str) -> Mapping[str, Stay]:
        """Processor → where the tensor lies on the host when it is used as ``bare`` says."""
        multiplied = not self.tables.tensors.get(bare, self.tables.other_tensor).lookup
        return stays(tensor, self.tables, experts=bare in EXPERTS, multiplied=multiplied)


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


def _weight(tensor: TensorInfo, known: Known) -> Weight:
    block, stem = _parted(tensor.name)
    _, size, here, place, experts, ffn, lazy, dims, kept = known.weight(stem, tensor)
    return Weight(tensor.name, size, here, place if block is None else block, experts, ffn, lazy, dims, kept)


EXPERTS = frozenset(f"ffn_{part}_{kind}exps" for part in ("up", "down", "gate", "gate_up") for kind in ("", "ch"))
"""What --cpu-moe keeps on the CPU (``llm_ffn_exps_cpu_override``)."""
FFN = (".ffn_up.weight", ".ffn_down.weight", ".ffn_gate.weight")
"""What the override ``kept_ffn`` moves of a layer."""


def kept_ffn(layers: Iterable[int]) -> tuple[str, str]:
    """The override that keeps the dense feed-forward of some layers on the CPU."""
    return rf"blk\.({'|'.join(map(str, sorted(layers)))})\.ffn_(up|down|gate)\.weight", "CPU"


DENSE = frozenset({"ffn_up", "ffn_down", "ffn_gate", "ffn_gate_up"})


def _parted(name: str) -> tuple[int | None, str]:
    """``blk.7.attn_q.weight`` → 7 and ``attn_q.weight``; names outside the layers have no number."""
    if name.startswith("blk."):
        number, _, stem = name[4:].partition(".")
        if number.isdecimal() and len(number) < 5 and stem:
            return int(number), stem
    return None, name


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
