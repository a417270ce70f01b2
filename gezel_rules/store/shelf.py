"""What stands in the store: list, remove, verify. Reading never writes; a broken directory is one warning."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gezel_rules.errors import BadInput, GezelError, Refused, why
from gezel_rules.store.integrity import HashedFile, examine
from gezel_rules.store.manifest import read_manifest, write_manifest
from gezel_rules.store.names import MANIFEST, STAGING, check_directory, directory_for
from gezel_rules.store.wanted import Installed, InstalledFile


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)


def directories(store: Path) -> Iterator[str]:
    """Names of the directories that claim to hold a model, sorted. Ours begin with a dot and are left out."""
    try:
        with os.scandir(store) as found:
            names = [item.name for item in found if item.name[:1] != "." and item.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from sorted(names)


def installed(store: Path, warn: Callable[[str], None] = _warn) -> list[Installed]:
    """Every published model. A directory that is none is skipped with one warning; one whose install never finished
    is not a model yet and is passed over (``leftovers`` knows it)."""
    models = []
    for directory in directories(store):
        try:
            models.append(read_manifest(store, directory))
        except BadInput as error:
            if (store / directory / MANIFEST).exists() or not _unfinished(store, directory):
                warn(f"skipped: {error}")
    return models


def _unfinished(store: Path, directory: str) -> bool:
    return (store / STAGING / directory).is_dir() or not any((store / directory).iterdir())


def find_installed(store: Path, model_id: str, warn: Callable[[str], None] = _warn) -> Installed | None:
    """The published model of an id; ``None`` when there is none."""
    if model_id.startswith(("http://", "https://")):
        from gezel_rules.store.web import shown

        model_id = shown(model_id)  # as it was recorded: without what a URL keeps secret
    if not (store / directory_for(model_id) / MANIFEST).exists():
        return None
    try:
        model = read_manifest(store, directory_for(model_id))
    except BadInput as error:
        warn(f"skipped: {error}")
        return None
    return model if model.model_id == model_id else None


def _required(store: Path, model_id: str) -> Installed:
    skipped: list[str] = []
    model = find_installed(store, model_id, skipped.append)
    if model is None:
        from gezel_rules.documents.source import did_you_mean

        known = [other.model_id for other in installed(store, lambda _: None)]
        hint = f"; {skipped[0]}" if skipped else did_you_mean(model_id, known)
        raise BadInput(f"'{model_id}' is not installed{hint}")
    return model


def remove(store: Path, model_id: str) -> int:
    """Delete a model, or give up an install that never finished; bytes given back (files that another model links to
    stay with it and do not count).

    The directory leaves the shelf in one rename, so a crash shows no half of it. Raises BadInput, and Refused while an
    engine runs on the model."""
    import shutil

    from gezel_rules.store.locks import locked

    begun = store / STAGING / directory_for(model_id)
    if begun.is_dir() and not find_installed(store, model_id, lambda _: None):
        return _give_up(store, begun)
    model = _required(store, model_id)
    check_directory(store, model.directory)
    with locked(store, model.directory), _unused(store / model.directory, model_id):
        freed = sum(file.size for file in model.files if _links(file.path) == 1)
        grave = store / STAGING / f"removed-{model.directory}-{os.getpid()}"
        try:
            grave.parent.mkdir(exist_ok=True)
            (store / model.directory).rename(grave)
        except OSError as error:
            raise BadInput(f"{store}: cannot be written ({why(error)})") from None
        shutil.rmtree(grave, ignore_errors=True)
        shutil.rmtree(store / STAGING / model.directory, ignore_errors=True)
    return freed


@contextlib.contextmanager
def _unused(folder: Path, model_id: str) -> Iterator[None]:
    """Nobody launches from a model for the length of the block. Raises Refused when somebody did before."""
    from gezel_rules.store.holds import unused, users

    with contextlib.ExitStack() as stack:
        for generation in sorted(folder.iterdir()):
            if not stack.enter_context(unused(generation)):
                stop = "stop it first ('gezel-rules ps' shows what runs)"
                raise Refused(f"{model_id}: in use by {users(generation)}; {stop}")
        yield


def _give_up(store: Path, begun: Path) -> int:
    import shutil

    from gezel_rules.store.leftovers import size_of
    from gezel_rules.store.locks import locked

    check_directory(store, begun.name)
    with locked(store, begun.name):
        freed = size_of(begun)
        shutil.rmtree(begun, ignore_errors=True)
    return freed


def _links(path: str) -> int:
    try:
        return os.lstat(path).st_nlink
    except OSError:
        return 0


def verify(store: Path, model_id: str, moved: Callable[[str, int, int], None] = lambda *_: None) -> list[HashedFile]:
    """Hash every file of a model; stats that changed under unchanged bytes are recorded anew. Raises BadInput.

    ``moved`` is told name, offset and size in bytes."""
    model = _required(store, model_id)
    verdicts = [examine(file, lambda at, file=file: moved(file.name, at, file.size)) for file in model.files]  # type: ignore[misc]
    if not any(verdict.problem for verdict in verdicts):
        record(store, [verdict.file for verdict in verdicts])
    return verdicts


def record(store: Path, files: Sequence[InstalledFile]) -> None:
    """Write the stats of files down whose digests hold, where a manifest names these very files; one that somebody
    else works on, or that cannot be written, stays as it is."""
    from gezel_rules.store.locks import locked

    fresh = {(file.path, file.sha256): file for file in files}
    for directory in {Path(file.path).parents[1].name for file in files}:
        with contextlib.suppress(OSError, GezelError), locked(store, directory, wait=0.0):
            model = read_manifest(store, directory)
            renewed = tuple(fresh.get((file.path, file.sha256), file) for file in model.files)
            if renewed != model.files:
                write_manifest(store, model._replace(files=renewed))
