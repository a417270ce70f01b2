"""The files of the store that a launch uses: known by its argv, and held against their records before it starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from gezel_rules.errors import BadInput, Refused
from gezel_rules.store.integrity import CHANGED, advice, examine, fault, in_place
from gezel_rules.store.manifest import read_manifest
from gezel_rules.store.shelf import record
from gezel_rules.store.wanted import InstalledFile


def used_by(argv: Iterable[str], store: Path) -> tuple[InstalledFile, ...]:
    """What the store recorded of the files that an argv names, and of the others of their role (a model's shards)."""
    if not store.is_dir():
        return ()
    named = {inner for word in argv if os.sep in word for inner in _in_store(word, store)}
    directories = {inner.partition(os.sep)[0] for inner in named}
    return tuple(file for directory in sorted(directories) for file in _of_model(store, directory, named))


def _in_store(path: str, store: Path) -> Iterator[str]:
    """The path within the store, as it is written and as its links lead; nothing when it lies elsewhere."""
    for spelt in (os.path.abspath, os.path.realpath):
        home = spelt(store) + os.sep
        if (full := spelt(path)).startswith(home):
            yield full[len(home) :]


def _of_model(store: Path, directory: str, named: Collection[str]) -> list[InstalledFile]:
    try:
        files = read_manifest(store, directory).files
    except BadInput:
        return []
    roles = {file.role for file in files if os.path.relpath(file.path, store) in named}
    return [file for file in files if file.role in roles]


def generations(files: Iterable[InstalledFile]) -> frozenset[Path]:
    """The folders that files of the store lie in."""
    return frozenset(Path(file.path).parent for file in files)


def confirmed(store: Path, files: Sequence[InstalledFile], say: Callable[[str], None]) -> tuple[InstalledFile, ...]:
    """The files as they are recorded: by their stat, else hashed, and recorded anew where the digest holds. Raises
    Refused, naming the first that is not what was installed."""
    checked = tuple(_confirmed(store, file, say) for file in files)
    if renewed := [file for file, before in zip(checked, files, strict=True) if file != before]:
        record(store, renewed)
    return checked


def _confirmed(store: Path, file: InstalledFile, say: Callable[[str], None]) -> InstalledFile:
    wrong = fault(file)
    if wrong == CHANGED:
        say(f"{file.path}: {CHANGED}; hashing it again")
        hashed = examine(file)
        file, wrong = hashed.file, hashed.problem
    if wrong:
        raise Refused(f"{file.path}: {wrong}; {advice(wrong, _model_id(store, file))}")
    return in_place(file, os.lstat(file.path))  # a copy of it, or its other names, are what counts from now on


def _model_id(store: Path, file: InstalledFile) -> str:
    directory = Path(file.path).parents[1].name
    try:
        return read_manifest(store, directory).model_id
    except BadInput:
        return directory
