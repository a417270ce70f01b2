"""What an engine answered before, kept under the identity of its files: change one of them and nothing is believed."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gezel_rules.cache import keep
from gezel_rules.errors import BadInput
from gezel_rules.facts.printable import printable
from gezel_rules.record import NamedTuple

FORMAT = 1  # another format is no answer
MAX_BYTES = 1 << 20  # of a cache file; the longest --help makes 30 KB

_LIBRARIES = (".so", ".dylib", ".dll")
_OWN = ("ggml", "llama", "mtmd")  # what of a folder's libraries belongs to the engine
_WHEEL = "xllamacpp"  # what the engine inside this package runs
_WHEEL_TABLE = "llama-cpp/embedded.yaml"  # and the flags it takes, of the shipped policies or of those named with
_POLICIES = "--policies"


class Kept(NamedTuple):
    """The answers of one engine: their file (``None``: nothing is kept), and the identity it must carry to be
    believed."""

    path: Path | None
    identity: list[Any]

    def read(self) -> dict[str, Any]:
        """What is kept; empty when there is nothing, or nothing that can be believed."""
        import json

        if self.path is None:
            return {}
        try:
            with self.path.open("rb") as file:
                kept = json.loads(file.read(MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        return kept if isinstance(kept, dict) and kept.get("identity") == self.identity else {}

    def write(self, answers: Mapping[str, Any]) -> None:
        """Replace what is kept, whole or not at all. A cache that cannot be written is no error."""
        import json

        if self.path is None:
            return
        keep(self.path, json.dumps({**answers, "identity": self.identity}).encode())


def kept_answers(command: Sequence[str], cache_dir: Path | None, environ: Mapping[str, str]) -> Kept:
    """Where the answers of the engine that ``command`` starts are kept. Raises BadInput when there is none."""
    program = find_program(command[0], environ)
    files = [program.resolve()]
    files += _module_files(command) if "-m" in command[:-1] else _libraries(files[0])
    name = f"{program.name}-{zlib.crc32(os.fsencode(' '.join([str(program), *command[1:]]))):08x}.json"
    return Kept(cache_dir and cache_dir / "engines" / name, [FORMAT, list(command), *map(_stat, files)])


def find_program(name: str, environ: Mapping[str, str]) -> Path:
    """The program's file, looked up in PATH when it is a bare name. Raises BadInput saying what is wrong with it."""
    path = Path(name)
    if not path.parent.parts and not path.is_absolute():
        import shutil

        found = shutil.which(name, path=environ.get("PATH"))
        if found is None:
            raise BadInput(f"{printable(name)}: no such program in PATH")
        return Path(found)
    if path.is_dir():
        raise BadInput(f"{printable(name)}: is a directory, not a program")
    if not path.is_file():
        raise BadInput(f"{printable(name)}: no such program")
    if not os.access(path, os.X_OK):
        raise BadInput(f"{printable(name)}: may not be executed")
    return path


def _libraries(program: Path) -> Iterator[Path]:
    """The engine's own libraries beside it: a llama-server built with shared libraries is a small starter that
    stays the same when everything behind it is built anew."""
    folders = [program.parent]
    if program.parent.name == "bin":
        folders.append(program.parent.with_name("lib"))
    for folder in folders:
        for name in sorted(_names(folder)):
            if name.removeprefix("lib").startswith(_OWN) and any(suffix in name for suffix in _LIBRARIES):
                yield folder / name


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except OSError:
        return []


def _module_files(command: Sequence[str]) -> Iterator[Path]:
    """The files behind ``python -m MODULE``: its package, the wheel it drives, the table of its flags."""
    from importlib.util import find_spec

    from gezel_rules.places import policies_dir

    own = command.index(_POLICIES) + 1 if _POLICIES in command[:-1] else None
    for name in (command[command.index("-m") + 1], _WHEEL):
        spec = find_spec(name)
        if spec and spec.origin:
            folder = Path(spec.origin).parent
            yield from (folder / name for name in sorted(_names(folder)))
    yield (policies_dir() if own is None else Path(command[own])) / _WHEEL_TABLE


def _stat(path: Path) -> list[Any]:
    """Path, device, inode, size and mtime in nanoseconds; the path alone when there is nothing."""
    try:
        stat = path.stat()
    except OSError:
        return [str(path)]
    return [str(path), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns]
