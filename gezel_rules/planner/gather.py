"""All facts of one plan, each with its source: header, catalog entry, host, engine build, settings, and the launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.facts.gguf.records import Header
from gezel_rules.facts.model import MODEL_FACT_KEYS, model_facts
from gezel_rules.facts.vocabulary import ENGINE, HOST, MODEL, SETTINGS, Word
from gezel_rules.planner.subject import Subject
from gezel_rules.record import NamedTuple

Facts = dict[str, Fact]
SHARES_RAM = ("unified", "integrated")
"""Kinds of devices whose memory is the machine's RAM."""


class Machine(NamedTuple):
    """Where the launch is to run: a described host (``description``), or this machine with an engine (``engine``:
    its kind and command; ``None``: none was found), with the devices of ``lenders`` (host:port) beside its own,
    which ``lent_by`` is the option for."""

    description: Path | None
    engine: tuple[str, tuple[str, ...]] | None
    cache: Path | None
    environ: Mapping[str, str]
    lenders: Sequence[str] = ()
    lent_by: str = ""


def setting_facts(
    tables: Mapping[str, Any], environ: Mapping[str, str], sites: Sequence[Path], assignments: Sequence[str], model: str
) -> Facts:
    """The operator's settings by level. Raises BadInput for an unknown setting or a value of the wrong type."""
    from gezel_rules.facts.settings import SettingSpec, settings

    specs = {}
    for word in SETTINGS:
        choices = tuple(map(str, tables[word.rows_of])) if word.rows_of else None
        name = word.name.removeprefix("settings.")
        specs[name] = SettingSpec(name, word.kind, choices, word.unit, word.minimum)
    return settings(specs, environ, sites, assignments, model)


def machine_facts(machine: Machine, tables: Mapping[str, Any]) -> Facts:
    """Host, engine and devices: described, or probed. What nobody can tell is unknown, with what would settle it."""
    if machine.description is not None:
        from gezel_rules.facts.described_host import load_host

        found = load_host(machine.description, tables["backends"], machine.cache, tables["processors"])
        found["engine.flags"] = _spelled_out(found["engine.flags"], tables["option_spellings"])
    else:
        found = _probed(machine, tables)
    found |= _spec_types(found.get("engine.words"), tables)
    facts = {word.name: found.get(word.name) or _unknown(word) for word in (*HOST, *ENGINE)}
    return facts | {"devices": found.get("devices", Fact([], "no engine"))} | _gpu_facts(found.get("devices"))


def _spec_types(words: Fact | None, tables: Mapping[str, Any]) -> Facts:
    """The speculative types a build lists behind the option that chooses one."""
    listed = words.value.get(tables["launch_summary"]["spec_type"]["flag"]) if words else None
    return {"engine.spec_types": words._replace(value=listed)} if words and listed else {}


def _spelled_out(flags: Fact, spellings: Mapping[str, Sequence[str]]) -> Fact:
    """A description lists an option under one of its names; a build knows it under all of them."""
    if flags.value is UNKNOWN:
        return flags
    listed = set(flags.value)
    rows = [{name, *others} for name, others in spellings.items()]
    return flags._replace(value=sorted(listed.union(*(row for row in rows if row & listed))))


def _probed(machine: Machine, tables: Mapping[str, Any]) -> Facts:
    from gezel_rules.facts.host import host_facts

    facts = host_facts()
    if machine.engine is None:
        return facts
    from gezel_rules.facts.builds import build_facts
    from gezel_rules.facts.devices import device_rules

    kind, command = machine.engine
    if machine.lenders:
        from gezel_rules.facts.lenders import require_lenders

        require_lenders(machine.lenders)
        command = (*command, machine.lent_by, ",".join(machine.lenders))
    rules = device_rules(tables["device_prefixes"], tables["software_renderers"], tables["integrated_gpus"])
    cpu = next(name for name, row in tables["backends"].items() if not row["gpu"])
    return facts | build_facts(
        command,
        machine.cache,
        machine.environ,
        kind=kind,
        rules=rules,
        cpu_backend=cpu,
        processors=tables["processors"],
    )


def _unknown(word: Word) -> Fact:
    return Fact(UNKNOWN, word.source, "probe", settle=word.settle)


def gpus(devices: Any) -> list[dict[str, Any]]:
    """The devices that count as GPUs of this machine. One that shares the RAM takes no part beside a card of its own
    memory: the engine leaves it out then (llama.cpp 0.6.0-dev)."""
    cards = [d for d in devices or () if d["kind"] in ("discrete", "rpc")]
    return cards or [d for d in devices or () if d["kind"] in SHARES_RAM]


def _gpu_facts(devices: Fact | None) -> Facts:
    if devices is None or devices.value is UNKNOWN:
        return {}
    cards = gpus(devices.value)
    return {
        "gpu.count": Fact(len(cards), devices.source, "probe"),
        "gpu.total": _sum(cards, "total_bytes", devices.source),
        "gpu.free": _sum(cards, "free_bytes", devices.source),
        "gpu.names": Fact([f"{d['name']} {d['description']}" for d in cards], devices.source, "probe"),
        "gpu.devices": Fact([d["name"] for d in cards], devices.source, "probe"),
        "gpu.shares_ram": Fact(any(d["kind"] in SHARES_RAM for d in cards), devices.source, "probe"),
    }


