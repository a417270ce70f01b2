"""What the arithmetic needs of a header, for type checkers: nothing of ``facts`` is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class TensorInfo(Protocol):
    """A tensor of the header: name, dimensions (fastest first), ggml type name, bytes."""

    @property
    def name(self) -> str: ...
    @property
    def dims(self) -> tuple[int, ...]: ...
    @property
    def type(self) -> str: ...
    @property
    def nbytes(self) -> int: ...


class HeaderInfo(Protocol):
    """The part of ``gezel_rules.gguf.Header`` that arithmetic needs."""

    @property
    def arch(self) -> str: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def tensors(self) -> Sequence[TensorInfo]: ...
    def get(self, suffix: str, default: Any = None) -> Any: ...
