"""How a launch is supervised (the tables of ``policies/runtime/supervision.yaml``), as the supervisor works with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gezel_rules.planner.needs import Endpoint, EngineAddress, EngineLogs, KillEvidence, Records, Restarts, Step, Time
from gezel_rules.policy.model import PolicySet
from gezel_rules.record import NamedTuple
from gezel_rules.regex import Regex
from gezel_rules.runtime.figures import FigureLines, figure_lines

__all__ = ["Step", "Supervision", "argument", "supervision"]


class Supervision(NamedTuple):
    """Times in seconds, rates in bytes per second (0: the size of a model does not count); ``listening`` finds host and
    port in a log line; ``probe`` and ``answer_idle``: what one question whether it is up may take, and one line of an
    answer;
    ``short_memory``: percent of PSI's ``full avg10`` from which a SIGKILL is one for lack of memory, else it is of the
    class ``from_outside``; ``figures`` are lines in which an engine tells its own."""

    host_flag: str
    host_assumed: str
    port_flag: str
    port_assumed: int
    listening: tuple[Regex, ...]
    ready_base: float
    ready_rate: float
    probe: float
    answer_idle: float
    stop_grace: float
    answer_tokens: Mapping[str, int]
    steps: tuple[Step, ...]
    restart_pauses: tuple[float, ...]
    steady: float
    short_memory: float
    from_outside: str
    logs: EngineLogs
    records_kept: int
    incidents_kept: int
    figures: FigureLines = FigureLines()

    def ready_timeout(self, model_bytes: int) -> float:
        """Seconds a model of this size may take to load."""
        return self.ready_base + (model_bytes / self.ready_rate if self.ready_rate else 0)


def supervision(policies: PolicySet) -> Supervision:
    """The supervision of a set."""
    address = policies.row("engine_address", "argv", EngineAddress)
    times, restarts = policies.rows("supervision_times", Time), policies.row("restarts", "unexpected", Restarts)
    records = policies.rows("records", Records)
    kill = policies.row("kill_evidence", "pressure", KillEvidence)
    return Supervision(
        host_flag=address.host_flag,
        host_assumed=address.host,
        port_flag=address.port_flag,
        port_assumed=address.port,
        listening=tuple(map(Regex, policies.tables["listening_lines"])),
        ready_base=times["ready"].seconds,
        ready_rate=(times["ready"].mib_per_second or 0) * (1 << 20),
        probe=times["probe"].seconds,
        answer_idle=times["answer"].seconds,
        stop_grace=times["stop"].seconds,
        answer_tokens={name: row.tokens for name, row in policies.rows("endpoints", Endpoint).items()},
        steps=policies.listed("recovery_steps", Step),
        restart_pauses=restarts.pauses,
        steady=restarts.steady_seconds,
        short_memory=kill.percent,
        from_outside=kill.otherwise,
        logs=policies.row("engine_logs", "file", EngineLogs),
        records_kept=records["journal"].kept,
        incidents_kept=records["incidents"].kept,
        figures=figure_lines(policies),
    )


def argument(argv: Sequence[str], flag: str) -> str | None:
    """The last value of a flag in an argv, written apart or with ``=``; ``None`` when it is not there."""
    found = None
    for token, after in zip(argv, [*argv[1:], None], strict=False):
        if token == flag:
            found = after
        elif token.startswith(flag + "="):
            found = token[len(flag) + 1 :]
    return found
