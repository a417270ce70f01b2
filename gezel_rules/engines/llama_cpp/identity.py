"""Which files make up an engine: when one of them changes, what the engine said before is asked anew."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gezel_rules.engines.llama_cpp.binary import installed
from gezel_rules.engines.llama_cpp.find import EMBEDDED_POLICIES

_LIBRARIES = (".so", ".dylib", ".dll")
_OWN = ("ggml", "llama", "mtmd")  # what of a folder's libraries belongs to the engine
_WHEEL = "xllamacpp"  # what the engine inside this package runs
_WHEEL_TABLE = "llama-cpp/embedded.yaml"  # and the flags it takes, of the shipped policies or of those it is told


def files_behind(program: Path, command: Sequence[str]) -> Iterable[str]:
    """The files besides the program itself: its libraries, or what the engine in this package loads. As text: there are
    dozens, on every start."""
    return _embedded_files(command) if "-m" in command[:-1] else _libraries(program)


def _libraries(program: Path) -> Iterator[str]:
    """The engine's own libraries beside it: a llama-server built with shared libraries is a small starter that
    stays the same when everything behind it is built anew."""
    folders = [program.parent]
    if program.parent.name == "bin":
        folders.append(program.parent.with_name("lib"))
    for folder in folders:
        for name in sorted(_names(folder)):
            if name.removeprefix("lib").startswith(_OWN) and any(suffix in name for suffix in _LIBRARIES):
                yield os.path.join(folder, name)  # noqa: PTH118


def _names(folder: str | Path) -> list[str]:
    """Files only: what Python compiles beside them comes and goes."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_file()]
    except OSError:
        return []


def _embedded_files(command: Sequence[str]) -> Iterator[str]:
    """The files behind the engine inside this package: those here, the wheel it drives, the table of its flags."""
    from gezel_rules.places import layer_files, policies_dir

    wheel = installed(_WHEEL)
    for file in (__file__, wheel and wheel.origin):
        if file:
            folder = os.path.dirname(file)  # noqa: PTH120
            yield from (os.path.join(folder, name) for name in sorted(_names(folder)))  # noqa: PTH118
    told = EMBEDDED_POLICIES in command[:-1]
    policies = Path(command[command.index(EMBEDDED_POLICIES) + 1]) if told else policies_dir()
    yield str(policies / _WHEEL_TABLE)
    yield from map(str, layer_files(os.environ))
