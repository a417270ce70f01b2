"""The journal: one record per launch, with what was known, what was decided and what the engine then did.

A record has the name of its launch, as ``ps`` shows it and log and incident are called. It can be decided again later
(``replay``). It never holds a secret, and never more than ``MOST`` bytes. ``facts.recorded`` says what is in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gezel_rules.facts.secrets import blotted
from gezel_rules.runtime.state_files import each_json, read_json, write_text

FOLDER = "journal"
MODEL_PATH = "model_path"
"""What a record calls the file that its engine holds."""
MOST = 1 << 20
"""Bytes of a record: one takes 60 KiB, the description of a large model in it 10 more."""
ESSENTIAL = ("format", "model", "family", "policy", "launch", "outcome", "figures", "death", "ended")
"""What is kept of a record that would be larger."""


def append(state_dir: Path, launch_id: str, record: Mapping[str, Any], secrets: Iterable[str] = ()) -> Path:
    """Write the record of a launch that begins; secrets in it are blotted out. Returns its file."""
    path = state_dir / FOLDER / f"{launch_id}.json"
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
    plain = blotted(record, tuple(secrets))
    text = _text(plain)
    if len(text) > MOST:
        text = _text({key: plain[key] for key in ESSENTIAL if key in plain})
    write_text(path, text)


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, default=str) + "\n"
