"""What the catalog says about a model, and what a launch of it consists of, as facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN, Fact

if TYPE_CHECKING:
    from gezel_rules.engines.subject import Subject

Facts = dict[str, Fact]


def entry_facts(subject: Subject, backend: Any) -> Facts:
    """The entry's tuning, its overlay for this backend laid beside it, its exclusions and companions."""
    entry, facts = subject.entry, {}
    tuned = dict(entry.tuned) if entry else {}
    overlay = dict(entry.overlays.get(backend, {})) if entry and backend is not UNKNOWN else {}
    for name, key in _TUNED.items():
        facts[f"entry.{name}"] = _tuned(tuned.get(key))
    for name in ("type", "n_max", "sampling"):
        facts[f"entry.overlay_{name}"] = _tuned(overlay.get(f"spec.{name}"))
    place = entry.file if entry else "no catalog entry"
    excluded = next((e for e in entry.excluded if e.backend == backend), None) if entry else None
    facts |= {
        "entry.id": Fact(entry.id if entry else None, place, "catalog"),
        "entry.per_backend": Fact(bool(entry and entry.overlays), place, "catalog"),
        "entry.excluded": Fact(excluded.reason if excluded else None, excluded.place if excluded else place, "catalog"),
    }
    return facts | _companions(subject, place)


_TUNED = {
    "spec_type": "spec.type", "spec_n_max": "spec.n_max", "spec_sampling": "spec.sampling", "window": "window",
    "slots": "slots", "kv_type": "kv_type", "swa_full": "swa_full", "ubatch": "ubatch", "threads": "threads",
    "reasoning_format": "reasoning.format", "reasoning_budget": "reasoning.budget",
    "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "min_p": "min_p",
}  # fmt: skip


def _tuned(found: Any) -> Fact:
    return Fact(found.value, found.place, "catalog") if found else Fact(None, "not in the catalog entry")


def _companions(subject: Subject, place: str) -> Facts:
    draft, projector, entry = subject.draft, subject.projector, subject.entry
    limited = list(entry.draft.backends) if entry and entry.draft and entry.draft.backends is not None else None
    return {
        "entry.draft": Fact(draft.name if draft else None, place, "catalog"),
        "entry.draft_backends": Fact(limited, entry.draft.place if entry and entry.draft else place, "catalog"),
        "entry.draft_bytes": Fact(draft.resident_bytes if draft else None, draft.source if draft else place, "catalog"),
        "entry.projector": Fact(projector.name if projector else None, place, "catalog"),
        "entry.projector_bytes": Fact(projector.resident_bytes if projector else None, place, "catalog"),
    }


def launch_facts(subject: Subject, settings: Facts, tables: Mapping[str, Any], draft_failed: bool) -> Facts:
    """Paths of this launch, and the operator's extra arguments by name. Raises BadInput for a secret among them."""
    extra = settings["settings.extra_args"].value or []
    names = argument_names(extra, tables.get("option_spellings", {}))
    for secret in tables.get("secret_arguments", ()):
        if secret in names:
            raise BadInput(f"setting 'extra_args': {secret} would show its value to every user of this machine")
    draft, projector = subject.draft, subject.projector
    return {
        "launch.model_path": Fact(subject.model_path, subject.source),
        "launch.draft_path": Fact(draft.path if draft else None, "store"),
        "launch.draft_here": Fact(bool(draft and draft.here), "store"),
        "launch.draft_failed": Fact(draft_failed, "remembered failures"),
        "launch.projector_path": Fact(projector.path if projector and projector.here else None, "store"),
        "launch.arguments": Fact(names, settings["settings.extra_args"].source),
    }


def _dashed(name: str) -> str:
    """The engine takes ``--ctx_size`` for ``--ctx-size``."""
    return name.replace("_", "-") if name.startswith("--") else name


def argument_names(arguments: Sequence[str], spellings: Mapping[str, Sequence[str]]) -> list[str]:
    """The options among arguments, each under its long name."""
    long_names = {short: name for name, shorts in spellings.items() for short in shorts}
    given = [_dashed(argument.split("=", 1)[0]) for argument in arguments if argument.startswith("-")]
    return [long_names.get(name, name) for name in given if not name[1:2].isdigit()]
