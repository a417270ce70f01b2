"""What an install is asked to bring: files by role, each with its sources in order."""

from __future__ import annotations

from gezel_rules.record import NamedTuple


class Source(NamedTuple):
    """One place a file can be had.

    ``kind`` is ``hub`` (``location`` = user/repo, ``file`` = path in it, ``revision``), ``url`` (``location`` = http(s)
    URL), ``path`` (``location`` = a local file) or ``package`` (``location`` = the distribution's name, ``parts`` =
    ``top_level_module/inner/path`` of each piece, joined in order).
    """

    kind: str
    location: str
    file: str = ""
    revision: str = "main"
    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == "hub":
            return f"hub {self.location}@{self.revision}:{self.file}"
        if self.kind == "url":
            from gezel_rules.store.web import shown

            return shown(self.location)
        return f"{self.kind} {self.location}"


class Wanted(NamedTuple):
    """One file of a model. ``name`` is its plain name in the store; ``size`` in bytes and ``sha256`` (hex) are ``None``
    when nobody has said them; ``reason`` says why it is fetched."""

    role: str
    name: str
    size: int | None
    sha256: str | None
    sources: tuple[Source, ...]
    reason: str = ""


class InstallPlan(NamedTuple):
    """Everything one model needs on this machine. ``left_out`` is (file name, reason) of what is not fetched;
    ``fingerprint`` says what the entry describes for this backend and vision choice (see ``drift``); ``entry_digest``
    stands for the whole catalog entry, metadata included (empty: not from a catalog); ``also`` are ids of other models
    this one needs here (its drafter, when that is an entry of its own)."""

    model_id: str
    directory: str
    wanted: tuple[Wanted, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    fingerprint: str = ""
    entry_digest: str = ""
    catalog_version: str = ""
    catalog_quant: str = ""
    backend: str = ""
    vision: bool = True
    also: tuple[str, ...] = ()


class Installed(NamedTuple):
    """A published model: its manifest's facts with absolute paths. ``header`` is what the model's header says
    (``arch``, ``quant``, ``context_length`` in tokens; keys missing where it says nothing); ``left_out`` as in the
    plan it was installed by."""

    model_id: str
    directory: str
    files: tuple[InstalledFile, ...]
    fingerprint: str | None
    entry_digest: str
    catalog_version: str
    catalog_quant: str
    backend: str
    vision: bool
    header: dict[str, object]
    left_out: tuple[tuple[str, str], ...] = ()

    def by_role(self, role: str) -> tuple[InstalledFile, ...]:
        """The files of a role, in plan order."""
        return tuple(file for file in self.files if file.role == role)

    @property
    def size(self) -> int:
        """Bytes of all files (a hard-linked one counts in each model)."""
        return sum(file.size for file in self.files)


class InstalledFile(NamedTuple):
    """One file on disk: size in bytes, sha256 as received, the stat it had when that digest was taken (times in
    nanoseconds; ``links``: its number of names, 0 in a record older than that).

    ``verified`` says an expected digest stood against it; ``origin`` names the source, never a secret; ``commit`` is
    the hub's revision it came from (empty when not said)."""

    role: str
    name: str
    path: str
    size: int
    sha256: str
    verified: bool
    origin: str
    mtime_ns: int
    inode: int
    commit: str = ""
    ctime_ns: int = 0
    links: int = 0
