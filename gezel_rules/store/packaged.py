"""Files carried by installed Python packages, found without importing a line of their code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from gezel_rules.errors import TransferFailed
from gezel_rules.store.wanted import Source


def pieces(source: Source) -> list[Path]:
    """The pieces of a package resource in order. Raises TransferFailed naming the package to install."""
    return [_piece(source, part) for part in source.parts]


def _piece(source: Source, part: str) -> Path:
    top, _, inner = part.partition("/")
    # find_spec of a top-level name looks it up; it does not run the package.
    spec = importlib.util.find_spec(top) if top.isidentifier() else None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = (Path(folder) / inner).resolve()
        if path.is_relative_to(Path(folder).resolve()) and path.is_file():
            return path
    missing = "is not installed" if spec is None else f"has no {inner}"
    raise TransferFailed(f"{source}: {top} {missing}; try: pip install {source.location}")
