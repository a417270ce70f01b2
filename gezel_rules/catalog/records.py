"""What a catalog entry says, as plain records. ``place`` is always ``file:line``, for traces.

What has not been verified is absent: a size or digest that is ``None`` is taken from the hub when the file is pulled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.documents.node import Node
from gezel_rules.documents.read import Value
from gezel_rules.record import NamedTuple


class Source(NamedTuple):
    """Where one file can be had. Sources are tried in the order of the entry."""

    kind: str
    """``hub``, ``url``, ``path`` or ``package``."""
    address: str
    """``user/repo``, the URL, a local path, or a Python distribution's name."""
    place: str
    file: str = ""
    """Hub only: the file's path inside the repository."""
    revision: str = ""
    """Hub only: commit, tag or branch; empty for the repository's default."""
    parts: tuple[str, ...] = ()
    """Package only: ``module/path`` of the resources that, one behind the other, are the file."""
    unverified: bool = False
    """The name was not confirmed to exist; nobody has downloaded this file through this source yet."""


class Part(NamedTuple):
    """One file on disk: a whole model file, or one shard of it."""

    name: str
    """Name inside the model's own store directory; a plain file name."""
    sources: tuple[Source, ...]
    size: int | None = None
    """Bytes, verified."""
    sha256: str | None = None
    """Verified digest, 64 lower-case hexadecimal digits."""


class ModelFile(NamedTuple):
    """A file the engine is given; ``parts`` has one item, or all shards in order (the engine gets the first)."""

    role: str
    """``model``, ``projector``, ``vision-encoder`` or ``draft``."""
    parts: tuple[Part, ...]
    place: str

    @property
    def name(self) -> str:
        """The name of the file that the engine is given."""
        return self.parts[0].name

    @property
    def size(self) -> int | None:
        """Bytes of all parts; ``None`` when one of them is not known."""
        sizes = [part.size for part in self.parts]
        return None if None in sizes else sum(size or 0 for size in sizes)


class Resident(NamedTuple):
    """Measured memory of a loaded drafter. It holds for the very file it was measured with, and no other."""

    bytes: int
    sha256: str
    note: str
    measured: str
    """Date of the measurement, as written."""
    place: str


class Draft(NamedTuple):
    """The draft model that belongs to this one: another entry (``id``) or a file of this entry (``file``)."""

    id: str | None
    file: ModelFile | None
    backends: tuple[str, ...] | None
    """The backends it is limited to; ``None`` when it is not limited."""
    resident: Resident | None
    header: Node | None
    """The drafter's own ``header`` block, unread."""
    place: str


class Exclusion(NamedTuple):
    """A backend this model must not run on, and what a person is told about it."""

    backend: str
    reason: str
    place: str


class Tuned(NamedTuple):
    """A value the catalog recommends."""

    value: Any
    place: str


class Entry(NamedTuple):
    """One model of the catalog, in one quant."""

    id: str
    name: str
    family: str
    """What quants of the same model have in common: the nearest that fits is looked for here first."""
    summary: str
    quant: str
    license: str | None
    chat: bool | None
    """Whether the file carries a chat template; ``None`` when that is not known."""
    files: tuple[ModelFile, ...]
    draft: Draft | None
    excluded: tuple[Exclusion, ...]
    tuned: Mapping[str, Tuned]
    """Dotted keys: ``spec.type``, ``spec.n_max``, ``spec.sampling``, ``window`` (tokens), ``slots``,
    ``kv_type``, ``swa_full``, ``ubatch`` (tokens), ``threads``, ``reasoning.format``, ``reasoning.budget`` (tokens),
    ``temperature``, ``top_p``, ``top_k``, ``min_p``."""
    overlays: Mapping[str, Mapping[str, Tuned]]
    """Backend → the ``spec.*`` keys that it overrides."""
    header: Node | None
    """The ``header`` block, unread: its engine family knows what it may hold."""
    values: Value
    """The whole file as it was read, for later checks."""
    engine: str = DEFAULT_FAMILY
    """The engine family that runs it."""

    @property
    def root(self) -> Node:
        """The whole file as it is written."""
        return self.values.node

    @property
    def file(self) -> str:
        """The name people know the entry's file by."""
        return self.root.text.name

    def role(self, role: str) -> ModelFile | None:
        """The file with this role."""
        return next((file for file in self.files if file.role == role), None)

    @property
    def model(self) -> ModelFile:
        """The model file itself; every entry has one."""
        return next(file for file in self.files if file.role == "model")
