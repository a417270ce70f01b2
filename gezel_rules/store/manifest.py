"""``manifest.json``: what makes a directory a model. Written last, replaced whole; untrusted when read.

``DIRECTORY/manifest.json`` names a generation; the files lie in ``DIRECTORY/GENERATION/NAME``. An update publishes a
new generation beside the old one and then replaces the manifest: a crash leaves the one or the other.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from gezel_rules.errors import BadInput, why
from gezel_rules.plain_file import NO_LINK, read_plain
from gezel_rules.store.durable import replace_durably
from gezel_rules.store.names import MANIFEST, check_name
from gezel_rules.store.wanted import Installed, InstalledFile

FORMAT = 1
MAX_BYTES = 4 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TEXTS = ("model_id", "entry_digest", "catalog_version", "catalog_quant", "backend")


def read_manifest(store: Path, directory: str) -> Installed:
    """The model in a directory. Raises BadInput saying in one line why it is none."""
    path = store / directory / MANIFEST
    for place in (path.parent, path):
        if place.is_symlink():
            raise BadInput(f"{place}: is a symbolic link; the store only reads what is its own")
    try:
        data = json.loads(read_plain(path, MAX_BYTES, NO_LINK))
    except OSError as error:
        raise BadInput(f"{path}: {why(error)}") from None
    except (ValueError, RecursionError):
        raise BadInput(f"{path}: not a manifest (broken JSON)") from None
    try:
        return _model(store / directory, directory, data)
    except (KeyError, TypeError, ValueError, BadInput) as error:
        raise BadInput(f"{path}: not a manifest ({_reason(error)})") from None


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _model(folder: Path, directory: str, data: Any) -> Installed:
    if not isinstance(data, dict) or data.get("manifest") != FORMAT:
        raise ValueError("another format")
    generation = folder / check_name(_text(data, "generation"), "generation")
    header = data["header"]
    if not isinstance(header, dict) or not isinstance(data["files"], list) or not data["files"]:
        raise ValueError("no files or header")
    fingerprint = data["fingerprint"]
    if fingerprint is not None and not isinstance(fingerprint, str):
        raise ValueError("fingerprint")
    texts = {key: _text(data, key) for key in _TEXTS}
    files = tuple(_file(generation, item) for item in data["files"])
    if not any(file.role == "model" for file in files):
        raise ValueError("no file of a model")
    return Installed(
        **texts,
        directory=directory,
        files=files,
        fingerprint=fingerprint,
        vision=data["vision"] is True,
        header=header,
        left_out=tuple((str(name), str(reason)) for name, reason in data["left_out"]),
    )


def _text(data: dict[str, Any], key: str) -> str:
    if not isinstance(data[key], str):
        raise ValueError(f"{key} is no text")
    return str(data[key])


def _whole(data: dict[str, Any], key: str) -> int:
    if type(data[key]) is not int or not 0 <= data[key] < 1 << 63:
        raise ValueError(f"{key} is no size")
    return int(data[key])


def _file(generation: Path, data: Any) -> InstalledFile:
    if not isinstance(data, dict) or not _SHA256.fullmatch(_text(data, "sha256")):
        raise ValueError("a file without a digest")
    name = check_name(_text(data, "name"))
    return InstalledFile(
        role=_text(data, "role"),
        name=name,
        path=str(generation / name),
        size=_whole(data, "size"),
        sha256=data["sha256"],
        verified=data["verified"] is True,
        origin=_text(data, "origin"),
        mtime_ns=_whole(data, "mtime_ns"),
        inode=_whole(data, "inode"),
        commit=_text(data, "commit"),
        ctime_ns=_whole({"ctime_ns": 0, **data}, "ctime_ns"),
        links=_whole({"links": 0, **data}, "links"),
    )


def write_manifest(store: Path, model: Installed) -> None:
    """Publish: replace the manifest durably. Raises OSError; the old manifest stays then."""
    data = {
        "manifest": FORMAT,
        **{key: value for key, value in model._asdict().items() if key in _TEXTS},
        "generation": Path(model.files[0].path).parent.name,
        "fingerprint": model.fingerprint,
        "vision": model.vision,
        "header": model.header,
        "files": [{k: v for k, v in file._asdict().items() if k != "path"} for file in model.files],
        "left_out": [list(item) for item in model.left_out],
    }
    replace_durably(store / model.directory / MANIFEST, json.dumps(data, indent=1).encode())
