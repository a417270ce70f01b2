"""What a model's files say, as facts: its header, its drafters' and projectors'."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gezel_rules.engines.llama_cpp.model_facts import MODEL_FACT_KEYS, model_facts
from gezel_rules.engines.llama_cpp.model_file import read_model
from gezel_rules.engines.llama_cpp.projector_facts import projector_facts
from gezel_rules.engines.llama_cpp.rows import DrafterArchitecture
from gezel_rules.engines.llama_cpp.vocabulary import MODEL
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.facts.vocabulary import unknown_fact

if TYPE_CHECKING:
    from gezel_rules.engines.protocol import Facts
    from gezel_rules.engines.subject import Subject
    from gezel_rules.gguf.records import Header
    from gezel_rules.policy.model import PolicySet


def subject_facts(subject: Subject, settings: Mapping[str, Fact], policies: PolicySet, cache: Path | None) -> Facts:
    """``model.*``, and what is to be known of the drafters."""
    own = settings["settings.draft_model"].value
    return {
        **_header_facts(subject, policies),
        **_drafter_facts(subject, policies),
        **_own_draft_facts(own, own_drafter(own, cache), policies),
        **projector_facts(subject, settings, policies, cache),
        "launch.slot_directory": settings["settings.slot_save_path"],
    }


def own_drafter(path: str | None, cache: Path | None) -> Header | None:
    """The header of the operator's own draft model; ``None`` when none was named, or it cannot be read."""
    try:
        return read_model(path, cache) if path else None
    except BadInput:
        return None


def _header_facts(subject: Subject, policies: PolicySet) -> Facts:
    """What the header says. The catalog's word on a chat template counts where the file has not been read."""
    header = cast("Header", subject.model)
    tables = policies.tables
    said = model_facts(header, drafters=tables["drafter_architectures"], projectors=tables["projector_architectures"])
    facts = {}
    for word in MODEL:
        if word.name in said:
            key = MODEL_FACT_KEYS[word.name].replace("<arch>", header.arch)
            facts[word.name] = Fact(said[word.name], f"{subject.source}: {key}", "gguf")
        else:
            facts[word.name] = unknown_fact(word)
    entry = subject.entry
    if entry is not None and not subject.installed and entry.chat is not None:
        facts["model.has_chat_template"] = Fact(entry.chat, f"{entry.file}: chat", "catalog")
    return facts


def _drafter_facts(subject: Subject, policies: PolicySet) -> Facts:
    header = cast("Header | None", subject.draft and subject.draft.model)
    place = subject.entry.file if subject.entry else "no catalog entry"
    return {
        "entry.draft_arch": Fact(header.arch if header else None, place, "catalog"),
        "entry.draft_has_mtp": Fact(_has_head(header, policies), place, "catalog"),
    }


def _has_head(header: Header | None, policies: PolicySet) -> bool:
    """Whether a drafter's file holds an MTP head; one whose header nobody knows is not counted on."""
    if header is None:
        return False
    own = policies.rows("drafter_architectures", DrafterArchitecture).get(header.arch)
    return bool(model_facts(header).get("model.mtp_layers")) or (own is not None and own.mtp_head)


def _own_draft_facts(path: str | None, header: Header | None, policies: PolicySet) -> Facts:
    source = f"GGUF {Path(path).name}" if path else "settings.draft_model is not set"
    size: Any = header.weights_bytes if header else UNKNOWN
    settle = "the draft model's file" if path else ""
    return {
        "launch.own_draft_here": Fact(header is not None, source),
        "launch.own_draft_bytes": Fact(size, source, settle=settle),
        "launch.own_draft_has_mtp": Fact(_has_head(header, policies), source),
    }
