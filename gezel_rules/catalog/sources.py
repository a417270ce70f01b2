"""Reading the ``sources`` of a file: one record per way to get it, with everything wrong about it."""

from __future__ import annotations

from collections.abc import Callable

from gezel_rules.catalog import names
from gezel_rules.catalog.records import Source
from gezel_rules.documents.shape import FLAG, LIST, TEXT, fields, items
from gezel_rules.documents.source import Node
from gezel_rules.errors import Problem

SHARD = "{shard}"
"""Stands for the shard's name in a source of a file that comes in shards."""

_KINDS = {
    "hub": ({"hub": TEXT, "file": TEXT}, {"revision": TEXT, "unverified": FLAG}),
    "url": ({"url": TEXT}, {"unverified": FLAG}),
    "path": ({"path": TEXT}, {"unverified": FLAG}),
    "package": ({"package": TEXT, "parts": LIST}, {"unverified": FLAG}),
}
"""Kind → required and optional keys."""


def place(node: Node) -> str:
    """``file:line`` of a value."""
    return f"{node.text.name}:{node.line}"


def read_sources(node: Node, sharded: bool, problems: list[Problem]) -> tuple[Source, ...]:
    """The sources in order, ``{shard}`` still in them."""
    sources = [_source(item, sharded, problems) for item in items(node, "'sources'", "mapping", problems)]
    if not node.value:
        problems.append(node.problem("'sources' must name at least one source"))
    return tuple(source for source in sources if source is not None)


def for_shard(source: Source, name: str) -> Source:
    """The source of one shard."""
    return source._replace(address=source.address.replace(SHARD, name), file=source.file.replace(SHARD, name))


def _source(node: Node, sharded: bool, problems: list[Problem]) -> Source | None:
    kind = next((kind for kind in _KINDS if kind in node.value), None)
    if kind is None:
        problems.append(node.problem(f"a source needs one of: {', '.join(_KINDS)}", 1))
        return None
    before = len(problems)
    got = fields(node, f"a source of kind '{kind}'", problems, *_KINDS[kind])
    _check_places(kind, got, sharded, problems)
    if len(problems) > before:
        return None
    return Source(
        kind=kind,
        address=got[kind].value,
        place=place(node),
        file=got["file"].value if "file" in got else "",
        revision=got["revision"].value if "revision" in got else "",
        parts=tuple(part.value for part in got["parts"].value) if "parts" in got else (),
        unverified="unverified" in got and got["unverified"].value,
    )


def _check_places(kind: str, got: dict[str, Node], sharded: bool, problems: list[Problem]) -> None:
    faults: dict[str, Callable[[str], str]] = {
        "hub": names.repo_fault,
        "file": names.relative_path_fault,
        "revision": names.revision_fault,
        "url": names.url_fault,
        "path": _path_fault,
        "package": names.distribution_fault,
    }
    for key, node in got.items():
        if key in faults and (fault := faults[key](node.value.replace(SHARD, "shard"))):
            problems.append(node.problem(f"'{key}' {fault}"))
    if "parts" in got:
        _check_resources(got["parts"], problems)
    varying = got.get("file" if kind == "hub" else kind)
    if varying is not None and (SHARD in varying.value) != sharded:
        needs = f"must contain {SHARD}" if sharded else f"has {SHARD}, but the file has no shards"
        problems.append(varying.problem(f"'{varying.key.value if varying.key else kind}' {needs}"))


def _check_resources(node: Node, problems: list[Problem]) -> None:
    parts = items(node, "'parts'", TEXT, problems)
    if not node.value:
        problems.append(node.problem("'parts' must name at least one resource"))
    problems.extend(
        part.problem(f"{part.value!a} {fault}") for part in parts if (fault := names.resource_fault(part.value))
    )


def _path_fault(path: str) -> str:
    if not path.isprintable():
        return "has control or invisible characters"
    windows = len(path) > 2 and path[0].isalpha() and path[1] == ":" and path[2] in "/\\"
    if not (path.startswith(("/", "~/")) or windows):
        return "must be absolute, or start with '~/'"
    return "must not contain '..'" if ".." in path.replace("\\", "/").split("/") else ""
