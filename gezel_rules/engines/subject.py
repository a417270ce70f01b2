"""What is to be launched, as families and planner share it: the model, its files, and what belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.catalog.records import Entry
    from gezel_rules.engines.protocol import Family, ModelFile


class Companion(NamedTuple):
    """A drafter or projector that belongs to the model: where it is or will be, whether an install brings or has
    brought it, its bytes on the GPU when loaded (``None``: nobody knows), where that figure is from, whether it was
    measured in a running engine, its context included, and what tells its file from others of the same name."""

    name: str
    path: str
    here: bool
    resident_bytes: int | None
    source: str
    model: ModelFile | None = None
    measured: bool = False
    identity: str = ""


class Subject(NamedTuple):
    """The model of a plan. ``installed``: its files are in the store, or it is a file by itself; ``source`` says what
    ``model`` rests on."""

    id: str
    family: Family
    entry: Entry | None
    model: ModelFile
    source: str
    model_path: str
    installed: bool
    draft: Companion | None
    projector: Companion | None
