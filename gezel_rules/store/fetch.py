"""One file of an install: what is on this machine already, else its sources in order, each verified."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from gezel_rules.errors import TransferFailed
from gezel_rules.record import NamedTuple
from gezel_rules.store import adopt, hub, packaged, shelf
from gezel_rules.store.integrity import CHANGED, examine, in_place, unchanged, with_stat
from gezel_rules.store.names import READY
from gezel_rules.store.part import Part, logged_digest
from gezel_rules.store.progress import Limit, Progress
from gezel_rules.store.transfer import Asked, Received, Transfer
from gezel_rules.store.troubles import Contradicted, DiskFull, Garbled, Mismatch
from gezel_rules.store.wanted import Installed, InstalledFile, Source, Wanted
from gezel_rules.store.web import Remote, Web, check_url


class Known(NamedTuple):
    """A wanted file with what could be learnt about it: bytes, sha256, the hub's commit."""

    wanted: Wanted
    size: int | None
    sha256: str | None
    commit: str = ""

    @property
    def asked(self) -> Asked:
        """The same for a transfer."""
        return Asked(self.wanted.name, self.size, self.sha256)


class Bench(NamedTuple):
    """Where an install works: the store, its staging folder, and how it reports and moves bytes."""

    store: Path
    staging: Path
    directory: str
    web: Web
    progress: Progress
    limit: Limit

    @property
    def ready(self) -> Path:
        """Verified files waiting to be published together."""
        return self.staging / READY

    def part(self, name: str) -> Path:
        """The unfinished file of a name."""
        return self.staging / f"{name}.part"


def learn(wanted: Wanted, bench: Bench) -> Known:
    """Ask the hub for what the plan does not say; unknown stays unknown when it cannot be asked."""
    source = next((source for source in wanted.sources if source.kind == "hub"), None)
    if source is None or wanted.sha256 is not None:
        return Known(wanted, wanted.size, wanted.sha256)
    try:
        said = hub.look(bench.web, source)
    except TransferFailed as error:
        bench.progress.note(f"{wanted.name}: {error}; going on without the hub's digest")
        return Known(wanted, wanted.size, None)
    return Known(wanted, said.size if wanted.size is None else wanted.size, said.sha256, said.commit)


def kept(wanted: Wanted, current: Installed | None, bench: Bench, sha256: str | None = None) -> InstalledFile | None:
    """The installed file if it is this one: recorded digest and unchanged stat; a changed stat is hashed again."""
    old = next((file for file in current.files if file.name == wanted.name), None) if current else None
    if old is None:
        return None
    digest = wanted.sha256 or sha256
    same = old.sha256 == digest if digest else old.origin in [str(source) for source in wanted.sources]
    return _still(old, bench) if same and wanted.size in (None, old.size) else None


def _still(file: InstalledFile, bench: Bench) -> InstalledFile | None:
    if unchanged(file):
        return file
    path = Path(file.path)
    if path.is_symlink() or not path.is_file() or path.stat().st_size != file.size:
        return None
    bench.progress.note(f"{file.name}: {CHANGED}; hashing it again")
    hashed = examine(file)
    return None if hashed.problem else hashed.file


def bring(known: Known, bench: Bench) -> InstalledFile:
    """The file in ``bench.ready``, verified. Raises TransferFailed with every source's reason (Contradicted when one
    of them has something else than was asked for), DiskFull, BadInput."""
    reasons: list[str] = []
    told = 0
    kind: type[TransferFailed] = TransferFailed
    for found in _places(known, bench):
        if len(reasons) > told:  # why another place is asked; the last reason is the error's
            bench.progress.note(f"{known.wanted.name}: {reasons[-1]}")
            told = len(reasons)
        try:
            if file := found():
                return file
        except DiskFull:
            raise
        except (TransferFailed, OSError) as error:
            reasons.append(str(error))
            kind = Contradicted if isinstance(error, Contradicted) and not isinstance(error, Garbled) else kind
        finally:
            bench.progress.end(known.wanted.name)
    tried = "; ".join(reasons) or "it has no sources"
    raise kind(tried if len(reasons) == 1 else f"{known.wanted.name}: no source could give it: {tried}")


def _places(known: Known, bench: Bench) -> Iterator[Callable[[], InstalledFile | None]]:
    """In order of cost: left by an interrupted install, another model's, the hub client's cache, the sources."""
    yield lambda: _loose(known, bench)
    yield lambda: _sibling(known, bench)
    yield lambda: _from_cache(known, bench)
    for source in known.wanted.sources:
        yield lambda source=source: _from_source(known, source, bench)  # type: ignore[misc]


def _recorded(known: Known, bench: Bench, received: Received, origin: str, commit: str = "") -> InstalledFile:
    """The record of a file that now lies in ``ready``."""
    path = bench.ready / known.wanted.name
    stat = os.lstat(path)
    verified = bool(known.sha256 or received.stated)
    wanted, size, digest = known.wanted, stat.st_size, received.sha256
    file = InstalledFile(wanted.role, wanted.name, str(path), size, digest, verified, origin, 0, 0, commit)
    return with_stat(file, stat)


