"""Writing sizes and digests that the hub states into a catalog entry, touching nothing else of the file.

The edit is made in the text itself, at the places the loader knows: comments, order, quotes and line lengths stay.
"""

from __future__ import annotations

from pathlib import Path

from gezel_rules.catalog import load_entry
from gezel_rules.catalog.records import Entry
from gezel_rules.catalog.records import Part as CatalogPart
from gezel_rules.documents.source import Node
from gezel_rules.errors import BadInput, TransferFailed, why
from gezel_rules.record import NamedTuple
from gezel_rules.store import hub
from gezel_rules.store.durable import replace_durably
from gezel_rules.store.plan import source_of
from gezel_rules.store.web import Web


class Pinned(NamedTuple):
    """One file that now has both figures in the entry."""

    name: str
    size: int
    sha256: str


def pin(path: Path, web: Web) -> list[Pinned]:
    """Ask the hub for every file of the entry that lacks size or sha256, and write them into ``path``.

    Raises TransferFailed when the hub cannot be asked or states no digest, BadInput when it contradicts the entry;
    the file is untouched then."""
    entry = load_entry(path)
    edits: list[tuple[int, int, str]] = []
    pinned = []
    for node, part in _open_parts(entry):
        said = _ask(part, web)
        _agree(node, part, said)
        pinned.append(said)
        edits.append(_edit(node, part, said, entry.root.text.text))
    if edits:
        _write(path, entry.root.text.text, edits, pinned)
    return pinned


def _open_parts(entry: Entry) -> list[tuple[Node, CatalogPart]]:
    """Files and shards without both figures, with the node that describes each."""
    found = []
    for node, file in zip(entry.root.value["files"].value, entry.files, strict=True):
        shards = node.value.get("shards")
        nodes = shards.value if shards is not None else [node]
        found += [pair for pair in zip(nodes, file.parts, strict=True) if None in (pair[1].size, pair[1].sha256)]
    return found


def _ask(part: CatalogPart, web: Web) -> Pinned:
    source = next((source for source in part.sources if source.kind == "hub"), None)
    if source is None:
        raise BadInput(f"{part.name}: has no hub source that could state its digest; pull it and read its manifest")
    said = hub.look(web, source_of(source))
    if said.size is None or said.sha256 is None:
        raise TransferFailed(f"{source_of(source)}: the hub states no size and digest")
    return Pinned(part.name, said.size, said.sha256)


def _agree(node: Node, part: CatalogPart, said: Pinned) -> None:
    for key, ours, theirs in (("size", part.size, said.size), ("sha256", part.sha256, said.sha256)):
        if ours is not None and ours != theirs:
            raise BadInput(node.value[key].problem(f"'{key}' is {ours}, but the hub says {theirs}"))


def _edit(node: Node, part: CatalogPart, said: Pinned, text: str) -> tuple[int, int, str]:
    """(start, end, replacement) in the file's text."""
    if isinstance(node.value, str):  # a shard that was only a name
        written = text[node.start : node.end]
        return node.start, node.end, f"{{name: {written}, size: {said.size}, sha256: {said.sha256}}}"
    new = [f"{key}: {value}" for key, value in said._asdict().items() if key != "name" and getattr(part, key) is None]
    last = node.value.get("size") or node.value["name"]
    if text[node.start] == "{":
        return last.end, last.end, "".join(f", {item}" for item in new)
    line_end = text.find("\n", last.end)
    at = line_end if line_end >= 0 else len(text)
    indent = " " * (last.key.column - 1 if last.key else 0)
    return at, at, "".join(f"\n{indent}{item}" for item in new)


def _write(path: Path, text: str, edits: list[tuple[int, int, str]], pinned: list[Pinned]) -> None:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    _check(text, path, pinned)
    try:
        replace_durably(path, text.encode())
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({why(error)})") from None


def _check(text: str, path: Path, pinned: list[Pinned]) -> None:
    """The new text must read back as the old entry with these figures."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / path.name
        trial.write_text(text, "utf-8")
        entry = load_entry(trial)
    have = {part.name: (part.size, part.sha256) for file in entry.files for part in file.parts}
    for item in pinned:
        if have[item.name] != (item.size, item.sha256):
            raise BadInput(f"{path}: could not place the figures of {item.name}; write them by hand")
