"""Rows of this family's tables as code reads them; what their columns mean stands with the tables."""

from __future__ import annotations

from gezel_rules.record import NamedTuple


class Degradation(NamedTuple):
    """The row ``step`` of ``degradation``."""

    share: float
    most: int


class DevicePrefix(NamedTuple):
    """A row of ``device_prefixes``."""

    backend: str
    kind: str | None


class DeviceName(NamedTuple):
    """A row of ``device_names``."""

    matches: str
    kind: str


class DrafterArchitecture(NamedTuple):
    """A row of ``drafter_architectures``."""

    mtp_head: bool
    type: str
    marked: str | None
    marked_type: str | None
    width: str | None
    targets: tuple[str, ...] | None


class KvType(NamedTuple):
    """A row of ``kv_types``."""

    quantised: bool
    automatic: bool
    slow_on: tuple[str, ...]


class PlacementMode(NamedTuple):
    """A row of ``placement_modes``."""

    steps: tuple[str, ...]
    experts: float


class Window(NamedTuple):
    """A row of ``windows``."""

    tokens: int
