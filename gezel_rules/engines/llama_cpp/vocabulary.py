"""The facts only llama.cpp's policies read: what a GGUF header says, what its builds say, its own settings."""

from __future__ import annotations

from gezel_rules.facts.vocabulary import SHARED, Word, engine_word, entry_word, setting_word

_HEADER = "read the GGUF header: gezel-rules inspect FILE"


def _model(name: str, kind: str, says: str, unit: str = "") -> Word:
    return Word(name, kind, says, "GGUF header", unit, unknown=True, settle=_HEADER)


def _own(name: str, kind: str, says: str, *, unit: str = "", rows_of: str = "") -> Word:
    return Word(f"launch.own_draft_{name}", kind, says, "its GGUF header", unit, optional=True, rows_of=rows_of)


ENGINE = (
    engine_word("engine.spec_types", "list", "speculative types its --help lists", "spec_types"),
    engine_word("engine.processor", "text", "the best instructions its code packs weights for here", "processors"),
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

DRAFTERS = (
    entry_word("entry.draft_arch", "text", "architecture of its draft model, where its header is known"),
    entry_word("entry.draft_has_mtp", "flag", "its draft file holds an MTP head", optional=False),
    Word("launch.own_draft_here", "flag", "the operator's own draft model can be read", "settings.draft_model"),
    Word("launch.own_draft_bytes", "integer", "bytes of its tensors", "its GGUF header", "bytes", unknown=True,
         settle=_HEADER),
    Word("launch.own_draft_has_mtp", "flag", "it holds an MTP head", "its GGUF header"),
    Word("launch.own_draft_has_trunk", "flag", "it is a whole model", "its GGUF header"),
    Word("launch.own_draft_is_projector", "flag", "it is a projector", "its GGUF header"),
    _own("trouble", "text", "why it cannot be read"),
    _own("arch", "text", "its architecture"),
    _own("kind", "text", "the speculative type that its architecture is made for", rows_of="spec_types"),
    _own("targets", "list", "architectures of the models it drafts for as an MTP head"),
    _own("width", "integer", "embedding width of the model it drafts for"),
    _own("tokens", "integer", "its vocabulary", unit="tokens"),
    _own("tokenizer", "text", "what it states of its vocabulary otherwise than the model"),
)  # fmt: skip

PROJECTORS = (
    Word("launch.own_projector_bytes", "integer", "bytes of the operator's own projector", "its GGUF header", "bytes"),
    Word("launch.projector_compute", "integer", "bytes the encoder of the projector computes with",
         "the projector's GGUF header", "bytes", unknown=True, settle="pull the model"),
    Word("launch.projector_uncounted", "text", "encoders whose compute buffer nobody has measured",
         "the projector's GGUF header", optional=True),
    Word("launch.projectors_beside", "list", "projectors in the directory of a model that was named by its path",
         "that directory", optional=True),
)  # fmt: skip

PINS = (
    entry_word("entry.kv_type", "text", "KV cache precision", rows_of="kv_types"),
    entry_word("entry.swa_full", "flag", "full-size cache for sliding layers"),
    entry_word("entry.ubatch", "integer", "tokens per physical batch", "tokens"),
    entry_word("entry.threads", "integer", "CPU threads for generation"),
)

_SAMPLING = (
    ("temperature", "number", "sampling temperature; 0 takes the likeliest token", None),
    ("top_p", "number", "the likeliest tokens that together have this probability are kept; 1 keeps all", 1),
    ("top_k", "integer", "as many of the likeliest tokens are kept; 0 keeps all", None),
    ("min_p", "number", "tokens at least this probable, relative to the likeliest, are kept; 0 keeps all", 1),
)
SAMPLING = (
    *(entry_word(f"entry.{name}", kind, says) for name, kind, says, _ in _SAMPLING),
    *(setting_word(name, kind, says, minimum=0, maximum=most) for name, kind, says, most in _SAMPLING),
)

LAUNCH = (
    Word("launch.slot_directory", "text", "where slots may be saved", "settings", optional=True),
    Word("launch.packing_failed", "flag", "this build died over packed weights before", "remembered failures"),
)

SETTINGS = (
    setting_word("beyond_trained", "flag", "allow a window above the trained length"),
    setting_word("kv_type", "text", "KV cache precision", rows_of="kv_types"),
    setting_word("spec_type", "text", "speculative type", rows_of="spec_types"),
    setting_word("draft_n_max", "integer", "tokens drafted at once", "tokens", minimum=1),
    setting_word("draft_sampling", "text", "how drafts are sampled", rows_of="draft_sampling_modes"),
    setting_word("threads", "integer", "CPU threads for generation", minimum=1),
    setting_word("ubatch", "integer", "tokens per physical batch", "tokens", minimum=1),
    setting_word("flash_attn", "text", "flash attention", rows_of="flash_attention_modes"),
    setting_word("repack", "flag", "the CPU packs weights anew at load"),
    setting_word("swa_full", "flag", "full-size cache for sliding layers"),
    setting_word("checkpoints", "integer", "context checkpoints kept of each slot", minimum=0),
    setting_word("cache_ram", "integer", "RAM for prompts that were seen before, -1 without limit", "MiB", minimum=-1),
    setting_word("mmproj", "text", "path of a projector, so that the model can see"),
    setting_word("n_gpu_layers", "integer", "layers on the GPU", "layers", minimum=0),
    setting_word("n_cpu_moe", "integer", "layers whose experts stay on the CPU", "layers", minimum=0),
    setting_word("reasoning_format", "text", "how thoughts are returned", rows_of="reasoning_formats"),
    setting_word("reasoning_budget", "integer", "thinking tokens, -1 unbounded", "tokens", minimum=-1),
    setting_word("slot_save_path", "text", "directory for saved slots"),
    setting_word("devices", "list", "GPUs this launch uses, by the engine's names, in this order"),
    setting_word("rpc", "list", "RPC servers whose devices this launch uses, each host:port"),
)

WORDS = (*SHARED, *ENGINE, *MODEL, *DRAFTERS, *PROJECTORS, *PINS, *SAMPLING, *LAUNCH, *SETTINGS)
