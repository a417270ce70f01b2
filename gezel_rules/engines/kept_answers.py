"""What an engine answered before, kept under the identity of its files: change one of them and nothing is believed."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gezel_rules.cache import keep
from gezel_rules.errors import BadInput
from gezel_rules.owned import read_owned
from gezel_rules.record import NamedTuple

FORMAT = 1  # another format is no answer
MAX_BYTES = 1 << 20  # of a cache file; the longest --help makes 30 KB


class Kept(NamedTuple):
    """The answers of one engine: their file (``None``: nothing is kept), and the identity it must carry to be
    believed."""

    path: Path | None
    identity: list[Any]

    def read(self) -> dict[str, Any]:
        """What is kept; empty when there is nothing, or nothing that can be believed."""
        import json

        if self.path is None or (data := read_owned(self.path, MAX_BYTES)) is None:
            return {}
        try:
            kept = json.loads(data)
        except (ValueError, RecursionError):
            return {}
        return kept if isinstance(kept, dict) and kept.get("identity") == self.identity else {}

    def write(self, answers: Mapping[str, Any]) -> None:
        """Replace what is kept, whole or not at all. A cache that cannot be written is no error."""
        import json

        if self.path is None:
            return
        keep(self.path, json.dumps({**answers, "identity": self.identity}).encode())


def kept_answers(
    command: Sequence[str],
    cache_dir: Path | None,
    environ: Mapping[str, str],
    behind: Callable[[Path, Sequence[str]], Iterable[str]],
) -> Kept:
    """Where the answers of the engine that ``command`` starts are kept. ``behind`` gives the files that are the engine
    besides the program. Raises BadInput when there is no such program."""
    program = find_program(command[0], environ)
    own = program.resolve()
    files = [str(own), *behind(own, command)]
    name = f"{program.name}-{zlib.crc32(os.fsencode(' '.join([str(program), *command[1:]]))):08x}.json"
    return Kept(cache_dir and cache_dir / "engines" / name, [FORMAT, list(command), *map(_stat, files)])


def find_program(name: str, environ: Mapping[str, str]) -> Path:
    """The program's file, looked up in PATH when it is a bare name. Raises BadInput saying what is wrong with it."""
    path = Path(name)
    if not path.parent.parts and not path.is_absolute():
        import shutil

        found = shutil.which(name, path=environ.get("PATH"))
        if found is None:
            raise _unusable(name, "no such program in PATH")
        return Path(found)
    if path.is_dir():
        raise _unusable(name, "is a directory, not a program")
    if not path.is_file():
        raise _unusable(name, "no such program")
    if not os.access(path, os.X_OK):
        raise _unusable(name, "may not be executed")
    return path


def _unusable(name: str, why: str) -> BadInput:
    from gezel_rules.facts.printable import printable  # only when there is something to complain about

    return BadInput(f"{printable(name)}: {why}")


def _stat(path: str) -> list[Any]:
    """Path, device, inode, size and mtime in nanoseconds; the path alone when there is nothing."""
    try:
        stat = os.stat(path)  # noqa: PTH116
    except OSError:
        return [path]
    return [path, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns]
