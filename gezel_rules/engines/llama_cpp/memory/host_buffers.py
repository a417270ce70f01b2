"""Which buffer the CPU gives a weight that stays with it, and the bytes it takes there.

The engine takes the first of AMX, CPU_REPACK and Host that supports the operation the weight is for
(``weight_buft_supported``, llama.cpp 0.6.0-dev). Which types a processor packs, and from which sizes on, is policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from gezel_rules.errors import BadInput
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.engines.llama_cpp.memory.flags import Launch
    from gezel_rules.engines.llama_cpp.memory.header_info import TensorInfo
    from gezel_rules.engines.llama_cpp.memory.tables import Amx, MemoryTables

HOST, REPACK, AMX = "Host", "CPU_REPACK", "AMX"
BUFFERS = (HOST, REPACK, AMX)
"""The engine's names of the CPU's buffers."""

ALIGNMENT = 32  # bytes; ggml pads every tensor of a buffer


class Stay(NamedTuple):
    """Where a weight that stays with the CPU lies, and the bytes it takes there, padding included."""

    buffer: str
    bytes: int


def padded_bytes(size: int) -> int:
    """Bytes of a tensor in a buffer, padding included."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def stays(tensor: TensorInfo, tables: MemoryTables, *, experts: bool, multiplied: bool) -> Mapping[str, Stay]:
    """Processor → where the tensor lies when it stays with the CPU. ``experts``: the matrix product picks from a stack
    of matrices; ``multiplied``: it is used in a matrix product at all."""
    dims = _trimmed(tensor.dims)
    whole = Stay(HOST, padded_bytes(tensor.nbytes))
    if not multiplied or len(dims) < 2:
        return dict.fromkeys(tables.processors, whole)
    groups = tables.repack.get(tensor.type)
    repacks = groups is not None and len(dims) == (3 if experts else 2) and dims[1] % groups.rows == 0
    amx = None if experts else _amx_bytes(tensor, dims, tables.amx.get(tensor.type))
    return {
        name: Stay(AMX, amx) if amx and row.amx
        else Stay(REPACK, whole.bytes) if repacks and tensor.type in row.repack
        else whole
        for name, row in tables.processors.items()
    }  # fmt: skip


def processor_of(launch: Launch, tables: MemoryTables) -> str:
    """The processor a launch runs on. Raises BadInput for one that policy does not describe."""
    name = launch.processor or tables.defaults.processor
    if name not in tables.processors:
        raise BadInput(f"processor '{name}' is none of: {', '.join(tables.processors)}")
    return name


def _trimmed(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions as ggml counts them (``ggml_n_dims``): ones at the end are none."""
    while len(dims) > 1 and dims[-1] == 1:
        dims = dims[:-1]
    return dims


def _amx_bytes(tensor: TensorInfo, dims: tuple[int, ...], row: Amx | None) -> int | None:
    """Bytes in the AMX buffer (``ggml_backend_amx_get_alloc_size``): of a stack that is packed only the first matrix
    gets room, an oversight of the engine. ``None``: not there."""
    if row is None or dims[1] % row.rows or dims[0] % row.columns:
        return None
    matrices = 1 if row.stacked else max(1, prod(dims[2:]))
    groups = dims[0] // row.columns * dims[1]
    return padded_bytes(tensor.nbytes // matrices + groups * row.adds)
