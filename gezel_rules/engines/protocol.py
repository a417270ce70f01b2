"""What an engine family must be able to do: for type checkers, and for whoever writes one. Never loaded at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from gezel_rules.catalog.records import Entry
from gezel_rules.decisions.decide import Trace
from gezel_rules.documents.declare import Kind
from gezel_rules.documents.source import Node
from gezel_rules.engines.family import (
    Contract,
    FirstBytes,
    MemoryCommand,
    MemoryUse,
    OutsideSetting,
    Probe,
    Program,
    Report,
)
from gezel_rules.engines.subject import Subject
from gezel_rules.errors import Problem
from gezel_rules.facts.fact import Fact
from gezel_rules.facts.vocabulary import Word
from gezel_rules.lang.types import Function
from gezel_rules.policy.language import Needs
from gezel_rules.policy.model import PolicySet

Facts = dict[str, Fact]
Tables = Mapping[str, Any]


class ModelFile(Protocol):
    """A model as its family reads it, from its files or from the catalog; only the family looks inside."""

    @property
    def format(self) -> str:
        """The name of the file format, for people."""
        ...

    @property
    def weights_bytes(self) -> int:
        """Bytes of all weights."""
        ...


class Fit(Protocol):
    """One model on one machine: the memory arithmetic that policies ask, and what a decided launch takes."""

    def facts(self) -> Facts:
        """What the arithmetic adds to the facts, such as the bytes a launch may use."""
        ...

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The family's functions, bound to this model and machine."""
        ...

    def with_facts(self, facts: Mapping[str, Fact]) -> Fit:
        """The same under other facts."""
        ...

    def under(self, policies: PolicySet) -> Fit:
        """The same by other policies that have the same tables: what was worked out stands where they let it."""
        ...

    def measured(self, facts: Mapping[str, Fact], held: Mapping[str, int]) -> Fit:
        """The same on memory as it is now: ``held`` by other launches, by pool; never more of a device than before."""
        ...

    def degraded(self, memory: MemoryUse) -> Fit | None:
        """The same with so much less of each device that a launch that took ``memory`` would not fit; ``None`` when
        policy has no step left."""
        ...

    def lessened(self, share: float) -> Fit:
        """The same with only that share of each device counted on, as after steps down."""
        ...

    @property
    def share(self) -> float:
        """How much of each device is counted on, after the steps down."""
        ...

    def exceeded_by(self, memory: MemoryUse) -> bool:
        """Whether a launch takes more of some device than there is."""
        ...

    def memory(self, trace: Trace) -> MemoryUse:
        """What the launch takes that was decided."""
        ...

    def may_leave_out(self, trace: Trace) -> Sequence[str]:
        """Parts of the decided launch that recovery may leave out, by policy's words (``Family.leaves_out``)."""
        ...

    def might_hold(self, other: ModelFile) -> bool:
        """Whether this machine might hold another model: a quick look, before it is planned."""
        ...


class Family(Protocol):
    """One family of engines. ``variable`` is the environment variable that names its program; ``leaves_out``: parts of
    a launch that recovery may leave out, by policy's word → the fact that says the part failed with this build."""

    name: str
    label: str
    variable: str
    leaves_out: Mapping[str, str]

    @property
    def contract(self) -> Contract:
        """How its running engines are spoken to."""
        ...

    def vocabulary(self) -> Sequence[Word]:
        """Every fact its policies may read, the shared ones among them."""
        ...

    def signatures(self) -> Mapping[str, Function]:
        """The functions its policies may call."""
        ...

    def needs(self) -> Needs:
        """The decisions and tables its code reads by name."""
        ...

    def find(self, choice: str | None, environ: Mapping[str, str], policies: Path | None) -> Program:
        """The program to use. ``policies``: the directory chosen, ``None`` for the shipped one. Raises BadInput when
        the one asked for is not there, or none is, saying what to install."""
        ...

    def probe(self, probe: Probe) -> Facts:
        """``engine.*``, ``devices`` and ``host.unified``, as far as the program says them. Raises BadInput for a
        program that is no engine of this family, EngineFailed for one that does not answer."""
        ...

    def outside_settings(self, probe: Probe) -> list[OutsideSetting]:
        """What would steer the program behind our back, lowest precedence first."""
        ...

    def recognises(self, path: Path) -> bool:
        """Whether a file or folder looks like a model of this family; it is not read far."""
        ...

    def read_model(self, path: str, cache: Path | None) -> ModelFile:
        """A model on disk. Raises BadInput when it cannot be read."""
        ...

    def read_elsewhere(self, name: str, first_bytes_of: Callable[[str], FirstBytes]) -> ModelFile:
        """A model that is not on disk, from its first bytes: ``first_bytes_of(name)(count)`` gives so many of a file's,
        and its size if that is known. Raises BadInput when it cannot be read."""
        ...

    def described_model(self, entry: Entry) -> ModelFile | None:
        """The model as the catalog describes it before it is fetched; ``None`` when it does not."""
        ...

    def described_drafter(self, entry: Entry) -> ModelFile | None:
        """The entry's drafter as the catalog describes it."""
        ...

    def description(self) -> Kind:
        """What an entry's ``header`` block may hold."""
        ...

    def describe_file(self, path: str, origin: str) -> Node:
        """The ``header`` block of a model on disk, parsed from the text that an entry has (``text.text``, with its
        key); ``origin`` says where it was read. Raises BadInput when the file cannot be read, or when what it says
        contradicts the rest of it."""
        ...

    def describe(self, model: ModelFile, origin: str) -> str:
        """A model as the text of a ``header`` block with its key, short enough to be kept; ``origin`` says where it was
        read."""
        ...

    def described(self, text: str, name: str) -> ModelFile:
        """The model of such a text, which ``name`` is the name of. Raises BadInput with what is wrong with it."""
        ...

    def check_description(self, node: Node, problems: list[Problem]) -> None:
        """Add what is wrong with an entry's ``header`` block."""
        ...

    def model_facts(
        self, subject: Subject, settings: Mapping[str, Fact], policies: PolicySet, cache: Path | None
    ) -> Facts:
        """What the model's files say, its drafter's too."""
        ...

    def fit(
        self,
        subject: Subject,
        policies: PolicySet,
        facts: Mapping[str, Fact],
        held: Mapping[str, int],
        cache: Path | None,
    ) -> Fit:
        """The model on the machine of ``facts``. ``held``: bytes that other launches have reserved, by pool."""
        ...

    def summary_of_model(self, path: str) -> dict[str, object]:
        """What a manifest records of a model: ``arch``, ``quant``, ``context_length`` (tokens), where it says them.
        Raises BadInput when it cannot be read."""
        ...

    def inspect(self, path: str, tables: Tables) -> Report:
        """What a model on disk says about itself. Raises BadInput."""
        ...

    @property
    def memory(self) -> MemoryCommand:
        """Its part of ``gezel-rules memory``. Raises BadInput where memory is not told from files."""
        ...
