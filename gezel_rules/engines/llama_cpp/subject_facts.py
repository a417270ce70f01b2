"""What a model's files say, as facts: its header, its drafters' and projectors'."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gezel_rules.engines.llama_cpp.draft_facts import drafter_facts
from gezel_rules.engines.llama_cpp.model_facts import MODEL_FACT_KEYS, model_facts
from gezel_rules.engines.llama_cpp.projector_facts import projector_facts
from gezel_rules.engines.llama_cpp.vocabulary import MODEL
from gezel_rules.facts.fact import Fact
from gezel_rules.facts.vocabulary import unknown_fact

if TYPE_CHECKING:
    from gezel_rules.engines.protocol import Facts
    from gezel_rules.engines.subject import Subject
    from gezel_rules.gguf.records import Header
    from gezel_rules.policy.model import PolicySet


def subject_facts(subject: Subject, settings: Mapping[str, Fact], policies: PolicySet, cache: Path | None) -> Facts:
    """``model.*``, and what is to be known of the drafters."""
    return {
        **_header_facts(subject, policies),
        **drafter_facts(subject, settings["settings.draft_model"].value, policies, cache),
        **projector_facts(subject, settings, policies, cache),
        "launch.slot_directory": settings["settings.slot_save_path"],
    }


def _said(policies: PolicySet, header: Header) -> dict[str, object]:
    tables = policies.tables
    return model_facts(header, drafters=tables["drafter_architectures"], projectors=tables["projector_architectures"])


def _header_facts(subject: Subject, policies: PolicySet) -> Facts:
    """What the header says. The catalog's word on a chat template counts where the file has not been read."""
    header = cast("Header", subject.model)
    said = policies.once(_said, header)
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
