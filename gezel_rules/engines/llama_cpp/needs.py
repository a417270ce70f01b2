"""What this family's policies must hold, because code reads it by name. A test holds this against the code."""

from __future__ import annotations

from gezel_rules.engines.family import BufferPool, CompanionName, NearestStep, SummaryRow
from gezel_rules.engines.llama_cpp.embedded_flags import Build, Default, FlagRow, TensorRule
from gezel_rules.engines.llama_cpp.memory.tables import (
    Amx,
    Architecture,
    CacheType,
    EngineDefaults,
    Processor,
    Repack,
    Speculation,
    TensorRow,
)
from gezel_rules.engines.llama_cpp.memory.vision import VisionEncoder
from gezel_rules.engines.llama_cpp.rows import (
    Degradation,
    DeviceName,
    DevicePrefix,
    DrafterArchitecture,
    KvType,
    PlacementMode,
    Window,
)
from gezel_rules.engines.llama_cpp.vocabulary import WORDS
from gezel_rules.engines.patience import Bounds
from gezel_rules.policy.language import Needs, TableNeed

DECISIONS = (
    "backend.gpu", "batch.ubatch", "drafter.applies", "drafter.loads", "drafter.may_drop", "drafter.path",
    "flag.reasoning-budget",
    "flag.rpc", "gpu.alone", "kv.flash_attn", "kv.swa_full", "kv.type", "layout", "memory.beside", "placement.mode",
    "processor.used", "slots.count", "spec.n_max", "spec.type", "vision.loads", "vision.path", "window.tokens",
)  # fmt: skip


_PLAN = {
    "companion_names": TableNeed(("projector",), CompanionName),
    "degradation": TableNeed(("step",), Degradation),
    "device_lines": TableNeed(of="str", groups=("number", "says")),
    "device_names": TableNeed(record=DeviceName),
    "device_prefixes": TableNeed(record=DevicePrefix),
    "engine_questions": TableNeed(("all",), Bounds),
    "drafter_architectures": TableNeed(record=DrafterArchitecture),
    "kv_types": TableNeed(record=KvType),
    "launch_summary": TableNeed(("context", "slots", "spec_type"), SummaryRow),
    "nearest_steps": TableNeed(record=NearestStep),
    "option_spellings": TableNeed(of="tuple[str, ...]"),
    "placement_modes": TableNeed(("resident", "offloaded", "cpu"), PlacementMode),
    "placement_words": TableNeed(
        ("resident", "cpu", "experts", "ffn", "layers", "asked", "asked experts", "asked ffn", "asked layers"), of="str"
    ),
    "projector_architectures": TableNeed(of="str", listed=True),
    "vision_encoders": TableNeed(record=VisionEncoder),
    "secret_arguments": TableNeed(of="str", listed=True),
    "windows": TableNeed(("floor",), Window),
}
_MEMORY = {
    "architectures": TableNeed(record=Architecture),
    "cache_types": TableNeed(record=CacheType),
    "engine_defaults": TableNeed(("memory",), EngineDefaults),
    "processors": TableNeed(record=Processor),
    "repack": TableNeed(record=Repack),
    "amx": TableNeed(record=Amx),
    "speculation": TableNeed(record=Speculation),
    "tensors": TableNeed(record=TensorRow),
}
_EMBEDDED = {
    "embedded_builds": TableNeed(record=Build),
    "embedded_defaults": TableNeed(record=Default),
    "embedded_flags": TableNeed(record=FlagRow),
    "embedded_tensor_rules": TableNeed(("all experts", "experts"), TensorRule),
}
_FIGURES = {
    "buffer_lines": TableNeed(of="str", listed=True, groups=("name", "part", "mib")),
    "buffer_parts": TableNeed(of="str"),
    "buffer_pools": TableNeed(record=BufferPool),
    "draft_lines": TableNeed(of="str", listed=True, groups=("accepted", "drafted")),
}
_WORDS = {word.rows_of: TableNeed() for word in WORDS if word.rows_of}

NEEDS = Needs({**_WORDS, **_PLAN, **_MEMORY, **_EMBEDDED, **_FIGURES}, DECISIONS)
