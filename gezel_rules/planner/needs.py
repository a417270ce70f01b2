"""What the policies of every engine family must hold, because the core reads it by name; tested against the code."""

from __future__ import annotations

from gezel_rules.engines.pools import PoolKind
from gezel_rules.policy.backends import Backend
from gezel_rules.policy.language import Needs, TableNeed
from gezel_rules.record import NamedTuple

DECISIONS = ("prompt.endpoint", "refusal")


class EngineAddress(NamedTuple):
    """The row ``argv`` of ``engine_address``."""

    host_flag: str
    host: str
    port_flag: str
    port: int


class Time(NamedTuple):
    """A row of ``supervision_times``."""

    seconds: float
    mib_per_second: float | None


class Endpoint(NamedTuple):
    """A row of ``endpoints``."""

    tokens: int


class Step(NamedTuple):
    """A row of ``recovery_steps``: its name, what it needs, the failure classes it helps with (none: any), how often in
    one launch, and why."""

    step: str
    needs: str
    failures: tuple[str, ...]
    times: int
    because: str


class Restarts(NamedTuple):
    """The row ``unexpected`` of ``restarts``."""

    pauses: tuple[float, ...]
    steady_seconds: float


class KillEvidence(NamedTuple):
    """The row ``pressure`` of ``kill_evidence``."""

    percent: float
    otherwise: str


class EngineLogs(NamedTuple):
    """The row ``file`` of ``engine_logs``."""

    bytes: int
    kept: int
    launches: int
    line_bytes: int
    first_lines: int
    first_bytes: int
    last_lines: int
    last_bytes: int
    read_bytes: int


class Records(NamedTuple):
    """A row of ``records``."""

    kept: int


TABLES = {
    "backends": TableNeed(record=Backend),
    "endpoints": TableNeed(record=Endpoint),
    "engine_address": TableNeed(("argv",), EngineAddress),
    "engine_logs": TableNeed(("file",), EngineLogs),
    "kill_evidence": TableNeed(("pressure",), KillEvidence),
    "listening_lines": TableNeed(of="str", listed=True, groups=("host", "port")),
    "pool_kinds": TableNeed(("discrete", "integrated", "unified", "rpc", "ram"), PoolKind),
    "records": TableNeed(("journal", "incidents"), Records),
    "recovery_steps": TableNeed(record=Step, listed=True),
    "restarts": TableNeed(("unexpected",), Restarts),
    "supervision_times": TableNeed(("ready", "probe", "answer", "stop"), Time),
}

CORE = Needs(TABLES, DECISIONS)
