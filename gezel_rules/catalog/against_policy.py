"""Holding an entry against the policies: the backends, algorithms and formats it names must exist there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from gezel_rules.catalog.records import Entry
from gezel_rules.documents.source import Node, did_you_mean
from gezel_rules.errors import Problem


def check(
    entry: Entry,
    backends: Collection[str],
    spec_types: Collection[str],
    *,
    samplings: Collection[str] | None = None,
    reasoning_formats: Collection[str] | None = None,
    models: Collection[str] | None = None,
    read_header: Callable[[Node, list[Problem]], object] | None = None,
) -> list[Problem]:
    """What is wrong with a well-formed entry, in file order: unknown names, a broken ``header`` block.

    Every vocabulary comes from the policies (``models``: the ids of the catalog); one that is ``None`` is not checked.
    ``read_header`` reads a ``header`` block as the entry's engine family does, adding problems.
    """
    problems: list[Problem] = []
    for node, what, known in _named(entry, backends, spec_types, samplings, reasoning_formats, models):
        if known is not None and node.value not in known:
            problems.append(node.problem(f"unknown {what} {node.value!a}{did_you_mean(str(node.value), known)}"))
    for block in (entry.header, entry.draft and entry.draft.header):
        if block is not None and read_header is not None:
            read_header(block, problems)
    return sorted(problems, key=lambda problem: problem.span or ())


def _named(
    entry: Entry,
    backends: Collection[str],
    spec_types: Collection[str],
    samplings: Collection[str] | None,
    formats: Collection[str] | None,
    models: Collection[str] | None,
) -> Iterator[tuple[Node, str, Collection[str] | None]]:
    """Every name in the entry that policy knows: its node, what it names, and the names there are."""
    root = entry.root.value
    draft = root["draft"].value if "draft" in root else {}
    yield from ((node, "backend", backends) for node in (draft["backends"].value if "backends" in draft else ()))
    if "id" in draft:
        yield draft["id"], "model", models
    for exclusion in root["excluded"].value if "excluded" in root else ():
        yield exclusion.value["backend"], "backend", backends
    tuning = root["tuning"].value if "tuning" in root else {}
    spec = tuning["spec"].value if "spec" in tuning else {}
    overlays = spec["by_backend"].value if "by_backend" in spec else {}
    yield from ((overlay.key, "backend", backends) for overlay in overlays.values())
    for chosen in (spec, *(overlay.value for overlay in overlays.values())):
        if "type" in chosen:
            yield chosen["type"], "speculative type", spec_types
        if "sampling" in chosen:
            yield chosen["sampling"], "draft sampling", samplings
    reasoning = tuning["reasoning"].value if "reasoning" in tuning else {}
    if "format" in reasoning:
        yield reasoning["format"], "reasoning format", formats
