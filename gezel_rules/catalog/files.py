"""Reading ``files``: names that stay inside the model's directory, sizes and digests that were verified."""

from __future__ import annotations

from gezel_rules.catalog.names import digest_fault, file_name_fault
from gezel_rules.catalog.records import ModelFile, Part, Source
from gezel_rules.catalog.sources import for_shard, place, read_sources
from gezel_rules.documents.shape import INTEGER, LIST, MAP, TEXT, fields, items
from gezel_rules.documents.source import Node, did_you_mean
from gezel_rules.errors import Problem

ROLES = ("model", "projector", "vision-encoder", "draft")


def read_files(node: Node, problems: list[Problem]) -> tuple[ModelFile, ...]:
    """All files of an entry; exactly one is the model, and no two end up under one name."""
    read = [_file(item, problems) for item in items(node, "'files'", MAP, problems)]
    files = tuple(file for file in read if file is not None)
    if len(files) == len(node.value) and not any(file.role == "model" for file in files):
        problems.append(node.problem("'files' has none of role model", 1))
    return files if not _repeated(node, problems) else ()


def _file(node: Node, problems: list[Problem]) -> ModelFile | None:
    before = len(problems)
    required = {"role": TEXT, "sources": LIST} | ({} if "shards" in node.value else {"name": TEXT})
    optional = {"shards": LIST} if "shards" in node.value else {"size": INTEGER, "sha256": TEXT}
    got = fields(node, "a file", problems, required, optional)
    if "role" in got and got["role"].value not in ROLES:
        hint = did_you_mean(got["role"].value, ROLES) or f"; it is one of: {', '.join(ROLES)}"
        problems.append(got["role"].problem(f"unknown role {got['role'].value!a}{hint}"))
    sources = read_sources(got["sources"], "shards" in got, problems) if "sources" in got else ()
    parts = _shards(got["shards"], sources, problems) if "shards" in got else (_part(got, sources, problems),)
    return ModelFile(got["role"].value, parts, place(node)) if len(problems) == before else None


def _shards(node: Node, sources: tuple[Source, ...], problems: list[Problem]) -> tuple[Part, ...]:
    parts = []
    for item in items(node, "'shards'", "text|mapping", problems):
        given = {"name": item} if isinstance(item.value, str) else _shard_fields(item, problems)
        name = str(given["name"].value) if "name" in given else ""
        parts.append(_part(given, tuple(for_shard(source, name) for source in sources), problems))
    if len(parts) < 2 and len(node.value) < 2:
        problems.append(node.problem("'shards' must name at least two; one file has a 'name'"))
    return tuple(parts)


def _shard_fields(node: Node, problems: list[Problem]) -> dict[str, Node]:
    return fields(node, "a shard", problems, {"name": TEXT}, {"size": INTEGER, "sha256": TEXT})


def _part(got: dict[str, Node], sources: tuple[Source, ...], problems: list[Problem]) -> Part:
    name, size, digest = got.get("name"), got.get("size"), got.get("sha256")
    if name is not None and (fault := file_name_fault(name.value)):
        problems.append(name.problem(f"name {name.value!a} {fault}"))
    if size is not None and size.value <= 0:
        problems.append(size.problem("'size' must be more than 0 bytes; leave it out while it is not known"))
    if digest is not None and (fault := digest_fault(digest.value)):
        problems.append(digest.problem(f"'sha256' {fault}; leave it out while it is not verified"))
    return Part(
        name.value if name else "",
        sources,
        size.value if size else None,
        digest.value.lower() if digest else None,
    )


def _repeated(node: Node, problems: list[Problem]) -> bool:
    """Two files of one role, or of names that some file system takes for one."""
    before = len(problems)
    roles: dict[str, Node] = {}
    taken: dict[str, Node] = {}
    for file in node.value:
        if not isinstance(file.value, dict):
            continue
        if (role := file.value.get("role")) is not None:
            _note(roles, str(role.value), role, f"a second file of role {role.value!a}", problems)
        for name in _names(file):
            _note(
                taken,
                _folded(str(name.value)),
                name,
                f"a second file named {name.value!a} (upper and lower case are one)",
                problems,
            )
    return len(problems) > before


def _folded(name: str) -> str:
    """What the name becomes on a file system that ignores case and normal form."""
    if name.isascii():
        return name.lower()
    from unicodedata import normalize

    return normalize("NFC", normalize("NFC", name).casefold())


def _note(seen: dict[str, Node], key: str, node: Node, what: str, problems: list[Problem]) -> None:
    if key in seen:
        problems.append(node.problem(f"{what}; the first is on line {seen[key].line}"))
    seen.setdefault(key, node)


def _names(file: Node) -> list[Node]:
    named = [file.value["name"]] if "name" in file.value else []
    shards = file.value.get("shards")
    for shard in shards.value if shards is not None and isinstance(shards.value, list) else []:
        node = shard.value.get("name") if isinstance(shard.value, dict) else shard
        named += [node] if node is not None else []
    return named
