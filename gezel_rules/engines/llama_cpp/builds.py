"""An engine build: its version, the options it takes, the devices it sees. Asked once, then kept by binary identity.

Version and options belong to the files of the build and are kept until one of them changes; what its code uses of the
processor, until the processor changes too. Devices carry the memory
that is free now, so they are asked again each time; only the answer "none" is kept, for the same environment and
for a few minutes, since nothing in it can go stale but itself.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.engines.kept_answers import Kept, kept_answers
from gezel_rules.engines.llama_cpp.devices import DeviceRules, device_facts, parse_devices
from gezel_rules.engines.llama_cpp.features import Processors, known_features, processor_of
from gezel_rules.engines.llama_cpp.identity import files_behind
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.facts.printable import printable
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.engines.ask import Answer
    from gezel_rules.engines.patience import Patience

NONE_FOR = 300.0  # seconds for which "no devices" is believed without asking again

_DEVICES = "--list-devices"
_LOUD = {"LLAMA_ARG_LOG_VERBOSITY": "5"}  # from here on the engine tells how its drivers name each device's memory
_PASSING = frozenset({"_", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES"})  # differ between shells, not machines

Runner = Callable[[Sequence[str], Mapping[str, str]], "Answer"]


class Build(NamedTuple):
    """``version`` (PEP 440) and ``build`` number, ``None`` where the engine does not say; ``flags``: every option
    name it takes, sorted; ``variables``: environment variable → names of the option it sets; ``words``: option → what
    it may be given, where ``--help`` lists it."""

    version: str | None
    build: int | None
    flags: tuple[str, ...]
    variables: Mapping[str, tuple[str, ...]]
    words: Mapping[str, tuple[str, ...]] = {}


class Engine(NamedTuple):
    """Whom to ask, in which environment (the launch's own, so that the memory seen is the memory had), by which
    runner (``None``: as a process), with how much patience (``None``: without end), and what was answered before."""

    kind: str
    command: tuple[str, ...]
    environ: Mapping[str, str]
    kept: Kept
    run: Runner | None = None
    patience: Patience | None = None

    def ask(self, question: str) -> Answer:
        if self.run is not None:
            return self.run([*self.command, question], self.environ)
        from gezel_rules.engines.ask import ask  # brings subprocess: 6 ms that a kept answer saves

        return ask([*self.command, question], self.environ, patience=self.patience)

    def not_ours(self, why: str) -> BadInput:
        return BadInput(f"{printable(' '.join(self.command))}: not a llama.cpp engine: {why}")


def engine_at(
    kind: str, command: Sequence[str], cache_dir: Path | None, environ: Mapping[str, str], run: Runner | None = None,
    patience: Patience | None = None,
) -> Engine:  # fmt: skip
    """The engine that ``command`` starts, ready to be asked. Raises BadInput when there is no such program."""
    kept = kept_answers(command, cache_dir, environ, files_behind)
    return Engine(kind, tuple(command), environ, kept, run, patience)


def build_facts(
    command: Sequence[str],
    cache_dir: Path | None,
    environ: Mapping[str, str],
    *,
    kind: str,
    rules: DeviceRules | None,
    cpu_backend: str = "",
    fresh: bool = False,
    processors: Processors | None = None,
    run: Runner | None = None,
    patience: Patience | None = None,
) -> dict[str, Fact]:
    """``engine.kind``, ``engine.identity``, ``engine.version``, ``engine.build``, ``engine.flags``, ``engine.words``
    (option → the words it may be given, where they are listed); with device ``rules`` also
    ``devices``, ``host.unified`` and ``engine.backend`` (``cpu_backend`` when there are no devices); and with
    ``processors`` (policy's table of them) ``engine.processor``.

    Answers are kept under ``cache_dir`` (``None``: not at all); ``fresh`` asks for devices in any case. Raises
    BadInput when there is no such program or it is no llama.cpp engine, EngineFailed when it does not answer.
    """
    engine = engine_at(kind, command, cache_dir, environ, run, patience)
    kept = engine.kept.read()
    build = read_build(engine, kept)
    facts = {"engine.kind": Fact(kind, "the engine chosen", "probe"), **_build_facts(build, kind)}
    facts["engine.identity"] = Fact(_digest(engine.kept), "size and time of its files", "probe")
    if processors is not None:
        facts["engine.processor"] = processor_fact(engine, processors, kept)
    if rules is not None:
        facts |= _device_facts(engine, kept, build, rules, cpu_backend, fresh)
    return facts


def processor_fact(engine: Engine, processors: Processors, kept: dict[str, Any] | None = None) -> Fact:
    """``engine.processor``: the last row of ``processors`` whose features the build's code uses here; unknown where the
    engine does not say."""
    found = known_features(engine.command, engine.environ, engine.kept, kept, engine.patience)
    return _known(
        processor_of(found, processors), f"{engine.kind}: system_info", "an engine whose log says system_info"
    )


def _digest(kept: Kept) -> str:
    """A short name of the engine's files: two builds that call themselves alike differ in it."""
    return f"{zlib.crc32(repr(kept.identity).encode()):08x}"


def _build_facts(build: Build, kind: str) -> dict[str, Fact]:
    said, settle = f"{kind} --version", "an engine that says it in --version"
    return {
        "engine.version": _known(build.version, said, settle),
        "engine.build": _known(build.build, said, settle),
        "engine.flags": Fact(list(build.flags), f"{kind} --help", "probe"),
        "engine.words": Fact({name: list(words) for name, words in build.words.items()}, f"{kind} --help", "probe"),
    }


def _known(value: object, source: str, settle: str) -> Fact:
    return Fact(UNKNOWN, source, "probe", settle=settle) if value is None else Fact(value, source, "probe")


def read_build(engine: Engine, kept: dict[str, Any] | None = None) -> Build:
    """The build behind an engine: as kept, else by its ``--version`` and ``--help``. ``kept`` are the answers read
    before; a new one is added to them."""
    kept = engine.kept.read() if kept is None else kept
    if (build := _from_json(kept.get("build"))) is not None:
        return build
    kept["build"] = build = _ask_build(engine)
    engine.kept.write(kept)
    return build


def _from_json(kept: Any) -> Build | None:
    """A kept build, if it is one: the file may be damaged."""
    match kept:
        case [str() | None as version, int() | None as number, [*flags], dict() as variables, dict() as words]:
            if _are_names(flags) and all(map(_are_names, (*variables.values(), *words.values()))):
                return Build(version, number, tuple(flags), _tuples(variables), _tuples(words))
    return None


def _tuples(lists: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(words) for name, words in lists.items()}


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _ask_build(engine: Engine) -> Build:
    from gezel_rules.engines.llama_cpp.engine_output import parse_help, parse_version

    said = engine.ask("--version")
    version = parse_version(said.err) or parse_version(said.out)
    if version is None:
        words = (said.out or said.err).strip().splitlines() or ["nothing"]
        raise engine.not_ours(f"--version says '{printable(words[0])}'")
    options = parse_help(engine.ask("--help").out)
    if not options.flags:
        raise engine.not_ours("--help lists no options")
    return Build(version.version, version.build, options.flags, options.variables, options.words)


def _device_facts(
    engine: Engine, kept: dict[str, Any], build: Build, rules: DeviceRules, cpu_backend: str, fresh: bool
) -> dict[str, Fact]:
    source = f"{engine.kind} {_DEVICES}"
    if _DEVICES not in build.flags:
        return device_facts(None, rules, cpu_backend, source)
    now = _surroundings(engine.environ)
    if not fresh and _still_none(kept.get("no_devices"), now):
        return device_facts([], rules, cpu_backend, source)
    answer = engine._replace(environ={**engine.environ, **_LOUD}).ask(_DEVICES)
    devices = parse_devices(answer.out, rules, answer.err)
    if devices == [] or kept.get("no_devices"):
        engine.kept.write({**kept, "no_devices": [time.time(), *now] if devices == [] else None})
    return device_facts(devices, rules, cpu_backend, source)


def _still_none(kept: object, now: list[int]) -> bool:
    match kept:
        case [int() | float() as at, *then]:
            return then == now and 0 <= time.time() - at < NONE_FOR
    return False


def _surroundings(environ: Mapping[str, str]) -> list[int]:
    """What decides about devices besides the build: the environment, and when a device file last came or went."""
    words = "\0".join(f"{name}={environ[name]}" for name in sorted(environ) if name not in _PASSING)
    try:
        changed = Path("/dev").stat().st_mtime_ns
    except OSError:
        changed = 0
    return [zlib.crc32(words.encode("utf-8", "surrogateescape")), changed]
