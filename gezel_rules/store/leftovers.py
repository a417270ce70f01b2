"""What crashes, kills and half-made changes leave in a store: found, said, and cleared where nothing can be lost."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from gezel_rules.errors import BadInput, Refused
from gezel_rules.record import NamedTuple
from gezel_rules.store.durable import discard
from gezel_rules.store.holds import in_use, unused
from gezel_rules.store.integrity import advice, fault
from gezel_rules.store.locks import locked
from gezel_rules.store.manifest import read_manifest
from gezel_rules.store.names import LOCKS, MANIFEST, READY, STAGING
from gezel_rules.store.part import not_ours
from gezel_rules.store.rejected import REJECTED, is_refused
from gezel_rules.store.shelf import directories
from gezel_rules.store.wanted import Installed

REMOVED = "removed-"


class Leftover(NamedTuple):
    """One thing that is not as it should be: where, what it is, its bytes. ``harmless``: ``repair`` may delete it;
    otherwise ``advice`` says what a person can do."""

    path: Path
    what: str
    size: int
    harmless: bool
    advice: str = ""


def leftovers(store: Path) -> list[Leftover]:
    """Everything in the store that is neither a whole model nor the store's own. Reads names and stats, no contents;
    follows no link."""
    begun = _inside(store / STAGING)
    places = [store, store / LOCKS, store / STAGING, *begun, *(folder / READY for folder in begun)]
    found = [item for place in places for item in _foreign(place)]
    found.extend(_no_folders([store / LOCKS, store / STAGING, *begun]))
    found.extend(_staged(store))
    for directory in directories(store):
        found.extend(_in_directory(store, directory))
    return found


def _inside(folder: Path) -> list[Path]:
    """What lies in a folder; nothing for what is none, or a link to one."""
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []


def _foreign(folder: Path) -> Iterator[Leftover]:
    """What the store never makes: links, pipes, devices; second names of files it would append to."""
    for path in _inside(folder):
        ours = path.is_dir() or (path.is_file() and not path.name.endswith((".part", ".part.log")))
        if (path.is_symlink() or not ours) and not path.name.startswith(REMOVED) and (wrong := not_ours(path.lstat())):
            yield Leftover(path, wrong, 0, False, "the store neither reads nor writes through it; delete it")


def _no_folders(places: Iterable[Path]) -> Iterator[Leftover]:
    for path in places:
        if path.is_file() and not path.is_symlink() and not path.name.startswith(REMOVED):
            yield Leftover(path, "a file where the store keeps a folder", size_of(path), False, "delete it")


def _staged(store: Path) -> Iterator[Leftover]:
    for path in _inside(store / STAGING):
        if path.name.startswith(REMOVED):
            yield Leftover(path, "a removed model, not yet deleted", size_of(path), True)
        elif path.is_dir() and not path.is_symlink():
            yield from _unfinished(store, path)


def _unfinished(store: Path, begun: Path) -> Iterator[Leftover]:
    """What an install that did not end well has kept: bytes to go on from, and which versions of files are wrong."""
    inside = _inside(begun)
    wrong = [path for path in inside if path.name.endswith(REJECTED) and is_refused(path)]
    for path in wrong:
        what = f"{path.name.removesuffix(REJECTED)} of {begun.name} arrived wrong twice"
        advice = "that version is not downloaded again; deleting this file forgets that"
        yield Leftover(path, what, size_of(path), False, advice)
    if len(wrong) < len(inside) or not inside:
        installed = (store / begun.name / MANIFEST).exists()
        how = "deleting this folder gives" if installed else "'rm' of the model or deleting this folder gives"
        kept = f"kept so that the next pull continues; {how} it up"
        yield Leftover(begun, f"an unfinished install of {begun.name}", size_of(begun), False, kept)


def _in_directory(store: Path, directory: str) -> Iterator[Leftover]:
    folder = store / directory
    if not (folder / MANIFEST).exists():
        if not (store / STAGING / directory).is_dir():
            unowned = not any(folder.rglob("*"))
            advice = "" if unowned else "no manifest: not a model; pull it again, or delete the folder"
            yield Leftover(folder, "a directory without a manifest", size_of(folder), unowned, advice)
        return
    try:
        model = read_manifest(store, directory)
    except BadInput as error:
        yield Leftover(folder, str(error), size_of(folder), False, "pull the model again, or delete the folder")
        return
    yield from _beside(folder, model)
    yield from _faulty(model)


def _beside(folder: Path, model: Installed) -> Iterator[Leftover]:
    home = Path(model.files[0].path).parent
    for path in _inside(folder):
        if path.name not in (MANIFEST, home.name) and not in_use(path):
            yield Leftover(path, f"left behind by an update of {model.model_id}", size_of(path), True)


def _faulty(model: Installed) -> Iterator[Leftover]:
    for file in model.files:
        if wrong := fault(file):
            yield Leftover(Path(file.path), f"{file.name} {wrong}", 0, False, advice(wrong, model.model_id))


def size_of(path: Path) -> int:
    """Bytes of the plain files in a folder; links are not followed."""
    if path.is_symlink() or path.is_file():
        return path.lstat().st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(Path(folder) / name).st_size
    return total


def repair(store: Path) -> list[Leftover]:
    """Delete what is harmless, each under its model's lock; one that is being worked on is passed over. Returns what
    went. Raises BadInput when the store cannot be written."""
    if not store.is_dir():
        return []
    gone = _discarded(store, leftovers(store))
    _drop_locks(store)
    return gone


def tidy(store: Path, directories: Iterable[str]) -> None:
    """Delete what updates left of models while they were in use; where that fails, ``repair`` has it."""
    with contextlib.suppress(BadInput, OSError):
        _discarded(store, [item for directory in directories for item in _in_directory(store, directory)])


def _discarded(store: Path, found: Iterable[Leftover]) -> list[Leftover]:
    gone: list[Leftover] = []
    for item in found:
        if not item.harmless:
            continue
        owner = item.path.relative_to(store).parts[0]
        with contextlib.suppress(Refused), locked(store, "repair" if owner == STAGING else owner, wait=0.0):
            if item in leftovers(store) and _discarded_unused(item.path):  # now that nobody else works on it
                gone.append(item)
    return gone


def _discarded_unused(path: Path) -> bool:
    with unused(path) as free:
        if free:
            discard(path)
    return free


def _drop_locks(store: Path) -> None:
    """Lock files of models that are no longer there."""
    for path in _inside(store / LOCKS):
        needed = (store / path.stem).exists() or (store / STAGING / path.stem).exists()
        if path.suffix == ".lock" and not path.is_symlink() and not needed:
            with contextlib.suppress(Refused, OSError), locked(store, path.stem, wait=0.0):
                path.unlink(missing_ok=True)
