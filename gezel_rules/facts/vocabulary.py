"""Every fact a policy may read: name, type, unit, meaning, where it comes from, and whether it may be unknown.

The vocabulary is the contract between probes and policies: a rule that names anything else does not load.
``rows_of`` names the policy table whose rows are the allowed words, so that no list of backends or types stands here.
"""

from __future__ import annotations

from collections.abc import Mapping

from gezel_rules.lang.types import Type
from gezel_rules.record import NamedTuple


class Word(NamedTuple):
    """One fact: ``kind`` as in the policy language; ``unit`` bytes, tokens, …; ``optional``: may be none (not set);
    ``unknown``: may be unknown, and then ``settle`` says what would tell."""

    name: str
    kind: str
    says: str
    source: str
    unit: str = ""
    optional: bool = False
    rows_of: str = ""
    unknown: bool = False
    settle: str = ""
    minimum: int | None = None


_HEADER = "read the GGUF header: gezel-rules inspect FILE"
_DEVICES = "gezel-rules devices"


def _host(name: str, kind: str, says: str, unit: str = "", unknown: bool = True) -> Word:
    return Word(name, kind, says, "probe or described host", unit, unknown=unknown, settle=_DEVICES)


def _engine(name: str, kind: str, says: str, rows_of: str = "", unknown: bool = True) -> Word:
    return Word(name, kind, says, "engine --version, --help, --list-devices", "", rows_of=rows_of, unknown=unknown,
                settle="name an engine: --engine PATH")  # fmt: skip


def _model(name: str, kind: str, says: str, unit: str = "") -> Word:
    return Word(name, kind, says, "GGUF header", unit, unknown=True, settle=_HEADER)


def _entry(name: str, kind: str, says: str, unit: str = "", rows_of: str = "", optional: bool = True) -> Word:
    return Word(name, kind, says, "catalog entry", unit, optional, rows_of)


def _setting(name: str, kind: str, says: str, unit: str = "", rows_of: str = "", minimum: int | None = None) -> Word:
    return Word(f"settings.{name}", kind, says, "environment, --set or site file", unit, True, rows_of, minimum=minimum)


HOST = (
    _host("host.os", "text", "operating system: linux, macos, windows"),
    _host("host.cpus", "integer", "CPUs this process may use: affinity and cgroup quota counted, at least 1", "CPUs"),
    _host("host.ram_total", "integer", "memory this process may use at most", "bytes"),
    _host("host.ram_free", "integer", "memory free for it now", "bytes"),
    _host("host.unified", "flag", "the GPU shares the RAM"),
    _host("gpu.count", "integer", "GPUs the engine offers"),
    _host("gpu.total", "integer", "memory of all of them", "bytes"),
    _host("gpu.free", "integer", "memory free on all of them now", "bytes"),
    _host("gpu.names", "list", "their names as the engine spells them"),
    _host("gpu.devices", "list", "their names alone, as the engine takes them"),
    _host("gpu.shares_ram", "flag", "those that take part have no memory of their own"),
    _host("gpu.usable", "integer", "what policy lets a launch take of them, others' reservations deducted", "bytes"),
    _host("ram.usable", "integer", "what policy lets a launch take of the RAM", "bytes"),
)

ENGINE = (
    _engine("engine.kind", "text", "which program: a llama-server, or the embedded engine"),
    _engine("engine.backend", "text", "what it computes on", "backends"),
    _engine("engine.version", "text", "its release"),
    _engine("engine.identity", "text", "tells its files from those of a build that calls itself alike"),
    _engine("engine.flags", "list", "options its --help knows"),
    _engine("engine.spec_types", "list", "speculative types its --help lists"),
    _engine("engine.processor", "text", "the best instructions its code packs weights for here", "processors"),
)

MODEL = (
    _model("model.arch", "text", "architecture"),
    _model("model.name", "text", "name in the header"),
    _model("model.file_type", "text", "quant in the header"),
    _model("model.layers", "integer", "blocks, MTP head included"),
    _model("model.trained_window", "integer", "context length it was trained for", "tokens"),
    _model("model.embedding", "integer", "embedding width"),
    _model("model.vocab", "integer", "vocabulary", "tokens"),
    _model("model.experts", "integer", "experts per layer, 0 for a dense model"),
    _model("model.experts_used", "integer", "experts used per token"),
    _model("model.mtp_layers", "integer", "layers of its multi-token-prediction head, 0 without one"),
    _model("model.mtp_only", "flag", "the file holds an MTP head and no trunk"),
    _model("model.has_chat_template", "flag", "the header carries a chat template"),
    _model("model.is_drafter", "flag", "the file is a drafter, not a model"),
    _model("model.is_projector", "flag", "the file is a projector, not a model"),
    _model("model.sliding_window", "integer", "attention window of its sliding layers", "tokens"),
    _model("model.weights_bytes", "integer", "weights", "bytes"),
    _model("model.head_dim_k", "integer", "key length of a head"),
    _model("model.head_dim_v", "integer", "value length of a head"),
    _model("model.recurrent", "flag", "some layers keep a recurrent state"),
    _model("model.mla", "flag", "multi-head latent attention"),
)

