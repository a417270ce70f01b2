"""The decisions and tables that code reads by name. A test holds this against the code."""

from __future__ import annotations

from gezel_rules.documents.shape import FLAG, INTEGER, LIST, NUMBER, TEXT
from gezel_rules.engines.llama_cpp.vocabulary import WORDS
from gezel_rules.policy.needs import Needs, TableNeed

DECISIONS = (
    "backend.gpu", "drafter.applies", "drafter.loads", "drafter.path", "flag.reasoning-budget", "flag.rpc", "kv.type",
    "layout", "memory.beside", "placement.mode", "processor.used", "prompt.endpoint", "refusal", "slots.count",
    "spec.n_max", "spec.type", "vision.loads", "window.tokens",
)  # fmt: skip

_PLAN = {
    "backends": TableNeed(columns={"label": TEXT, "gpu": FLAG}),
    "degradation": TableNeed(rows=("step",), columns={"share": NUMBER, "most": INTEGER}),
    "device_prefixes": TableNeed(columns={"backend": TEXT, "kind": TEXT}),
    "drafter_architectures": TableNeed(),
    "integrated_gpus": TableNeed(LIST),
    "kv_types": TableNeed(columns={"automatic": FLAG}),
    "launch_summary": TableNeed(columns={"flag": TEXT}),
    "nearest_steps": TableNeed(columns={"setting": TEXT}),
    "offload_steps": TableNeed(LIST),
    "option_spellings": TableNeed(),
    "placement_words": TableNeed(rows=("resident", "cpu")),
    "pool_kinds": TableNeed(
        rows=("discrete", "integrated", "unified", "rpc", "ram"), columns={"share": NUMBER, "headroom_mib": INTEGER}
    ),
    "projector_architectures": TableNeed(LIST),
    "secret_arguments": TableNeed(LIST),
    "software_renderers": TableNeed(LIST),
    "windows": TableNeed(rows=("floor",), columns={"tokens": INTEGER}),
}
_MEMORY = {
    "amx": TableNeed(columns={"rows": INTEGER, "columns": INTEGER, "adds": INTEGER}),
    "architectures": TableNeed(),
    "cache_types": TableNeed(columns={"bytes": INTEGER, "quantized": FLAG}),
    "engine_defaults": TableNeed(rows=("memory",)),
    "processors": TableNeed(columns={"features": LIST, "repack": LIST, "amx": FLAG, "aborts": LIST}),
    "repack": TableNeed(columns={"rows": INTEGER}),
    "speculation": TableNeed(columns={"n_max": INTEGER, "rollback": FLAG, "context": TEXT}),
    "tensors": TableNeed(),
}
_RUNTIME = {
    "answer_tokens": TableNeed(rows=("completion", "chat"), columns={"tokens": INTEGER}),
    "engine_address": TableNeed(rows=("host", "port"), columns={"flag": TEXT, "assumed": f"{TEXT}|{INTEGER}"}),
    "engine_logs": TableNeed(rows=("file", "lines")),
    "listening_lines": TableNeed(LIST),
    "recovery_steps": TableNeed(
        LIST, columns={"step": TEXT, "needs": TEXT, "failures": LIST, "times": INTEGER, "because": TEXT}
    ),
    "restarts": TableNeed(rows=("unexpected",), columns={"pauses": LIST, "steady_seconds": NUMBER}),
    "supervision_times": TableNeed(rows=("ready", "answer", "stop"), columns={"seconds": NUMBER}),
}
_WORDS = {word.rows_of: TableNeed() for word in WORDS if word.rows_of}

NEEDS = Needs({**_WORDS, **_PLAN, **_MEMORY, **_RUNTIME}, DECISIONS)
