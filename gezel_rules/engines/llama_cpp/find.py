"""Which engine runs: a person's choice, a variable, PATH, an installed package, the embedded one; in this order."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from gezel_rules.engines.family import Program
from gezel_rules.engines.llama_cpp import binary
from gezel_rules.errors import BadInput

EMBEDDED_WORD = "embedded"
EMBEDDED_WHEEL = "xllamacpp"
EMBEDDED_MODULE = "gezel_rules.engines.llama_cpp.embedded"
EMBEDDED_POLICIES = "--policies"
VARIABLE = "GEZEL_LLAMA_SERVER"


def find_engine(
    choice: str | None,
    environ: Mapping[str, str],
    which: Callable[[str], str | None] = shutil.which,
    policies: Path | None = None,
) -> Program:
    """The engine to use. Raises BadInput when the one asked for is not there, or none is, saying what to install."""
    for text, where in ((choice, "--engine"), (environ.get(VARIABLE), VARIABLE)):
        if text:
            return _chosen(text, where, which, policies)
    if found := which(binary.BINARY):
        return _server(Path(found).resolve())
    if packaged := binary.packaged_binary():
        return _server(packaged)
    if embedded := embedded_engine(policies):
        return embedded
    raise BadInput(
        f"no engine found: pip install 'gezel-rules[embedded]' brings one, or put {binary.BINARY} on PATH"
        f" or name it with --engine or {VARIABLE}"
    )


def embedded_engine(policies: Path | None = None) -> Program | None:
    """The engine this package brings, ``None`` when its wheel is not installed. The wheel is not imported.

    ``policies``: the directory whose table of flags it goes by; ``None`` for the shipped one.
    """
    spec = binary.installed(EMBEDDED_WHEEL)
    if spec is None:
        return None
    chosen = (EMBEDDED_POLICIES, str(policies.absolute())) if policies else ()
    return Program(EMBEDDED_WORD, (sys.executable, "-P", "-m", EMBEDDED_MODULE, *chosen), _extension(spec.origin))


def _extension(origin: str | None) -> Path | None:
    """The wheel's compiled part: its identity is the engine's."""
    if origin is None:
        return None
    folder = Path(origin).parent
    found = sorted(name for name in os.listdir(folder) if name.startswith(f"{EMBEDDED_WHEEL}."))  # noqa: PTH208
    return folder / found[0] if found else Path(origin)


def _chosen(text: str, where: str, which: Callable[[str], str | None], policies: Path | None) -> Program:
    if text == EMBEDDED_WORD:
        if embedded := embedded_engine(policies):
            return embedded
        raise BadInput(f"{where}: the embedded engine needs {EMBEDDED_WHEEL}: pip install 'gezel-rules[embedded]'")
    on_path = which(text) if Path(text).name == text and not Path(text).exists() else None
    return _server(binary.named_binary(on_path or text, where))


def _server(path: Path) -> Program:
    return Program("llama-server", (str(path),), path)
