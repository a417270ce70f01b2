"""What this family's policies must hold, because code reads it by name. A test holds this against the code."""

from __future__ import annotations

from typing import Any

from gezel_rules.engines.llama_cpp.embedded_flags import Build, Default, FlagRow, TensorRule
from gezel_rules.engines.llama_cpp.memory.tables import (
    Architecture,
    CacheType,
    EngineDefaults,
    Repack,
    Speculation,
    TensorRow,
)
from gezel_rules.facts.vocabulary import WORDS
from gezel_rules.policy.language import Needs, TableNeed
from gezel_rules.record import NamedTuple

DECISIONS = (
    "backend.gpu", "drafter.applies", "drafter.loads", "drafter.path", "flag.reasoning-budget", "flag.rpc", "kv.type",
    "layout", "memory.beside", "placement.mode", "slots.count", "spec.n_max", "spec.type", "vision.loads",
    "window.tokens",
)  # fmt: skip


class Degradation(NamedTuple):
    """The row ``step`` of ``degradation``."""

    share: float
    most: int


class DevicePrefix(NamedTuple):
    """A row of ``device_prefixes``."""

    backend: str
    kind: str


class DrafterArchitecture(NamedTuple):
    """A row of ``drafter_architectures``."""

    mtp_head: bool


class KvType(NamedTuple):
    """A row of ``kv_types``."""

    quantised: bool
    automatic: bool
    slow_on: tuple[str, ...]


class SummaryRow(NamedTuple):
    """A row of ``launch_summary``."""

    flag: str
    otherwise: Any
    file: bool


class NearestStep(NamedTuple):
    """A row of ``nearest_steps``."""

    setting: str
    value: Any


class Window(NamedTuple):
    """A row of ``windows``."""

    tokens: int


_PLAN = {
    "degradation": TableNeed(("step",), Degradation),
    "device_prefixes": TableNeed(record=DevicePrefix),
    "drafter_architectures": TableNeed(record=DrafterArchitecture),
    "integrated_gpus": TableNeed(of="str", listed=True),
    "kv_types": TableNeed(record=KvType),
    "launch_summary": TableNeed(("context", "slots", "spec_type"), SummaryRow),
    "nearest_steps": TableNeed(record=NearestStep),
    "offload_steps": TableNeed(of="str", listed=True),
    "option_spellings": TableNeed(of="tuple[str, ...]"),
    "placement_words": TableNeed(("resident", "cpu", "experts", "ffn", "layers", "asked"), of="str"),
    "projector_architectures": TableNeed(of="str", listed=True),
    "secret_arguments": TableNeed(of="str", listed=True),
    "software_renderers": TableNeed(of="str", listed=True),
    "windows": TableNeed(("floor",), Window),
}
_MEMORY = {
    "architectures": TableNeed(record=Architecture),
    "cache_types": TableNeed(record=CacheType),
    "engine_defaults": TableNeed(("memory",), EngineDefaults),
    "repack": TableNeed(record=Repack),
    "speculation": TableNeed(record=Speculation),
    "tensors": TableNeed(record=TensorRow),
}
_EMBEDDED = {
    "embedded_builds": TableNeed(record=Build),
    "embedded_defaults": TableNeed(record=Default),
    "embedded_flags": TableNeed(record=FlagRow),
    "embedded_tensor_rules": TableNeed(("all experts", "experts"), TensorRule),
}
_WORDS = {word.rows_of: TableNeed() for word in WORDS if word.rows_of}

NEEDS = Needs({**_WORDS, **_PLAN, **_MEMORY, **_EMBEDDED}, DECISIONS)
