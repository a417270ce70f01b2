"""What an engine family is: the one place where a program that runs models is told from another.

The planner, the runtime and the commands know these names and no family; ``registry`` knows which families there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from gezel_rules.catalog.records import Entry
    from gezel_rules.decisions.decide import Trace
    from gezel_rules.documents.declare import Kind
    from gezel_rules.documents.source import Node
    from gezel_rules.engines.openai_http import Address, Call, Piece
    from gezel_rules.engines.subject import Subject
    from gezel_rules.errors import Problem
    from gezel_rules.facts.fact import Fact
    from gezel_rules.facts.vocabulary import Word
    from gezel_rules.lang.types import Function
    from gezel_rules.policy.model import PolicySet
    from gezel_rules.policy.needs import Needs

    Facts = dict[str, Fact]
    Tables = Mapping[str, Any]


class Program(NamedTuple):
    """An engine that can be started: ``kind`` is its family's word for it, ``command`` stands before the flags,
    ``path`` is the file whose identity stands for the build (``None``: nobody knows)."""

    kind: str
    command: tuple[str, ...]
    path: Path | None


class Probe(NamedTuple):
    """A program to be asked about itself and its devices, in the environment a launch would get. ``settings``: what
    the operator set; ``fresh``: ask anew, whatever was kept under ``cache``."""

    program: Program
    policies: PolicySet
    environ: Mapping[str, str]
    cache: Path | None
    settings: Mapping[str, Fact] = {}
    fresh: bool = False


class OutsideSetting(NamedTuple):
    """One thing set outside our plans, in a variable or a file that the engine reads itself: the ``option`` it sets and
    all its ``names`` (empty when the engine has no such option), the ``value`` (hidden for secrets), the ``source``;
    ``stands`` while nothing outside beats it, else ``why`` says what becomes of it. A flag of the plan with one of the
    ``names`` beats it in any case."""

    option: str
    value: str
    source: str
    names: tuple[str, ...]
    stands: bool
    why: str = ""


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


class PoolUse(NamedTuple):
    """What a launch takes of one pool of memory: bytes by what they are for; ``usable`` bytes (``None``: unknown)."""

    name: str
    usable: int | None
    parts: Mapping[str, int]

    @property
    def used(self) -> int:
        """All parts, in bytes."""
        return sum(self.parts.values())


class MemoryUse(NamedTuple):
    """The memory of one launch: every pool of the machine, devices first; what is missing, in bytes; and the family's
    own account of it, as JSON."""

    pools: tuple[PoolUse, ...]
    shortfall_bytes: int
    account: Mapping[str, Any]


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

    def degraded(self) -> Fit | None:
        """The same with one step less of each device; ``None`` when policy has no step left."""
        ...

    @property
    def share(self) -> float:
        """How much of each device is counted on, after so many steps down."""
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


class Report(NamedTuple):
    """Something to be told: as plain JSON, and as lines for people."""

    data: Mapping[str, Any]
    lines: Sequence[str]


class MemoryCommand(NamedTuple):
    """What ``gezel-rules memory`` does for a family: ``add_arguments`` adds the flags that move memory, ``report``
    tells the memory of the launch they describe. It takes the arguments, the family's policies and the directory of
    caches, and raises BadInput."""

    add_arguments: Callable[[ArgumentParser], None]
    report: Callable[[Namespace, PolicySet, Path | None], Report]


class Contract(NamedTuple):
    """How a running engine is spoken to.

    ``key_variable``: where it reads its API key; ``key_tail``: what a key of ours ends with; ``ready``: whether the
    engine at an address answers, and asks for this key; ``requests``: kind of request → how it is made.
    """

    key_variable: str
    key_tail: str
    ready: Callable[[Address, str], bool]
    requests: Mapping[str, Callable[[Call], Iterator[Piece]]]


class Family(Protocol):
    """One family of engines. ``variable`` is the environment variable that names its program; ``leaves_out``: parts of
    a launch that recovery may leave out, by policy's word → the fact that says the part failed with this build."""

    name: str
    label: str
    variable: str
    leaves_out: Mapping[str, str]
    contract: Contract

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

    def described_model(self, entry: Entry) -> ModelFile | None:
        """The model as the catalog describes it before it is fetched; ``None`` when it does not."""
        ...

    def described_drafter(self, entry: Entry) -> ModelFile | None:
        """The entry's drafter as the catalog describes it."""
        ...

    def description(self) -> Kind:
        """What an entry's ``header`` block may hold."""
        ...

    def check_description(self, node: Node, problems: list[Problem]) -> None:
        """Add what is wrong with an entry's ``header`` block."""
        ...

    def model_facts(self, subject: Subject, settings: Mapping[str, Fact], tables: Tables, cache: Path | None) -> Facts:
        """What the model's files say, its drafter's too."""
        ...

    def fit(self, subject: Subject, policies: PolicySet, facts: Mapping[str, Fact], held: Mapping[str, int]) -> Fit:
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
