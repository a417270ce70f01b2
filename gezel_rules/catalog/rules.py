"""What must hold between the keys of an entry, or between an entry and its file: no shape can say it.

Every function adds what is wrong to ``problems``; it looks at values that are as declared, and at nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gezel_rules.documents.read import Value
from gezel_rules.errors import Problem

SHARD = "{shard}"
"""Stands for the shard's name in a source of a file that comes in shards."""

Seen = dict[str, Value]


def check(entry: Value, path: Path, problems: list[Problem]) -> None:
    """All of it: names, roles, the places of shards, and whose the drafter is."""
    if "id" in entry and entry.at("id") != path.stem:
        node = entry["id"].node
        problems.append(node.problem(f"'id' is {node.value!a}, but the file is named '{path.name}'"))
    files = entry.at("files") or []
    _no_second(files, problems)
    for file in files:
        for source in file.at("sources") or ():
            _check_source(source, "shards" in file, problems)
    if "draft" in entry and _all_known(entry, files):
        _check_draft(entry["draft"], files, problems)


def _all_known(entry: Value, files: list[Value]) -> bool:
    """Whether it is known what role every file has: one that cannot be read might be the drafter."""
    return "files" in entry and len(files) == len(entry["files"].node.value) and all("role" in file for file in files)


def _no_second(files: list[Value], problems: list[Problem]) -> None:
    """Two files of one role, or of names that some file system takes for one."""
    roles: Seen = {}
    taken: Seen = {}
    for file in files:
        if "role" in file:
            _note(roles, file.at("role"), file["role"], f"a second file of role {file.at('role')!a}", problems)
        for name in names_of(file):
            said = f"a second file named {name.value!a} (upper and lower case are one)"
            _note(taken, _folded(name.value), name, said, problems)


def names_of(file: Value) -> Iterator[Value]:
    """The names a file takes in the model's directory: its own, or those of its shards."""
    for shard in file.at("shards") if "shards" in file else [file]:
        if isinstance(shard.value, str):
            yield shard
        elif "name" in shard:
            yield shard["name"]


def _folded(name: str) -> str:
    """What the name becomes on a file system that ignores case and normal form."""
    if name.isascii():
        return name.lower()
    from unicodedata import normalize

    return normalize("NFC", normalize("NFC", name).casefold())


def _note(seen: Seen, key: str, value: Value, what: str, problems: list[Problem]) -> None:
    if key in seen:
        problems.append(value.node.problem(f"{what}; the first is on line {seen[key].node.line}"))
    seen.setdefault(key, value)


def _check_source(source: Value, sharded: bool, problems: list[Problem]) -> None:
    """A source says where the shard's name goes, and only where there are shards."""
    if "package" in source and sharded:
        problems.append(source["package"].node.problem("a package cannot bring a file in shards"))
    for key in ("file", "url", "path"):
        if key in source and (SHARD in source.at(key)) != sharded:
            needs = f"must contain {SHARD}" if sharded else f"has {SHARD}, but the file has no shards"
            problems.append(source[key].node.problem(f"'{key}' {needs}"))


def _check_draft(draft: Value, files: list[Value], problems: list[Problem]) -> None:
    """Either another entry drafts, or the one file here that has the role."""
    own = next((file for file in files if file.at("role") == "draft"), None)
    name = next((name.value for name in names_of(own)), "") if own is not None else ""
    if "id" in draft.node.value and own is not None:
        node = draft.node.value["id"]
        problems.append(node.problem(f"'id' names another entry, but '{name}' here has the role draft"))
    if "file" in draft and (own is None or name != draft.at("file")):
        problems.append(draft["file"].node.problem(f"'files' has no {draft.at('file')!a} of role draft"))
