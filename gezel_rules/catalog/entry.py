"""What a catalog entry may hold: every key, what it means, and what its value must be."""

from __future__ import annotations

from gezel_rules.catalog import names
from gezel_rules.documents.declare import (
    FLAG,
    TEXT,
    WORDING,
    Block,
    Either,
    List,
    Map,
    Name,
    Number,
    Shape,
    Text,
    Variants,
    Word,
    optional,
    required,
    whole,
)
from gezel_rules.facts.family import engine_family

ID = Text(fault=names.id_fault, pattern=names.ID, examples=("qwen3-8b",))
QUANT = Text("a tag", ("Q4_K_M",), pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
FILE_NAME = Text(fault=names.file_name_fault, pattern=names.FILE_NAME, noun="name")
DIGEST = Text(fault=names.digest_fault, pattern=names.DIGEST, means=str.lower)
REPO = Text(fault=names.repo_fault, pattern=names.REPO, examples=("user/repo",))
REVISION = Text(fault=names.revision_fault, pattern=names.REVISION, examples=("main",))
PATH_IN_REPO = Text(fault=names.relative_path_fault, pattern=names.RELATIVE_PATH)
URL = Text(fault=names.url_fault, pattern=names.URL)
ABSOLUTE_PATH = Text(fault=names.absolute_path_fault, pattern=names.ABSOLUTE_PATH)
DISTRIBUTION = Text(fault=names.distribution_fault, pattern=names.DISTRIBUTION)
RESOURCE = Text(fault=names.resource_fault, pattern=names.RESOURCE)
BACKEND = Name("backends", "backend")
TOKENS = whole(least=1, unit="tokens")
HEADER = Block("header")

_UNVERIFIED = {"unverified": optional(FLAG, "True while nobody has confirmed that this source has this file.", False)}
SOURCE = Variants(
    "a source",
    {
        "hub": Shape(
            "a source of kind 'hub'",
            {
                "hub": required(REPO, "The repository: user/repo."),
                "file": required(PATH_IN_REPO, "Path inside the repository."),
                "revision": optional(REVISION, "Commit, tag or branch; a commit never changes under you."),
                **_UNVERIFIED,
            },
            "A hub repository.",
        ),
        "url": Shape(
            "a source of kind 'url'",
            {"url": required(URL, "http or https, without user and password."), **_UNVERIFIED},
            "A URL.",
        ),
        "path": Shape(
            "a source of kind 'path'",
            {"path": required(ABSOLUTE_PATH, "Absolute, or starting with ~/."), **_UNVERIFIED},
            "A file on this machine.",
        ),
        "package": Shape(
            "a source of kind 'package'",
            {
                "package": required(DISTRIBUTION, "The distribution's name, for pip install."),
                "parts": required(
                    List(RESOURCE, least=1, noun="resource"),
                    "module/path of the resources that, one behind the other, are the file.",
                ),
                **_UNVERIFIED,
            },
            "An installed Python package.",
        ),
    },
    "One place the file can be had.",
)

_ROLE = required(Word(("model", "projector", "vision-encoder", "draft"), "role"), "What the engine takes it for.")
_NAME = required(FILE_NAME, "A plain file name in the model's own directory.")
_SOURCES = required(
    List(SOURCE, least=1, noun="source"), "Where the very same bytes can be had, in the order they are tried."
)
_VERIFIED = {
    "size": optional(
        whole(above=0, unit="bytes", otherwise="leave it out while it is not known"),
        "Size in bytes, verified. Leave it out while it is not known.",
    ),
    "sha256": optional(
        DIGEST._replace(otherwise="leave it out while it is not verified"),
        "sha256 of the file, verified by downloading and hashing it. Leave it out while nobody has; it is then taken "
        "from the hub and recorded.",
    ),
}
SHARD = Shape("a shard", {"name": _NAME, **_VERIFIED}, "A part whose size or digest is known.")
SHARDS = List(Either((FILE_NAME, SHARD)), least=2, otherwise="one file has a 'name'")
WHOLE_FILE = Shape("a file", {"role": _ROLE, "name": _NAME, **_VERIFIED, "sources": _SOURCES}, "A file in one piece.")
FILE = Variants(
    "a file",
    {
        "shards": Shape(
            "a file in shards",
            {
                "role": _ROLE,
                "shards": required(
                    SHARDS, "The parts in order; the engine is given the first. Sources then contain {shard}."
                ),
                "sources": _SOURCES,
            },
            "A file in shards.",
        ),
        "name": WHOLE_FILE,
    },
    "One file the engine is given, in one piece or in shards.",
    otherwise=WHOLE_FILE,
)

MEASUREMENT = Shape(
    "'evidence'",
    {"note": required(TEXT, "What was measured, on what."), "measured": required(TEXT, "The date.")},
)
RESIDENT = Shape(
    "'resident'",
    {
        "bytes": required(whole(above=0), "Resident bytes."),
        "sha256": required(DIGEST, "Digest of the file it was measured with."),
        "evidence": required(MEASUREMENT, "How it was measured."),
    },
)
DRAFT = Shape(
    "'draft'",
    {
        "id": optional(Name("models", "model", like=ID), "Another catalog entry that drafts for this one."),
        "file": optional(TEXT, "The name of the file of role draft in this entry."),
        "backends": optional(
            List(BACKEND, least=1, otherwise="leave it out for no limit"),
            "The backends it is limited to; leave it out for no limit.",
        ),
        "resident": optional(RESIDENT, "Measured memory of the loaded drafter; it holds for this very file only."),
        "header": optional(HEADER, "What the drafter's own header says."),
    },
    one_of=(("id", "file"), "needs either 'id' (another entry) or 'file' (a file of role draft)"),
)

_SPEC = {
    "type": optional(Name("spec_types", "speculative type"), "Speculative type; one of the policy's."),
    "n_max": optional(TOKENS, "Tokens drafted at once."),
    "sampling": optional(
        Name("draft_sampling_modes", "draft sampling"), "How drafts are sampled; one of the policy's."
    ),
}
OVERLAY = Shape("an overlay", _SPEC, "Laid over spec on this backend.", prefix="spec.")
SPEC = Shape(
    "'spec'",
    {**_SPEC, "by_backend": optional(Map(OVERLAY, keys=BACKEND), "Backend → what differs there.")},
    prefix="spec.",
)
REASONING = Shape(
    "'reasoning'",
    {
        "format": optional(
            Name("reasoning_formats", "reasoning format"), "How thoughts are returned; one of the policy's."
        ),
        "budget": optional(whole(least=0, unit="tokens"), "Tokens of thought at most."),
    },
    prefix="reasoning.",
)
TUNING = Shape(
    "'tuning'",
    {
        "spec": optional(SPEC, "Speculative decoding."),
        "window": optional(TOKENS, "Context window worth aiming at, in tokens."),
        "slots": optional(whole(least=1), "Parallel conversations."),
        "kv_type": optional(Name("kv_types", "KV type"), "Precision of the KV cache; one of the policy's."),
        "swa_full": optional(FLAG, "A full-size cache for sliding layers."),
        "ubatch": optional(TOKENS, "Tokens per physical batch."),
        "threads": optional(whole(least=1), "CPU threads for generation; never more than the machine has."),
        "reasoning": optional(REASONING, "Thinking."),
        "temperature": optional(Number(least=0, most=10), "Sampling temperature."),
        "top_p": optional(Number(least=0, most=1), "Nucleus sampling."),
        "top_k": optional(whole(least=0), "Candidates kept; 0 keeps all."),
        "min_p": optional(Number(least=0, most=1), "Least probability relative to the best candidate."),
    },
)
EXCLUSION = Shape(
    "an exclusion",
    {
        "backend": required(BACKEND, "One of the policy's backends."),
        "reason": required(WORDING, "What a person is told."),
    },
    "One backend, and why.",
)

ENTRY = Shape(
    "a catalog entry",
    {
        "id": required(
            ID,
            "What people type for this model; also the name of this file and of the model's directory in the store.",
        ),
        "name": required(WORDING, "Name for people."),
        "family": required(
            WORDING, "Shared by all quants of one model: the nearest quant that fits is looked for here first."
        ),
        "summary": required(WORDING, "One sentence that helps to choose."),
        "quant": required(QUANT, "Quant tag."),
        "engine": engine_family("The engine family that runs this model."),
        "license": optional(TEXT, "Under which terms the weights may be used."),
        "chat": optional(
            FLAG,
            "Whether the file carries a chat template; without one a prompt is completed, not answered. Leave it out "
            "if that is not known.",
        ),
        "files": required(
            List(FILE, one_with=("role", "model")), "The files of this model; exactly one has the role model."
        ),
        "draft": optional(DRAFT, "The draft model that belongs to this one."),
        "excluded": optional(List(EXCLUSION), "Backends this model must not run on."),
        "tuning": optional(TUNING, "What the catalog recommends; every level above it wins."),
        "header": optional(HEADER, "What the file's own header says, so that a plan can be made before a download."),
    },
    "One model in one quant: where its files come from, what is recommended for it, and what is known before a "
    "download. Nothing unverified is stated as verified.",
)
