"""One engine process: started in a group of its own, awaited until it answers, stopped with nothing left behind."""

from __future__ import annotations

import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gezel_rules.engines.family import Contract, Program
from gezel_rules.engines.openai_http import Address
from gezel_rules.errors import BadInput, EngineFailed, why
from gezel_rules.facts.secrets import secret_values
from gezel_rules.record import NamedTuple
from gezel_rules.runtime import process, tether
from gezel_rules.runtime.engine_log import EngineLog
from gezel_rules.runtime.figures import Figures
from gezel_rules.runtime.port_claims import PortClaims
from gezel_rules.runtime.rules import Supervision, argument
from gezel_rules.runtime.state_files import new_id

LOGS = "logs"
_POLL = 0.05
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where to reach a server that listens everywhere


class Running:
    """A started engine. ``address`` has port 0 until the log says which port it took; ``token`` and ``process.pid``
    are its identity; ``key`` opens its API; ``contract`` says how it is spoken to; ``figures`` are what it told."""

    __slots__ = ("address", "argv", "claims", "contract", "engine", "figures", "id", "key", "log", "process", "token")

    def __init__(
        self, process_: subprocess.Popen[bytes], engine: Program, contract: Contract, argv: Sequence[str], key: str,
        log: EngineLog, claims: PortClaims, address: Address, launch_id: str, figures: Figures,
    ) -> None:  # fmt: skip
        self.process, self.engine, self.contract, self.argv = process_, engine, contract, tuple(argv)
        self.key, self.log, self.claims, self.address, self.id = key, log, claims, address, launch_id
        self.figures = figures
        self.token = process.started(process_.pid) or ""

    @property
    def pid(self) -> int:
        """The engine's process, which leads its group."""
        return self.process.pid


class Access(NamedTuple):
    """How an engine's clients reach it: the port it took (0: none yet) and its key (empty: none yet). An engine that is
    started again is given both, so that nobody loses it."""

    port: int = 0
    key: str = ""


NO_CLIENTS = Access()


class Readiness(NamedTuple):
    """How waiting ended: ready, or exited with a status as Python gives it, or neither in time."""

    ready: bool
    exit_status: int | None
    seconds: float


def new_key(tail: str = "") -> str:
    """A random API key that ends with ``tail``."""
    return secrets.token_urlsafe(24) + tail


def start(
    engine: Program, contract: Contract, argv: Sequence[str], env: Mapping[str, str], *, environ: Mapping[str, str],
    state_dir: Path, rules: Supervision, label: str, access: Access = NO_CLIENTS,
) -> Running:  # fmt: skip
    """Start an engine; returns at once. Call from a thread that outlives it: on Linux the engine dies with it.

    The key is in the environment alone: the caller's own where the engine's variable holds one, else that of
    ``access``, else a random one. Raises BadInput when the port is taken, EngineFailed when the program cannot be run.
    """
    argv = _with_port(argv, access.port, rules)
    address = wanted_address(argv, rules)
    key = environ.get(contract.key_variable) or access.key or new_key(contract.key_tail)
    launch_id, claims, figures = new_id(), PortClaims(rules.listening), Figures(rules.figures)
    path = _log_path(state_dir, label, launch_id, rules.logs.launches)

    def hear(line: str) -> None:
        figures.take(line)
        if not address.port:
            claims.hear(line)

    log = EngineLog(path, rules.logs, (*key.split(","), *secret_values(environ)), hear)
    command = [*_tethered(), *engine.command, *argv]
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**environ, **env, contract.key_variable: key}, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise EngineFailed(f"cannot start {engine.command[0]}: {error.strerror}") from None
    running = Running(child, engine, contract, argv, key.split(",")[0], log, claims, address, launch_id, figures)
    assert child.stdout is not None
    log.read_from(child.stdout)
    return running


def _tethered() -> tuple[str, ...]:
    """What ties the engine to our life; nothing where the kernel offers no such tie (there the registry of running
    engines lets the next start end an orphan)."""
    import os

    if sys.platform != "linux":
        return ()
    return (sys.executable, "-I", "-S", str(Path(tether.__file__)), str(os.getpid()))


