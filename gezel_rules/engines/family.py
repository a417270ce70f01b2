"""What engine families and everybody else hand each other: programs, probes, memory, how an engine is spoken to.

``protocol`` says what a family must be able to do; ``registry`` knows which families there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from gezel_rules.engines.openai_http import Address, Call, Piece
    from gezel_rules.facts.fact import Fact
    from gezel_rules.policy.model import PolicySet

DRAFTER, DEGRADATION = "catalog drafter", "degradation"
"""What a recovery step may need that every family knows: the catalog's drafter to leave out, less of each device to
use. Other parts are the family's own words (``Family.leaves_out``)."""


FirstBytes = Callable[[int], "tuple[bytes, int | None]"]
"""Given a count: that many bytes from the start of a file (fewer only at its end), and its size if known."""


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


class SummaryRow(NamedTuple):
    """A row of ``launch_summary``, a table that a family may have: the ``flag`` that sets a figure of the launch, what
    holds ``otherwise``, and whether it names a ``file``."""

    flag: str
    otherwise: Any
    file: bool


class NearestStep(NamedTuple):
    """A row of ``nearest_steps``, a table that a family may have: a ``setting`` and the ``value`` it is tried with."""

    setting: str
    value: Any


class CompanionName(NamedTuple):
    """A row of ``companion_names``, a table that a family may have: files of a repository that belong beside a model,
    by what ``matches`` their names or the name of a ``folder`` above them. ``says``: what people call one; ``setting``:
    what takes one; ``role``: what a pull brings one along as, the first of ``formats`` that its name has."""

    says: str
    matches: str
    folder: str | None
    setting: str | None
    role: str | None
    formats: tuple[str, ...] | None


class BufferPool(NamedTuple):
    """A row of ``buffer_pools``, a table that a family may have: the ``pool`` of a plan for buffers whose names it
    ``matches``; ``None``: the part of the name in brackets."""

    matches: str
    pool: str | None


class Report(NamedTuple):
    """Something to be told: as plain JSON, and as lines for people, which are made when they are wanted."""

    data: Mapping[str, Any]
    lines: Iterable[str]


class MemoryCommand(NamedTuple):
    """What ``gezel-rules memory`` does for a family: ``add_arguments`` adds the flags that move memory, ``report``
    tells the memory of the launch they describe: of the model on disk that ``file`` names, or of ``model`` where that
    was read already (``None``: it was not). It takes the arguments, the family's policies and the directory of caches,
    and raises BadInput."""

    add_arguments: Callable[[ArgumentParser], None]
    report: Callable[[Namespace, PolicySet, Path | None], Report]


class Contract(NamedTuple):
    """How a running engine is spoken to.

    ``key_variable``: where it reads its API key; ``key_tail``: what a key of ours ends with; ``ready``: whether the
    engine at an address answers, and asks for this key, each question within so many seconds; ``requests``: kind of
    request → how it is made.
    """

    key_variable: str
    key_tail: str
    ready: Callable[[Address, str, float], bool]
    requests: Mapping[str, Callable[[Call], Iterator[Piece]]]
