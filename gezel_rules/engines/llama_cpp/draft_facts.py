"""What is to be known of a launch's drafters: the catalog's, and the operator's own, whose header is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gezel_rules.engines.llama_cpp.model_facts import model_facts, whole
from gezel_rules.engines.llama_cpp.model_file import read_model
from gezel_rules.engines.llama_cpp.rows import DrafterArchitecture
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN, Fact

if TYPE_CHECKING:
    from gezel_rules.engines.protocol import Facts
    from gezel_rules.engines.subject import Subject
    from gezel_rules.gguf.records import Header
    from gezel_rules.policy.model import PolicySet


def drafter_facts(subject: Subject, path: str | None, policies: PolicySet, cache: Path | None) -> Facts:
    """The facts about drafters; ``path``: the operator's own draft model. A file that cannot be read is a fact."""
    header, trouble = _read(path, cache)
    return _catalogs(subject, policies) | _own(path, header, trouble, subject, policies)


def own_drafter(path: str | None, cache: Path | None) -> Header | None:
    """The header of the operator's own draft model; ``None`` when none was named, or it cannot be read."""
    return _read(path, cache)[0]


def _read(path: str | None, cache: Path | None) -> tuple[Header | None, str | None]:
    """The header, or why there is none."""
    try:
        return (read_model(path, cache) if path else None), None
    except BadInput as error:
        return None, str(error)


def _catalogs(subject: Subject, policies: PolicySet) -> Facts:
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
    row = _row(header, policies)
    return bool(model_facts(header).get("model.mtp_layers")) or (row is not None and row.mtp_head)


def _row(header: Header, policies: PolicySet) -> DrafterArchitecture | None:
    return policies.rows("drafter_architectures", DrafterArchitecture).get(header.arch)


def _own(path: str | None, header: Header | None, trouble: str | None, subject: Subject, policies: PolicySet) -> Facts:
    source = f"GGUF {Path(path).name}" if path else "settings.draft_model is not set"
    size: Any = header.weights_bytes if header else UNKNOWN
    said = {
        "here": header is not None,
        "trouble": trouble,
        "has_mtp": _has_head(header, policies),
        **(_made_for(header, subject, policies) if header else _NOTHING),
    }
    facts = {f"launch.own_draft_{name}": Fact(value, source) for name, value in said.items()}
    return facts | {"launch.own_draft_bytes": Fact(size, source, settle="the draft model's file" if path else "")}


_NOTHING = {
    "arch": None, "kind": None, "is_projector": False, "has_trunk": False, "width": None, "targets": None,
    "tokens": None, "tokenizer": None,
}  # fmt: skip


def _made_for(header: Header, subject: Subject, policies: PolicySet) -> dict[str, Any]:
    """What its header says of the model it drafts for; without a row for its architecture it is a model itself."""
    row, found = _row(header, policies), model_facts(header)
    trunk = row is None and not found.get("model.mtp_only")
    return {
        "arch": header.arch or None,
        "kind": _kind(header, row) if row else None,
        "is_projector": header.arch in policies.tables["projector_architectures"],
        "has_trunk": trunk,
        "width": whole(header, row.width) if row and row.width else None if row else found.get("model.embedding"),
        "targets": list(row.targets) if row and row.targets else [header.arch] if row is None else None,
        "tokens": found.get("model.vocab"),
        "tokenizer": _other_tokenizer(header, cast("Header", subject.model)),
    }


def _kind(header: Header, row: DrafterArchitecture) -> str:
    """The speculative type of a drafter's file: that of its architecture, or of the tensor that marks another."""
    marked = row.marked is not None and any(tensor.name == row.marked for tensor in header.tensors)
    return row.marked_type if marked and row.marked_type else row.type


_SAME = ("tokenizer.ggml.model", "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token")
"""What the engine wants alike before it drafts with another model (llama.cpp 0.6.0-dev, run)."""


def _other_tokenizer(draft: Header, model: Header) -> str | None:
    """The first thing that both files state of their vocabularies and that differs, in words."""
    for key in _SAME:
        one, other = draft.metadata.get(key), model.metadata.get(key)
        if one is not None and other is not None and one != other:
            return f"its {key} is {one}, the model's {other}"
    return None
