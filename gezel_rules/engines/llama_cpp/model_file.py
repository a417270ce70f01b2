"""A GGUF model on disk, its header kept with the other answers."""

from __future__ import annotations

from pathlib import Path

from gezel_rules.gguf import Header, read_header


def read_model(path: str, cache: Path | None, *, check_size: bool = True) -> Header:
    """The header; kept in ``headers`` below the directory of caches (``None``: not at all). ``check_size``: whether all
    the weights must be there. Raises BadInput when it cannot be read."""
    return read_header(path, check_size=check_size, cache_dir=cache / "headers" if cache else None)
