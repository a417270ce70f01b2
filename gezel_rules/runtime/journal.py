"""The journal: one record per launch, with what was known, what was decided and what the engine then did.

A record can be decided again later (``replay``). It never holds a secret.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gezel_rules.runtime.state_files import each_json, new_id, read_json, write_text

FOLDER = "journal"
MODEL_PATH = "model_path"
"""What a record calls the file that its engine holds."""


def append(state_dir: Path, record: Mapping[str, Any], secrets: Iterable[str] = ()) -> Path:
    """Write a new record; secrets in it are blotted out. Returns its file."""
    path = state_dir / FOLDER / f"{new_id()}.json"
    _write(path, record, secrets)
    return path


def amend(path: Path, secrets: Iterable[str] = (), **more: Any) -> None:
    """Add to a record: how the launch went, how it ended. A record that was deleted meanwhile stays deleted."""
    record = read_json(path)
    if record is not None:
        _write(path, {**record, **more}, secrets)


def records(state_dir: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """All readable records, oldest first."""
    return each_json(state_dir / FOLDER)


def _write(path: Path, record: Mapping[str, Any], secrets: Iterable[str]) -> None:
    text = json.dumps(record, ensure_ascii=False, indent=1, default=str)
    for secret in secrets:
        if secret:
            text = text.replace(json.dumps(secret, ensure_ascii=False)[1:-1], "***")
    write_text(path, text + "\n")
