"""What a real engine's ``--fit`` makes of a model, read from its log before any weight is loaded."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from engine_fit import MIB, Fit, Part

_REDUCED = re.compile(r"context size reduced from \d+ to (\d+)")
_TRIED = re.compile(r"id=(\d+), n_layer= *(\d+), n_part= *(\d+), overflow_type=(\d)")
_TAKEN = re.compile(r"set ngl_per_device\[")
_ENDED = re.compile(r"common_fit_params: (successfully fit|failed to fit[^:]*: (.*)|encountered .*)")
_PACKED = re.compile(r"- (CPU_REPACK|AMX) .*\| +(\d+) = ")


def asked(server: Path, rpc: Sequence[str], model: Path, trained: int, margins_mib: Sequence[int]) -> Fit:
    """The answer on devices over RPC (on the CPU alone when there are none), each with a margin of its own."""
    with _log(server, rpc, model, margins_mib) as lines:
        return _read(lines, trained)


def repacked(server: Path, model: Path) -> int:
    """Bytes (to a MiB) of the weights that this engine packs for its CPU: --fit does not count them."""
    sizes = {}  # the table is printed more than once
    with _log(server, (), model, (1024,)) as lines:
        for line in lines:
            if found := _PACKED.search(line):
                sizes[found[1]] = int(found[2]) * MIB
            if _ENDED.search(line):
                break
    return sum(sizes.values())


@contextmanager
def _log(server: Path, rpc: Sequence[str], model: Path, margins_mib: Sequence[int]) -> Iterator[Iterable[str]]:
    devices = ["--rpc", ",".join(rpc)] if rpc else ["-dev", "none"]
    margins = ["-fitt", ",".join(map(str, margins_mib))]
    command = [server, "-lv", "4", *devices, "-m", model, "-fit", "on", *margins, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        yield process.stdout or ()
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def _read(lines: Iterable[str], trained: int) -> Fit:
    ctx = trained
    tried: dict[int, Part] = {}
    taken: tuple[Part, ...] = ()
    for line in lines:
        if found := _REDUCED.search(line):
            ctx = int(found[1])
        elif found := _TRIED.search(line):
            tried[int(found[1])] = Part(*map(int, found.groups()[1:]))
            taken = taken or (() if any(p.layers for p in tried.values()) else tuple(tried.values()))
        elif _TAKEN.search(line):
            taken = tuple(tried.values())
        elif found := _ENDED.search(line):
            return Fit(ctx, taken, "" if found[1].startswith("success") else found[2] or found[1])
    raise AssertionError("the engine did not say how its fit ended")
