"""The parts of a GGUF header, as plain immutable records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gezel_rules.record import NamedTuple


class Tensor(NamedTuple):
    """One tensor: shape and place, no weights. ``dims`` has ne0 first, as in the file."""

    name: str
    dims: tuple[int, ...]
    type: str
    """The ggml type in upper case: ``Q4_K``, ``F16``, …"""
    nbytes: int
    """Exact size of the data in bytes, without the padding that follows it."""
    offset: int = 0
    """Bytes from the start of the data section of the file (or split part) it is in."""

    @property
    def elements(self) -> int:
        """Number of weights."""
        product = 1
        for extent in self.dims:
            product *= extent
        return product


class Array(NamedTuple):
    """Stands for a value whose items were not kept: any array of strings, more than 4,096 numbers, or a long text.

    ``type`` is the GGUF name of the items in upper case (``STRING``, ``FLOAT32``, …), or ``TEXT`` for a single string
    of more than 1 MiB, whose ``length`` is in bytes; else ``length`` is the number of items.
    """

    type: str
    length: int


Value = str | int | float | bool | tuple[Any, ...] | Array


class Header(NamedTuple):
    """A whole GGUF header; for a split model the first part's metadata and the tensors of all parts."""

    version: int
    """GGUF version, 2 or 3."""
    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    data_offset: int
    """Where the tensor data begins in the (first) file, in bytes."""
    file_bytes: int | None
    """Size of the file in bytes, all parts together; ``None`` when a server did not say."""
    byte_order: str = "little"
    """``little`` or ``big``; an engine loads only its host's own."""

    @property
    def format(self) -> str:
        """The name of the format, for people."""
        return "GGUF"

    @property
    def arch(self) -> str:
        """``general.architecture``, or an empty text when the file has none."""
        arch = self.metadata.get("general.architecture")
        return arch if isinstance(arch, str) else ""

    @property
    def weights_bytes(self) -> int:
        """Bytes of all tensors, without what stands between them in the file."""
        return sum(tensor.nbytes for tensor in self.tensors)

    def get(self, suffix: str, default: Any = None) -> Any:
        """The value of ``<arch>.<suffix>``, or ``default`` when the key is absent."""
        return self.metadata.get(f"{self.arch}.{suffix}", default)
