"""What is launched, who is asked on the way, and the engine that came of it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.engines.family import Contract, Program
from gezel_rules.engines.openai_http import Address
from gezel_rules.record import NamedTuple
from gezel_rules.runtime.rules import Step, Supervision

if TYPE_CHECKING:
    from gezel_rules.logs.verdict import Verdict
    from gezel_rules.runtime.killed import Before
    from gezel_rules.runtime.supervise import Running


class Order(NamedTuple):
    """What to launch. ``contract`` says how the engine is spoken to; ``model_bytes`` scales the time-out; ``pools`` are
    the bytes to reserve per pool; ``build`` names the engine build; ``parts`` are what this launch has and recovery may
    leave out: policy's word for it (as ``catalog drafter``) → the key under which its failures are remembered;
    ``called``: key → what people call it; ``left_out``: parts that recovery has left out on the way here; ``folders``
    (setting → path) are made before each start, for the engine makes none; ``record`` is what the journal keeps: facts,
    policy digest, plan."""

    engine: Program
    contract: Contract
    argv: tuple[str, ...]
    env: Mapping[str, str]
    model: str
    model_bytes: int = 0
    pools: Mapping[str, int] = {}
    build: str = ""
    parts: Mapping[str, str] = {}
    called: Mapping[str, str] = {}
    left_out: Mapping[str, str] = {}
    folders: Mapping[str, str] = {}
    record: Mapping[str, Any] = {}


class Guide(NamedTuple):
    """Who is asked on the way. ``judge(lines, exit_status)``: the verdict on a log. ``again(step)``: the order after
    a recovery step, ``None`` when the planner has none or the step changes nothing. ``can``: what recovery could use
    besides the order's parts. ``say``: a line for the person. ``tick``: seconds waited so far. ``gpu``: the build is
    for a GPU, so that one left unused is worth a word."""

    judge: Callable[[Sequence[str], int | None], Verdict | None]
    again: Callable[[Step], Order | None] = lambda step: None
    can: frozenset[str] = frozenset()
    say: Callable[[str], None] = lambda line: None
    tick: Callable[[float], None] | None = None
    gpu: bool = False


class Peer(NamedTuple):
    """An engine to talk to, whoever started it: the model and the program's kind, how it is spoken to, its address and
    key. ``ended(seconds)``: whether it is gone for good, or goes within so many seconds."""

    model: str
    kind: str
    contract: Contract
    address: Address
    key: str
    ended: Callable[[float], bool]


class Launched:
    """An engine that is ready: the process, its order, the rules it is supervised by, the verdict on its start, and
    what must be undone at its end. ``begun``: when it was started, on the monotonic clock; ``before``: what the system
    showed of memory then."""

    __slots__ = ("before", "begun", "entry_file", "lease", "order", "record_file", "rules", "running", "verdict")

    def __init__(
        self, running: Running, order: Order, rules: Supervision, record_file: Path, entry_file: Path,
        lease: Path, before: Before,
    ) -> None:  # fmt: skip
        self.running, self.order, self.rules, self.record_file = running, order, rules, record_file
        self.entry_file, self.lease, self.before = entry_file, lease, before
        self.verdict: Verdict | None = None
        self.begun = time.monotonic()

    def ended(self, seconds: float) -> bool:
        """Whether the engine is gone, or goes within so many seconds: a connection breaks a moment before its process
        is seen to end."""
        try:
            self.running.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def peer(self) -> Peer:
        """The engine as those see it who talk to it."""
        running, order = self.running, self.order
        return Peer(order.model, order.engine.kind, running.contract, running.address, running.key, self.ended)
