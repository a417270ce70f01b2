"""Facts that policies of every engine family may read: name, type, unit, meaning, source, whether it may be unknown.

The vocabulary is the contract between probes and policies: a rule that names anything else does not load.
``rows_of`` names the policy table whose rows are the allowed words, so that no list of backends or types stands here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gezel_rules.facts.fact import UNKNOWN, Fact
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
    maximum: int | None = None


_DEVICES = "gezel-rules devices"


def _host(name: str, kind: str, says: str, unit: str = "", unknown: bool = True) -> Word:
    return Word(name, kind, says, "probe or described host", unit, unknown=unknown, settle=_DEVICES)


def engine_word(name: str, kind: str, says: str, rows_of: str = "") -> Word:
    """A fact about the engine build, unknown where there is none to ask."""
    return Word(name, kind, says, "engine --version, --help, --list-devices", "", rows_of=rows_of, unknown=True,
                settle="name an engine: --engine PATH")  # fmt: skip


def entry_word(name: str, kind: str, says: str, unit: str = "", rows_of: str = "", optional: bool = True) -> Word:
    """A fact of the catalog entry."""
    return Word(name, kind, says, "catalog entry", unit, optional, rows_of)


def setting_word(
    name: str,
    kind: str,
    says: str,
    unit: str = "",
    rows_of: str = "",
    minimum: int | None = None,
    maximum: int | None = None,
) -> Word:
    """Something a person may set; none where nobody did."""
    source = "environment, --set or site file"
    return Word(f"settings.{name}", kind, says, source, unit, True, rows_of, minimum=minimum, maximum=maximum)


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
    _host("gpu.alike", "flag", "they are one kind of card with the same memory; so is a single one"),
    _host("gpu.unsure", "flag", "of some device no rule tells whether it shares the RAM, and others are there too"),
    _host("gpu.seen_twice", "flag", "a card is listed by two backends; the first of them counts"),
    _host("gpu.usable", "integer", "what policy lets a launch take of them, others' reservations deducted", "bytes"),
    _host("ram.usable", "integer", "what policy lets a launch take of the RAM", "bytes"),
)

ENGINE = (
    engine_word("engine.kind", "text", "which program: the family's server, or one this package brings"),
    engine_word("engine.backend", "text", "what it computes on", "backends"),
    engine_word("engine.version", "text", "its release"),
    engine_word("engine.identity", "text", "tells its files from those of a build that calls itself alike"),
    engine_word("engine.flags", "list", "options its --help knows"),
)

ENTRY = (
    entry_word("entry.id", "text", "catalog id"),
    entry_word("entry.spec_type", "text", "speculative type for every backend", rows_of="spec_types"),
    entry_word("entry.spec_n_max", "integer", "tokens drafted at once", "tokens"),
    entry_word("entry.spec_sampling", "text", "how drafts are sampled", rows_of="draft_sampling_modes"),
    entry_word("entry.overlay_type", "text", "speculative type for this backend", rows_of="spec_types"),
    entry_word("entry.overlay_n_max", "integer", "tokens drafted at once on this backend", "tokens"),
    entry_word("entry.overlay_sampling", "text", "draft sampling on this backend", rows_of="draft_sampling_modes"),
    entry_word("entry.per_backend", "flag", "the entry has a per-backend table", optional=False),
    entry_word("entry.draft", "text", "file name of its draft model"),
    entry_word("entry.draft_backends", "list", "backends its draft model is limited to", rows_of="backends"),
    entry_word("entry.draft_bytes", "integer", "resident bytes of the drafter, measured or of its file", "bytes"),
    entry_word("entry.window", "integer", "window it is tuned for", "tokens"),
    entry_word("entry.slots", "integer", "slots it is tuned for"),
    entry_word("entry.reasoning_format", "text", "how thoughts are returned", rows_of="reasoning_formats"),
    entry_word("entry.reasoning_budget", "integer", "thinking tokens", "tokens"),
    entry_word("entry.excluded", "text", "why this backend is excluded for the model"),
    entry_word("entry.projector", "text", "file name of its projector"),
    entry_word("entry.projector_bytes", "integer", "bytes of its projector", "bytes"),
)


LAUNCH = (
    Word("launch.model_path", "text", "the file the engine gets", "store, or the path given"),
    Word("launch.draft_path", "text", "the draft model on disk, or where it will be", "store", optional=True),
    Word("launch.draft_here", "flag", "the draft model is installed, or comes with this install", "store"),
    Word("launch.draft_failed", "flag", "this drafter broke this engine build before", "remembered failures"),
    Word("launch.projector_path", "text", "the projector on disk, or where it will be", "store", optional=True),
    Word("launch.arguments", "list", "option names among the operator's extra arguments", "settings.extra_args"),
)

SETTINGS = (
    setting_word("window", "integer", "context window", "tokens", minimum=1),
    setting_word("slots", "integer", "parallel conversations", minimum=1),
    setting_word("vision", "flag", "load the projector"),
    setting_word("draft_model", "text", "path of a draft model"),
    setting_word("host", "text", "address to listen on"),
    setting_word("port", "integer", "port to listen on", minimum=0),
    setting_word("endpoint", "text", "which endpoint a prompt goes to", rows_of="endpoints"),
    setting_word("extra_args", "list", "arguments passed to the engine as they are, last"),
)

SHARED = (*HOST, *ENGINE, *ENTRY, *LAUNCH, *SETTINGS)
"""What policies of every engine family may read; a family adds its own words."""


def unknown_fact(word: Word) -> Fact:
    """The fact while nobody tells it, with what would."""
    return Fact(UNKNOWN, word.source, "probe", settle=word.settle)


def fact_types(words: Iterable[Word]) -> dict[str, Type]:
    """A vocabulary as types for the policy checker."""
    return {word.name: _type_of(word) for word in words}


def _type_of(word: Word) -> Type:
    if word.kind == "list":
        return Type("list", word.unit, word.optional, item=Type("text", rows_of=word.rows_of))
    return Type(word.kind, word.unit, word.optional, rows_of=word.rows_of)


def units(words: Iterable[Word]) -> Mapping[str, str]:
    """Fact name → unit, for people."""
    return {word.name: word.unit for word in words if word.unit}