def room(known: Known, bench: Bench) -> int:
    """Bytes of disk that bringing the file will take; 0 when its size is unknown, or where a link will do."""
    if any(path.stat().st_dev == bench.store.stat().st_dev for path in _linkable(known, bench)):
        return 0
    begun = (bench.part(known.wanted.name), bench.ready / known.wanted.name)
    return max(0, (known.size or 0) - max((path.lstat().st_size for path in begun if path.exists()), default=0))


def _linkable(known: Known, bench: Bench) -> Iterator[Path]:
    """Files on this machine that should be this one: named by a source, in the hub cache, another model's."""
    for source in known.wanted.sources:
        if source.kind == "path" and (path := Path(source.location).expanduser()).is_file():
            yield path
        elif source.kind == "hub" and known.sha256 and (cached := hub.cached(source, known.sha256, known.commit)):
            yield cached
    for file in _siblings(known, bench):
        if unchanged(file):
            yield Path(file.path)


def _loose(known: Known, bench: Bench) -> InstalledFile | None:
    """Whole files that an interrupted install left: in ``ready``, or in a generation no manifest names."""
    name = known.wanted.name
    log, origin = logged_digest(bench.part(name))
    expected = known.sha256 or log
    folders = [bench.ready, *_folders(bench.store / bench.directory)]
    for path in (folder / name for folder in folders):
        if not expected or path.is_symlink() or not path.is_file() or known.size not in (None, path.stat().st_size):
            continue
        digest, stat = adopt.hash_file(path)
        if digest == expected and (path.parent == bench.ready or adopt.link(path, bench.ready / name)):
            return _recorded(known, bench, Received(digest, stat.st_size), origin or "left by an interrupted install")
    return None


def _folders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()] if folder.is_dir() else []


def _sibling(known: Known, bench: Bench) -> InstalledFile | None:
    """Another model's file of the same name, digest and size, by hard link; a volume that cannot link downloads."""
    for file in _siblings(known, bench):
        if _still(file, bench) and adopt.link(Path(file.path), bench.ready / file.name):
            shelf.record(bench.store, [in_place(file, os.lstat(file.path))])  # that it has another name is no change
            received = Received(file.sha256, file.size)
            return _recorded(known, bench, received, file.origin, file.commit)
    return None


def _siblings(known: Known, bench: Bench) -> Iterator[InstalledFile]:
    """What other models recorded under the same name with the same digest and size."""
    for model in shelf.installed(bench.store, lambda _: None) if known.sha256 else ():
        for file in model.files if model.directory != bench.directory else ():
            if (file.name, file.sha256) == (known.wanted.name, known.sha256) and known.size in (None, file.size):
                yield file


def _from_cache(known: Known, bench: Bench) -> InstalledFile | None:
    """The hub client's own cache, only if a digest can prove it."""
    for source in known.wanted.sources:
        if source.kind == "hub" and known.sha256 and (path := hub.cached(source, known.sha256, known.commit)):
            bench.progress.note(f"{known.wanted.name}: found in the hub cache")
            return _local(known, [path], source, bench)
    return None


def _local(known: Known, pieces: list[Path], source: Source, bench: Bench) -> InstalledFile:
    name = known.wanted.name
    target = bench.ready / name
    if len(pieces) == 1 and (received := adopt.adopt(pieces[0], target, known.asked, bench.progress)):
        return _recorded(known, bench, received, str(source), known.commit)
    with Opened(bench, name) as part:
        received = adopt.copy(pieces, str(source), part, known.asked, bench.progress, bench.limit)
    bench.part(name).replace(target)
    return _recorded(known, bench, received, str(source), known.commit)


def _from_source(known: Known, source: Source, bench: Bench) -> InstalledFile:
    if source.kind == "package":
        return _local(known, packaged.pieces(source), source, bench)
    if source.kind == "path":
        return _local(known, [Path(source.location).expanduser()], source, bench)
    if source.kind == "hub":
        return _download(known, hub.remote_for(source, known.commit), source, bench)
    return _download(known, Remote(check_url(source.location), str(source)), source, bench)


def _download(known: Known, remote: Remote, source: Source, bench: Bench) -> InstalledFile:
    with Opened(bench, known.wanted.name) as part:
        transfer = Transfer(bench.web, remote, part, known.asked, bench.progress, bench.limit)
        try:
            received = transfer.run()
        except Mismatch as error:
            if not error.retry:
                raise
            bench.progress.note(f"{error}; once more from the start")
            received = transfer.run()
    bench.part(known.wanted.name).replace(bench.ready / known.wanted.name)
    return _recorded(known, bench, received, str(source), received.commit or known.commit)


class Opened:
    """A part for the length of a ``with``."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.part = Part(bench.part(name))
        self.moved = lambda at: bench.progress.move(name, at)

    def __enter__(self) -> Part:
        self.part.open(self.moved)
        return self.part

    def __exit__(self, *_: object) -> None:
        self.part.close()