ENTRY = (
    _entry("entry.id", "text", "catalog id"),
    _entry("entry.spec_type", "text", "speculative type for every backend", rows_of="spec_types"),
    _entry("entry.spec_n_max", "integer", "tokens drafted at once", "tokens"),
    _entry("entry.spec_sampling", "text", "how drafts are sampled", rows_of="draft_sampling_modes"),
    _entry("entry.overlay_type", "text", "speculative type for this backend", rows_of="spec_types"),
    _entry("entry.overlay_n_max", "integer", "tokens drafted at once on this backend", "tokens"),
    _entry("entry.overlay_sampling", "text", "draft sampling on this backend", rows_of="draft_sampling_modes"),
    _entry("entry.per_backend", "flag", "the entry has a per-backend table", optional=False),
    _entry("entry.draft", "text", "file name of its draft model"),
    _entry("entry.draft_backends", "list", "backends its draft model is limited to"),
    _entry("entry.draft_bytes", "integer", "resident bytes of the drafter, measured or of its file", "bytes"),
    _entry("entry.draft_arch", "text", "architecture of its draft model, where its header is known"),
    _entry("entry.draft_has_mtp", "flag", "its draft file holds an MTP head", optional=False),
    _entry("entry.window", "integer", "window it is tuned for", "tokens"),
    _entry("entry.slots", "integer", "slots it is tuned for"),
    _entry("entry.reasoning_format", "text", "how thoughts are returned", rows_of="reasoning_formats"),
    _entry("entry.reasoning_budget", "integer", "thinking tokens", "tokens"),
    _entry("entry.excluded", "text", "why this backend is excluded for the model"),
    _entry("entry.projector", "text", "file name of its projector"),
    _entry("entry.projector_bytes", "integer", "bytes of its projector", "bytes"),
)

LAUNCH = (
    Word("launch.model_path", "text", "the file the engine gets", "store, or the path given"),
    Word("launch.draft_path", "text", "the draft model on disk, or where it will be", "store", optional=True),
    Word("launch.draft_here", "flag", "the draft model is installed, or comes with this install", "store"),
    Word("launch.draft_failed", "flag", "this drafter broke this engine build before", "remembered failures"),
    Word("launch.packing_failed", "flag", "this build died over packed weights before", "remembered failures"),
    Word("launch.own_draft_here", "flag", "the operator's own draft model can be read", "settings.draft_model"),
    Word("launch.own_draft_bytes", "integer", "bytes of its tensors", "its GGUF header", "bytes", unknown=True,
         settle=_HEADER),
    Word("launch.own_draft_has_mtp", "flag", "it holds an MTP head", "its GGUF header"),
    Word("launch.projector_path", "text", "the projector on disk, or where it will be", "store", optional=True),
    Word("launch.slot_directory", "text", "where slots may be saved", "settings", optional=True),
    Word("launch.arguments", "list", "option names among the operator's extra arguments", "settings.extra_args"),
)  # fmt: skip

SETTINGS = (
    _setting("window", "integer", "context window", "tokens", minimum=1),
    _setting("beyond_trained", "flag", "allow a window above the trained length"),
    _setting("kv_type", "text", "KV cache precision", rows_of="kv_types"),
    _setting("slots", "integer", "parallel conversations", minimum=1),
    _setting("spec_type", "text", "speculative type", rows_of="spec_types"),
    _setting("draft_n_max", "integer", "tokens drafted at once", "tokens", minimum=1),
    _setting("draft_sampling", "text", "how drafts are sampled", rows_of="draft_sampling_modes"),
    _setting("draft_model", "text", "path of a draft model"),
    _setting("threads", "integer", "CPU threads for generation", minimum=1),
    _setting("ubatch", "integer", "tokens per physical batch", "tokens", minimum=1),
    _setting("flash_attn", "text", "flash attention", rows_of="flash_attention_modes"),
    _setting("repack", "flag", "the CPU packs weights anew at load"),
    _setting("swa_full", "flag", "full-size cache for sliding layers"),
    _setting("vision", "flag", "load the projector"),
    _setting("n_gpu_layers", "integer", "layers on the GPU", "layers", minimum=0),
    _setting("n_cpu_moe", "integer", "layers whose experts stay on the CPU", "layers", minimum=0),
    _setting("reasoning_format", "text", "how thoughts are returned", rows_of="reasoning_formats"),
    _setting("reasoning_budget", "integer", "thinking tokens, -1 unbounded", "tokens", minimum=-1),
    _setting("slot_save_path", "text", "directory for saved slots"),
    _setting("host", "text", "address to listen on"),
    _setting("port", "integer", "port to listen on", minimum=0),
    _setting("endpoint", "text", "which endpoint a prompt goes to", rows_of="endpoints"),
    _setting("rpc", "list", "machines that lend their devices over RPC, each host:port"),
    _setting("extra_args", "list", "arguments passed to the engine as they are, last"),
)

WORDS = (*HOST, *ENGINE, *MODEL, *ENTRY, *LAUNCH, *SETTINGS)


def fact_types() -> dict[str, Type]:
    """The vocabulary as types for the policy checker."""
    text = Type("text")
    return {
        word.name: Type(
            word.kind, word.unit, word.optional, item=text if word.kind == "list" else None, rows_of=word.rows_of
        )
        for word in WORDS
    }


def units() -> Mapping[str, str]:
    """Fact name → unit, for people."""
    return {word.name: word.unit for word in WORDS if word.unit}