def wanted_address(argv: Sequence[str], rules: Supervision) -> Address:
    """Where the argv lets the engine listen. Raises BadInput for a port that is no port or is taken."""
    host = (argument(argv, rules.host_flag) or rules.host_assumed).split(",")[0]
    text = argument(argv, rules.port_flag)
    if host.endswith(".sock"):
        raise BadInput(f"{rules.host_flag} {host}: unix sockets are not supported here")
    if text is not None and not (text.isdecimal() and int(text) < 65536):
        raise BadInput(f"{rules.port_flag} {text}: not a port")
    address = Address(host, rules.port_assumed if text is None else int(text))
    if address.port:
        _require_free(address)
    return Address(_ANYWHERE.get(host, host), address.port)


def _require_free(address: Address) -> None:
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except OSError as error:
        raise BadInput(f"cannot listen on {address.host} port {address.port}: {why(error)}") from None


def _with_port(argv: Sequence[str], port: int, rules: Supervision) -> tuple[str, ...]:
    """The argv with this port in place of its own; with 0 its own stands, or the one that policy assumes."""
    flag = rules.port_flag
    if not port and argument(argv, flag) is not None:
        return tuple(argv)
    before = [None, *argv]
    others = [
        word
        for word, last in zip(argv, before, strict=False)
        if flag not in (word, last) and not word.startswith(f"{flag}=")
    ]
    return (*others, flag, str(port or rules.port_assumed))


def _log_path(state_dir: Path, label: str, launch_id: str, kept: int) -> Path:
    """A log file of its own for each launch; the oldest launches' files of this label are removed."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip(".-")[:80] or "engine"
    folder = state_dir / LOGS
    stem = re.compile(re.escape(name) + r"-(\d{8}T\d{6}-[0-9a-f]{6})\.log")
    old = sorted(path for path in folder.glob(f"{name}-*.log") if stem.fullmatch(path.name))
    for path in old[: max(0, len(old) - kept + 1)]:
        for part in folder.glob(f"{path.name}*"):
            part.unlink(missing_ok=True)
    return folder / f"{name}-{launch_id}.log"


def wait_ready(
    running: Running, timeout: float, rules: Supervision, tell: Callable[[float], None] | None = None
) -> Readiness:
    """Wait until the engine answers with our key, exits, or ``timeout`` seconds are over. ``tell`` hears the seconds
    waited, a few times a second."""
    begun = time.monotonic()
    while True:
        if running.address.port == 0:
            _read_port(running)
        elif _answers(running, min(rules.probe, max(_POLL, begun + timeout - time.monotonic()))):
            return Readiness(True, None, time.monotonic() - begun)
        else:
            time.sleep(_POLL)
        exit_status, waited = running.process.poll(), time.monotonic() - begun
        if exit_status is not None:
            running.log.join(2.0)
            return Readiness(False, exit_status, waited)
        if waited > timeout:
            return Readiness(False, None, waited)
        if tell is not None:
            tell(waited)


def _read_port(running: Running) -> None:
    """Look for the port the engine took. A log prints what a model file says too: a port nobody of ours listens on is
    not believed."""
    for port in running.claims.wait(0.2):
        if process.listens(running.pid, port) is not False:
            running.address = Address(running.address.host, port)
            return
    time.sleep(_POLL)


def _answers(running: Running, seconds: float) -> bool:
    """Ready, and ours: a stranger on the port is not shown our key."""
    if process.listens(running.pid, running.address.port) is False:
        return False
    return running.contract.ready(running.address, running.key, seconds)


def stop(running: Running, grace: float, hurry: Callable[[], bool] = lambda: False) -> int:
    """Stop the engine and its group: politely, by force after ``grace`` seconds or when there is a ``hurry``.
    Returns its exit status."""
    child = running.process
    if child.poll() is None:
        process.signal_group(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + grace
        while child.poll() is None and time.monotonic() < deadline and not hurry():
            time.sleep(0.02)
    process.signal_group(child.pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # whatever it started itself
    exit_status = child.wait()
    running.log.join(2.0)
    return exit_status
