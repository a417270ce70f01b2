"""From ``models/<id>.yaml`` to an ``Entry``, with every problem at its place and all of them at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gezel_rules.catalog.entry import ENTRY, SOURCE
from gezel_rules.catalog.records import Draft, Entry, Exclusion, ModelFile, Part, Resident, Source, Tuned
from gezel_rules.catalog.rules import SHARD, check
from gezel_rules.documents.declare import Shape
from gezel_rules.documents.kept import load_kept
from gezel_rules.documents.node import Node
from gezel_rules.documents.read import Value, in_file_order, read
from gezel_rules.errors import BadInput, Problem
from gezel_rules.places import shown

_WORDS = ("id", "name", "family", "summary", "quant", "engine", "license", "chat")


Further = Callable[[Value, bool], list[Problem]]
"""What else must hold of an entry's values, for those who know policies; told whether the entry is in order so far."""


def load_entry(path: Path, cache: Path | None = None, further: Further | None = None) -> Entry:
    """Read one entry. Raises BadInput listing everything wrong with the file: in file order, then what ``further``
    finds.

    The ``header`` is not read here: most uses of an entry do not need it, and its engine family knows how.
    """
    problems: list[Problem] = []
    values = read(load_kept(path, shown(path), cache), ENTRY, problems)
    check(values, path, problems)
    problems = in_file_order(problems)
    if further is not None:
        problems += further(values, not problems)
    if problems:
        raise BadInput(problems)
    return _entry(values)


def _entry(values: Value) -> Entry:
    """The record of an entry that is in order."""
    files = tuple(_file(file) for file in values.at("files"))
    tuned, overlays = _tuning(values["tuning"]) if "tuning" in values else ({}, {})
    return Entry(
        **{word: values.at(word) for word in _WORDS},
        files=files,
        draft=_draft(values, next((file for file in files if file.role == "draft"), None)),
        excluded=tuple(_exclusion(each) for each in values.at("excluded") or ()),
        tuned=tuned,
        overlays=overlays,
        header=_unread(values, "header"),
        values=values,
    )


def _unread(value: Value, key: str) -> Node | None:
    return value[key].node if key in value else None


def _file(file: Value) -> ModelFile:
    sources = tuple(_source(source) for source in file.at("sources"))
    parts = [_shard(shard, sources) for shard in file.at("shards")] if "shards" in file else [_part(file, sources)]
    return ModelFile(file.at("role"), tuple(parts), file.place)


def _shard(shard: Value, sources: tuple[Source, ...]) -> Part:
    name = shard.value if isinstance(shard.value, str) else shard.at("name")
    own = tuple(_for_shard(source, name) for source in sources)
    return Part(name, own) if isinstance(shard.value, str) else _part(shard, own)


def _for_shard(source: Source, name: str) -> Source:
    return source._replace(address=source.address.replace(SHARD, name), file=source.file.replace(SHARD, name))


def _part(part: Value, sources: tuple[Source, ...]) -> Part:
    return Part(part.at("name"), sources, part.at("size"), part.at("sha256"))


def _source(source: Value) -> Source:
    kind = next(kind for kind in SOURCE.by if kind in source)
    return Source(
        kind=kind,
        address=source.at(kind),
        place=source.place,
        file=source.at("file") if kind == "hub" else "",
        revision=source.at("revision") or "" if kind == "hub" else "",
        parts=tuple(part.value for part in source.at("parts")) if kind == "package" else (),
        unverified=source.at("unverified"),
    )


def _draft(entry: Value, own: ModelFile | None) -> Draft | None:
    """A draft file that nothing more is said about applies to every backend."""
    if "draft" not in entry:
        return Draft(None, own, None, None, None, own.place) if own else None
    draft = entry["draft"]
    return Draft(
        draft.at("id"),
        own,
        tuple(backend.value for backend in draft.at("backends")) if "backends" in draft else None,
        _resident(draft["resident"]) if "resident" in draft else None,
        _unread(draft, "header"),
        draft.place,
    )


def _resident(found: Value) -> Resident:
    evidence = found["evidence"]
    return Resident(found.at("bytes"), found.at("sha256"), evidence.at("note"), evidence.at("measured"), found.place)


def _exclusion(value: Value) -> Exclusion:
    return Exclusion(value.at("backend"), value.at("reason"), value.place)


def _tuning(tuning: Value) -> tuple[dict[str, Tuned], dict[str, dict[str, Tuned]]]:
    """``Entry.tuned`` and ``Entry.overlays``."""
    nested = [tuning[key] for key in ("spec", "reasoning") if key in tuning]
    tuned = _tuned(tuning) | {key: value for each in nested for key, value in _tuned(each).items()}
    by_backend = tuning["spec"].at("by_backend") if "spec" in tuning else None
    return tuned, {backend: _tuned(overlay) for backend, overlay in (by_backend or {}).items()}


def _tuned(values: Value) -> dict[str, Tuned]:
    """The single values of a shape, under the names that messages have for them."""
    prefix = values.kind.prefix if isinstance(values.kind, Shape) else ""
    single = {key: value for key, value in values.value.items() if not isinstance(value.value, dict)}
    return {f"{prefix}{key}": Tuned(value.value, value.place) for key, value in single.items()}