def _sum(cards: list[dict[str, Any]], key: str, source: str) -> Fact:
    sizes = [card.get(key) for card in cards]
    known = not any(size is None for size in sizes)
    return Fact(sum(size or 0 for size in sizes) if known else UNKNOWN, source, "probe")


def header_facts(subject: Subject, tables: Mapping[str, Any]) -> Facts:
    """What the header says. The catalog's word on a chat template counts where the file has not been read."""
    said = model_facts(
        subject.header, drafters=tables["drafter_architectures"], projectors=tables["projector_architectures"]
    )
    facts = {}
    for word in MODEL:
        if word.name in said:
            key = MODEL_FACT_KEYS[word.name].replace("<arch>", subject.header.arch)
            facts[word.name] = Fact(said[word.name], f"{subject.header_source}: {key}", "gguf")
        else:
            facts[word.name] = _unknown(word)
    entry = subject.entry
    if entry is not None and not subject.installed and entry.chat is not None:
        facts["model.has_chat_template"] = Fact(entry.chat, f"{entry.file}: chat", "catalog")
    return facts


def entry_facts(subject: Subject, backend: Any, tables: Mapping[str, Any]) -> Facts:
    """What the catalog says about the model, its overlay for this backend laid beside its base tuning."""
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
    return facts | _companions(subject, place, tables)


_TUNED = {
    "spec_type": "spec.type", "spec_n_max": "spec.n_max", "spec_sampling": "spec.sampling", "window": "window",
    "slots": "slots", "reasoning_format": "reasoning.format", "reasoning_budget": "reasoning.budget",
}  # fmt: skip


def _tuned(found: Any) -> Fact:
    return Fact(found.value, found.place, "catalog") if found else Fact(None, "not in the catalog entry")


def _companions(subject: Subject, place: str, tables: Mapping[str, Any]) -> Facts:
    draft, projector, entry = subject.draft, subject.projector, subject.entry
    limited = list(entry.draft.backends) if entry and entry.draft and entry.draft.backends is not None else None
    return {
        "entry.draft": Fact(draft.name if draft else None, place, "catalog"),
        "entry.draft_backends": Fact(limited, entry.draft.place if entry and entry.draft else place, "catalog"),
        "entry.draft_bytes": Fact(draft.resident_bytes if draft else None, draft.source if draft else place, "catalog"),
        "entry.draft_arch": Fact(draft.header.arch if draft and draft.header else None, place, "catalog"),
        "entry.draft_has_mtp": Fact(has_head(draft.header if draft else None, tables), place, "catalog"),
        "entry.projector": Fact(projector.name if projector else None, place, "catalog"),
        "entry.projector_bytes": Fact(projector.resident_bytes if projector else None, place, "catalog"),
    }


def has_head(header: Header | None, tables: Mapping[str, Any]) -> bool:
    """Whether a drafter's file holds an MTP head; one whose header nobody knows is not counted on."""
    if header is None:
        return False
    own = tables["drafter_architectures"].get(header.arch, {})
    return bool(model_facts(header).get("model.mtp_layers")) or bool(own.get("mtp_head"))


def own_draft_facts(path: str | None, header: Header | None, tables: Mapping[str, Any]) -> Facts:
    """The operator's own draft model by its header (``None``: none was named, or it cannot be read)."""
    source = f"GGUF {Path(path).name}" if path else "settings.draft_model is not set"
    size: Any = sum(tensor.nbytes for tensor in header.tensors) if header else UNKNOWN
    settle = "the draft model's file" if path else ""
    return {
        "launch.own_draft_here": Fact(header is not None, source),
        "launch.own_draft_bytes": Fact(size, source, settle=settle),
        "launch.own_draft_has_mtp": Fact(has_head(header, tables), source),
    }


def launch_facts(
    subject: Subject, settings: Facts, tables: Mapping[str, Any], draft_failed: bool, packing_failed: bool = False
) -> Facts:
    """Paths of this launch, and the operator's extra arguments by name. Raises BadInput for a secret among them."""
    extra = settings["settings.extra_args"].value or []
    names = argument_names(extra, tables["option_spellings"])
    for secret in tables["secret_arguments"]:
        if secret in names:
            raise BadInput(f"setting 'extra_args': {secret} would show its value to every user of this machine")
    draft, projector = subject.draft, subject.projector
    return {
        "launch.model_path": Fact(subject.model_path, subject.header_source),
        "launch.draft_path": Fact(draft.path if draft else None, "store"),
        "launch.draft_here": Fact(bool(draft and draft.here), "store"),
        "launch.draft_failed": Fact(draft_failed, "remembered failures"),
        "launch.packing_failed": Fact(packing_failed, "remembered failures"),
        "launch.projector_path": Fact(projector.path if projector and projector.here else None, "store"),
        "launch.slot_directory": settings["settings.slot_save_path"],
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
