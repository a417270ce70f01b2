"""``gezel-rules log FILE``: what an engine's log says about the GPU, what failed, and what a person can do.

Exit status: 0 when nothing is wrong as far as log and exit status tell; 1 when a failure ended the start, the engine
ended with an error, a GPU backend could not be initialised, or the build named with ``--backend`` found or used no GPU;
2 for bad input.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gezel_rules.cli.arguments import add_family, session_of
from gezel_rules.cli.shown import json_text
from gezel_rules.errors import BadInput, why
from gezel_rules.plain_file import open_plain

if TYPE_CHECKING:
    from gezel_rules.logs.model import LogPolicy
    from gezel_rules.logs.watch import Verdict, Watch

_CHUNK = 64 << 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE and what the caller knows about the engine besides."""
    parser.add_argument("file", metavar="FILE", help="the engine's log, as it was written; - reads standard input")
    parser.add_argument("--backend", help="the build's backend (as the log policies name them)")
    parser.add_argument(
        "--exit-status",
        type=_status,
        metavar="N",
        help="how the engine ended: N, -N or SIGNAME for a signal, 128+N, 0xC0000005",
    )
    parser.add_argument("--engine-version", metavar="V", help="the engine's version (0.6.0) or build (b4799)")
    add_family(parser)


def run(args: argparse.Namespace) -> int:
    """Print the verdict; returns the exit status. Raises BadInput."""
    from gezel_rules.logs.sealed import log_policy
    from gezel_rules.logs.verdict import died
    from gezel_rules.logs.watch import Watch

    session = session_of(args)
    family = session.family(args.family)
    policy = log_policy(session.policies_for(family))
    watch = Watch(policy, _backend(args.backend, policy), args.engine_version)
    _read(args.file, watch, session.rules(family).logs.read_bytes)
    verdict, ended = watch.verdict(args.exit_status), died(policy, args.exit_status)
    lines = _lines(verdict, args.exit_status if ended else None)
    print(json_text(verdict.as_json()) if args.json else "\n".join(lines))
    gpu_build = args.backend is not None and args.backend not in policy.without_gpu
    return int(ended or unhealthy(verdict, gpu_build))


def unhealthy(verdict: Verdict, gpu_build: bool) -> bool:
    """Whether the answer is no: a fatal failure, a GPU that refused, or a GPU build whose GPU is not in use."""
    if verdict.fatal or verdict.gpu == "init-failed":
        return True
    return gpu_build and verdict.gpu in ("no-devices", "not-loaded")


def _status(text: str) -> int:
    from gezel_rules.logs.exit_status import read_exit_status

    try:
        return read_exit_status(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is none; say 1, -11, 139, 128+11, SIGSEGV or 0xC0000005") from None


def _backend(name: str | None, policy: LogPolicy) -> str | None:
    if name is None or name in policy.backends:
        return name
    from gezel_rules.documents.source import did_you_mean

    raise BadInput(f"--backend: unknown backend '{name}'{did_you_mean(name, policy.backends)}")


def _read(name: str, watch: Watch, most: int) -> None:
    if name == "-":
        _feed(sys.stdin.buffer, watch, name, most)
        return
    try:
        with os.fdopen(open_plain(name), "rb") as file:
            _feed(file, watch, name, most)
    except OSError as error:
        hint = "; write - and pipe it in" if error.errno == 0 and Path(name).is_fifo() else ""
        raise BadInput(f"{name}: {why(error)}{hint}") from None


def _feed(stream: BinaryIO, watch: Watch, name: str, most: int) -> None:
    """Feed bytes, ``most`` of them; a UTF-16 log (a PowerShell redirection) is told by its mark. Raises BadInput for
    more, as what does not end will be."""
    first = stream.read(_CHUNK)
    decoder = None
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        import codecs

        decoder = codecs.getincrementaldecoder("utf-16")("replace")
    while first:
        most -= len(first)
        if most < 0:
            raise BadInput(f"{name}: too long to be a log: cut it with head -c or tail -c")
        watch.feed(decoder.decode(first).encode("utf-8", "replace") if decoder else first)
        first = stream.read(_CHUNK)


def _lines(verdict: Verdict, ended: int | None) -> list[str]:
    """The verdict for people: GPU, failure, the engine's own line, advice, and the rules to look at. ``ended``: the
    status of an engine that failed."""
    lines = [f"gpu      {verdict.gpu}" + (f": {verdict.detail}" if verdict.detail else "")]
    if verdict.failure is not None:
        ending = "" if verdict.fatal else " (the engine goes on)"
        lines.append(f"failure  {verdict.failure}: {verdict.says}{ending}")
    elif ended is not None:
        lines.append(f"failure  of unknown kind: the engine ended with status {ended}; these lines do not say why")
    if verdict.line:
        lines.append(f"line     {verdict.line}")
    if verdict.advice:
        lines.append(f"advice   {verdict.advice}")
    for rule in dict.fromkeys((verdict.rule, verdict.gpu_rule)):
        if rule is not None:
            lines.append(f"rule     {rule.id}  {rule.file}:{rule.line}")
    return lines
