"""The API key of a served engine, in a file only its owner can read, for as long as the engine runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gezel_rules.runtime import registry
from gezel_rules.runtime.launch import entry_of
from gezel_rules.runtime.order import Launched
from gezel_rules.runtime.state_files import write_text


@contextmanager
def key_file(state_dir: Path, engine: Launched, name: str) -> Iterator[Path]:
    """The file, of that name; the registry of running engines says where it is."""
    path = state_dir / registry.KEYS / f"{name}.key"
    try:
        write_text(path, engine.running.key + "\n")
        registry.enter(state_dir, entry_of(engine.running, engine.order, engine.record_file, str(path)))
        yield path
    finally:
        path.unlink(missing_ok=True)
