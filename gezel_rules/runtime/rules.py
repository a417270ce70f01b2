"""The runtime's own policy (``policies/runtime/supervision.yaml``) as values the supervisor works with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gezel_rules import places
from gezel_rules.documents.source import load_yaml
from gezel_rules.errors import BadInput
from gezel_rules.record import NamedTuple

FILE = "runtime/supervision.yaml"


class Step(NamedTuple):
    """A recovery step: its name, what it needs, the failure classes it helps with (none: any), how often, and why."""

    step: str
    needs: str
    failures: frozenset[str]
    times: int
    because: str


class Supervision(NamedTuple):
    """Times in seconds, sizes in bytes, rates in bytes per second; ``listening`` finds host and port in a log line."""

    host_flag: str
    host_assumed: str
    port_flag: str
    port_assumed: int
    listening: tuple[re.Pattern[str], ...]
    ready_base: float
    ready_rate: float
    answer_idle: float
    stop_grace: float
    answer_tokens: Mapping[str, int]
    steps: tuple[Step, ...]
    restart_pauses: tuple[float, ...]
    steady: float
    log_bytes: int
    logs_kept: int
    log_launches: int
    first_lines: int
    last_lines: int

    def ready_timeout(self, model_bytes: int) -> float:
        """Seconds a model of this size may take to load."""
        return self.ready_base + model_bytes / self.ready_rate


def load_supervision(policies: Path | None = None) -> Supervision:
    """Read the policy. Raises BadInput when a table or column is missing or of the wrong kind."""
    path = (policies or places.policies_dir()) / FILE
    root = load_yaml(path, places.shown(path))
    try:
        return _read(root.plain()["tables"])
    except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
        raise BadInput(f"{places.shown(path)}: incomplete or of the wrong kind: {error}") from None


def _read(tables: Mapping[str, Any]) -> Supervision:
    address, times, logs = tables["engine_address"], tables["supervision_times"], tables["engine_logs"]
    return Supervision(
        host_flag=address["host"]["flag"],
        host_assumed=address["host"]["assumed"],
        port_flag=address["port"]["flag"],
        port_assumed=int(address["port"]["assumed"]),
        listening=tuple(re.compile(text) for text in tables["listening_lines"]),
        ready_base=float(times["ready"]["seconds"]),
        ready_rate=float(times["ready"]["mib_per_second"]) * (1 << 20),
        answer_idle=float(times["answer"]["seconds"]),
        stop_grace=float(times["stop"]["seconds"]),
        answer_tokens={name: int(row["tokens"]) for name, row in tables["answer_tokens"].items()},
        steps=tuple(_step(row) for row in tables["recovery_steps"]),
        restart_pauses=tuple(float(pause) for pause in tables["restarts"]["unexpected"]["pauses"]),
        steady=float(tables["restarts"]["unexpected"]["steady_seconds"]),
        log_bytes=int(logs["file"]["bytes"]),
        log_launches=int(logs["file"]["launches"]),
        logs_kept=int(logs["file"]["kept"]),
        first_lines=int(logs["lines"]["first"]),
        last_lines=int(logs["lines"]["last"]),
    )


def _step(row: Mapping[str, Any]) -> Step:
    return Step(row["step"], row["needs"], frozenset(row["failures"]), int(row["times"]), row["because"])


def argument(argv: Sequence[str], flag: str) -> str | None:
    """The last value of a flag in an argv, written apart or with ``=``; ``None`` when it is not there."""
    found = None
    for token, after in zip(argv, [*argv[1:], None], strict=False):
        if token == flag:
            found = after
        elif token.startswith(flag + "="):
            found = token[len(flag) + 1 :]
    return found
