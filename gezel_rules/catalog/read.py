"""From ``models/<id>.yaml`` to an ``Entry``, with every problem at its place and all of them at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gezel_rules.catalog import names
from gezel_rules.catalog.files import read_files
from gezel_rules.catalog.records import Draft, Entry, Exclusion, ModelFile, Resident
from gezel_rules.catalog.sources import place
from gezel_rules.catalog.tuning import read_tuning
from gezel_rules.documents.kept import load_kept
from gezel_rules.documents.shape import FLAG, INTEGER, LIST, MAP, TEXT, fields, items
from gezel_rules.documents.source import Node
from gezel_rules.errors import BadInput, Problem
from gezel_rules.places import shown

_REQUIRED = {"id": TEXT, "name": TEXT, "family": TEXT, "summary": TEXT, "quant": TEXT, "files": LIST}
_OPTIONAL = {
    "engine": TEXT,
    "license": TEXT,
    "chat": FLAG,
    "draft": MAP,
    "excluded": LIST,
    "tuning": MAP,
    "header": MAP,
}
_QUANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_WORDS = ("id", "name", "family", "summary", "quant", "license", "chat")


def load_entry(path: Path, cache: Path | None = None) -> Entry:
    """Read one entry. Raises BadInput listing everything wrong with the file, in file order.

    The tensors of ``header`` are not read here: most uses of an entry do not need them (see ``header_of``).
    """
    root = load_kept(path, shown(path), cache)
    problems: list[Problem] = []
    entry = _entry(root, path, problems)
    if entry is None or problems:
        raise BadInput(sorted(problems, key=lambda problem: problem.span or ()))
    return entry


def _entry(root: Node, path: Path, problems: list[Problem]) -> Entry | None:
    got = fields(root, "a catalog entry", problems, _REQUIRED, _OPTIONAL)
    _check_words(got, path, problems)
    files = read_files(got["files"], problems) if "files" in got else ()
    draft = _draft(got["draft"], files, problems) if "draft" in got else _own_draft(files)
    excluded = [_exclusion(item, problems) for item in _mappings(got.get("excluded"), problems)]
    tuned, overlays = read_tuning(got["tuning"], problems) if "tuning" in got else ({}, {})
    if problems:
        return None
    said: dict[str, Any] = {key: got[key].value if key in got else None for key in _WORDS}
    kept = tuple(item for item in excluded if item is not None)
    engine = {"engine": got["engine"].value} if "engine" in got else {}
    return Entry(**said, **engine, files=files, draft=draft, excluded=kept, tuned=tuned, overlays=overlays,
                 header=got.get("header"), root=root)  # fmt: skip


def _check_words(got: dict[str, Node], path: Path, problems: list[Problem]) -> None:
    if "quant" in got and not _QUANT.fullmatch(got["quant"].value):
        problems.append(got["quant"].problem("'quant' must be a tag such as Q4_K_M"))
    if (node := got.get("id")) is None:
        return
    if fault := names.id_fault(node.value):
        problems.append(node.problem(f"'id' {fault}"))
    elif node.value != path.stem:
        problems.append(node.problem(f"'id' is {node.value!a}, but the file is named '{path.name}'"))


def _mappings(node: Node | None, problems: list[Problem]) -> list[Node]:
    return items(node, "'excluded'", MAP, problems) if node else []


def _own_draft(files: tuple[ModelFile, ...]) -> Draft | None:
    """A draft file that nothing more is said about applies to every backend."""
    file = next((file for file in files if file.role == "draft"), None)
    return Draft(None, file, None, None, None, file.place) if file else None


def _draft(node: Node, files: tuple[ModelFile, ...], problems: list[Problem]) -> Draft:
    kinds = {"id": TEXT, "file": TEXT, "backends": LIST, "resident": MAP, "header": MAP}
    got = fields(node, "'draft'", problems, {}, kinds)
    own = next((file for file in files if file.role == "draft"), None)
    _check_draft(node, got, own, problems)
    return Draft(
        got["id"].value if "id" in got else None,
        own,
        _backends(got["backends"], problems) if "backends" in got else None,
        _resident(got["resident"], problems) if "resident" in got else None,
        got.get("header"),
        place(node),
    )


def _check_draft(node: Node, got: dict[str, Node], own: ModelFile | None, problems: list[Problem]) -> None:
    """Either another entry drafts, or the one file here that has the role."""
    if ("id" in got) == ("file" in got):
        problems.append(node.problem("'draft' needs either 'id' (another entry) or 'file' (a file of role draft)", 1))
    if "id" in got and (fault := names.id_fault(got["id"].value)):
        problems.append(got["id"].problem(f"'id' {fault}"))
    if "id" in got and own is not None:
        problems.append(got["id"].problem(f"'id' names another entry, but '{own.name}' here has the role draft"))
    if "file" in got and (own is None or own.name != got["file"].value):
        problems.append(got["file"].problem(f"'files' has no {got['file'].value!a} of role draft"))


def _backends(node: Node, problems: list[Problem]) -> tuple[str, ...]:
    if not node.value:
        problems.append(node.problem("'backends' must name at least one; leave it out for no limit"))
    return tuple(item.value for item in items(node, "'backends'", TEXT, problems))


def _resident(node: Node, problems: list[Problem]) -> Resident | None:
    got = fields(node, "'resident'", problems, {"bytes": INTEGER, "sha256": TEXT, "evidence": MAP})
    evidence = {"note": TEXT, "measured": TEXT}
    said = fields(got["evidence"], "'evidence'", problems, evidence) if "evidence" in got else {}
    if "bytes" in got and got["bytes"].value <= 0:
        problems.append(got["bytes"].problem("'bytes' must be more than 0"))
    if "sha256" in got and (fault := names.digest_fault(got["sha256"].value)):
        problems.append(got["sha256"].problem(f"'sha256' {fault}"))
    if len(got) < 3 or len(said) < 2:
        return None
    digest = got["sha256"].value.lower()
    return Resident(got["bytes"].value, digest, said["note"].value, said["measured"].value, place(node))


def _exclusion(node: Node, problems: list[Problem]) -> Exclusion | None:
    got = fields(node, "an exclusion", problems, {"backend": TEXT, "reason": TEXT})
    return Exclusion(got["backend"].value, got["reason"].value, place(node)) if len(got) == 2 else None
