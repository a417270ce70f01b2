"""The engine's own table for our placements: RPC servers on loopback pose as accelerators, a sparse file as model."""

from __future__ import annotations

import re
import subprocess
import threading
from pathlib import Path

import pytest
import rpc_servers
from engine_processor import processor
from engine_truth import MIB, shape, sparse

from gezel_rules.engines.llama_cpp.memory.estimate import estimate_geometry
from gezel_rules.engines.llama_cpp.memory.flags import Launch
from gezel_rules.engines.llama_cpp.memory.host_buffers import BUFFERS
from gezel_rules.engines.llama_cpp.memory.placement import Pool, place

pytestmark = pytest.mark.engine
GIB = 1 << 30
DEVICE = re.compile(r"- (RPC\d+).*= \d+ \+ \(\s*\d+ = +(\d+) \+ +(\d+) \+ +(\d+)\)")
HOST = re.compile(r"- (Host|CPU_REPACK|AMX).*\| +\d+ = +(\d+) \+ +(\d+) \+ +(\d+)")


@pytest.fixture(scope="module")
def binaries():
    """llama-server and ggml-rpc-server of one build."""
    return rpc_servers.binaries()


@pytest.fixture(scope="module")
def rpc(binaries):
    """Two devices on loopback, as --rpc names them."""
    with rpc_servers.lending(binaries[1], 2) as lenders:
        yield ",".join(lenders)


def ask(binaries, rpc, model: Path, flags):
    """The engine's table: name → MiB of model, context, compute. It is printed before any weight is loaded."""
    devices = ["--rpc", rpc] if rpc else ["-dev", "none"]
    command = [binaries[0], "-lv", "5", *devices, "-m", model, "-fit", "on", "--port", "0", *flags]
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
    """Each buffer of the host within 2 MiB; model and context within 1 % or 3 MiB, device compute within 10 % or 32."""
    hosts = [table[name] for name in BUFFERS if name in table]
    for name in BUFFERS:
        assert found.buffers[name] / MIB == pytest.approx(table.get(name, [0])[0], abs=2), name
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
    compare(estimate_geometry(shape(name), launch._replace(processor=processor(binaries[:1]))), table)


@pytest.mark.parametrize("packing", [[], ["--no-repack"]], ids=["packed", "unpacked"])
@pytest.mark.parametrize(
    "name", ["llama-3.2-1b.gguf", "gemma3n-e4b.gguf", "gemma3-4b-f16.gguf", "gpt-oss-20b-q8_0.gguf", "granitemoe.gguf"]
)
def test_our_buffers_are_the_engines_without_devices(binaries, tmp_path, name, packing):
    flags = ["-c", "8192", "-np", "1", *packing]
    launch = Launch(ctx=8192, parallel=1, processor="plain" if packing else processor(binaries[:1]))
    compare(estimate_geometry(shape(name), launch), ask(binaries, None, sparse(name, tmp_path), flags))


@pytest.mark.parametrize("name", ["deepseek-v2-lite.gguf", "kimi-linear.gguf", "ds4.gguf"])
def test_what_we_say_aborts_does_and_what_not_does_not(binaries, tmp_path, name):
    launch = Launch(ctx=4096, parallel=1, processor=processor(binaries[:1]))
    refused = any("AMX" in why for why in estimate_geometry(shape(name), launch).refused)
    assert refused == (launch.processor == "amx")
    for flags, starts in ((["-c", "4096", "-np", "1"], not refused), (["-c", "4096", "-np", "1", "--no-repack"], True)):
        try:
            table = ask(binaries, None, sparse(name, tmp_path), flags)
        except AssertionError:
            table = {}
        assert bool(table) == starts, flags


@pytest.mark.parametrize(
    ("name", "gib"),
    [("llama-3.1-8b.gguf", (6, 3)), ("qwen3-30b-a3b.gguf", (9, 5)), ("mistral-small-24b.gguf", (8, 3))],
    ids=["resident", "experts", "ffn"],
)
def test_our_placement_holds_on_devices_of_the_size_we_were_told(binaries, rpc, tmp_path, name, gib):
    pools = [*(Pool(f"RPC{i}", "rpc", g * GIB, False) for i, g in enumerate(gib)), Pool("ram", "ram", 64 * GIB)]
    found = place(shape(name), Launch(ctx=16384, parallel=1, processor=processor(binaries[:1])), pools)
    assert found.fits
    table = ask(binaries, rpc, sparse(name, tmp_path), flags_of(found.launch))
    compare(found.estimate, table)
    for number, pool in enumerate(pools[:-1]):
        assert sum(table.get(f"RPC{number}", [0])) * MIB <= pool.usable_bytes
