"""``memory`` from the shell beside the engine's ``llama-fit-params``: ``pytest tests/bench --benchmark-enable``.

Wanted: at most 0.15 of the engine's time on the same file, Python start included. Figures are ratios of medians from
one run; nothing asserts on them. Needs the real model (a 262,144-token vocabulary) and, for the ratio, that tool.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gezel_rules.engines.llama_cpp.memory.estimate import estimate_geometry
from gezel_rules.engines.llama_cpp.memory.geometry import geometry
from gezel_rules.engines.llama_cpp.memory.launch import Launch
from gezel_rules.engines.llama_cpp.memory.placement import Pool, place
from gezel_rules.engines.llama_cpp.memory.tables import memory_tables
from gezel_rules.gguf import read_header
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies

ENGINE = "llama-fit-params, process"


@pytest.fixture
def model(real_model):
    return real_model


@pytest.fixture(scope="module")
def figures(compared):
    """Name → median seconds; rows of the table beside the engine's."""
    medians: dict[str, float] = {}
    yield medians
    for name, seconds in medians.items():
        if ENGINE in medians and name != ENGINE:
            compared(name, seconds, ENGINE, medians[ENGINE], 0.15 if "process, " in name else None)


@pytest.fixture
def measure(benchmark, figures):
    def run(name, function, rounds):
        benchmark.pedantic(function, rounds=rounds, warmup_rounds=1)
        if benchmark.stats:
            figures[name] = benchmark.stats.stats.median

    return run


@pytest.mark.engine
@pytest.mark.benchmark(group="memory")
def test_the_engines_own(measure, fit_params, model):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    measure(ENGINE, lambda: subprocess.run([fit_params, "-m", model, "-c", "8192"], check=True, **quiet), 9)


@pytest.mark.benchmark(group="memory")
def test_memory_from_the_shell(measure, model, tmp_path):
    command = [sys.executable, "-m", "gezel_rules.cli", "memory", model, "--ctx", "8192", "--json"]
    environ = {**os.environ, "GEZEL_CACHE": str(tmp_path)}
    measure("memory, process, warm", lambda: subprocess.run(command, check=True, capture_output=True, env=environ), 9)


@pytest.mark.benchmark(group="memory")
def test_memory_from_the_shell_for_the_first_time(measure, model, tmp_path):
    command = [sys.executable, "-m", "gezel_rules.cli", "memory", model, "--ctx", "8192", "--json"]
    rounds = iter(range(100))

    def run():
        environ = {**os.environ, "GEZEL_CACHE": str(tmp_path / str(next(rounds)))}
        subprocess.run(command, check=True, capture_output=True, env=environ)

    measure("memory, process, cold", run, 9)


@pytest.mark.benchmark(group="memory")
def test_one_estimate(measure, model):
    tables = memory_tables(read_policies(policies_dir(), None))
    geo, windows = geometry(read_header(model), tables), iter(range(4096, 1 << 30, 256))
    measure("estimate, in process", lambda: estimate_geometry(geo, Launch(ctx=next(windows))), 50)


@pytest.mark.benchmark(group="memory")
def test_one_placement(measure, model):
    tables = memory_tables(read_policies(policies_dir(), None))
    geo, windows = geometry(read_header(model), tables), iter(range(4096, 1 << 30, 256))
    pools = [Pool("GPU0", "discrete", 300 << 20), Pool("GPU1", "discrete", 200 << 20), Pool("ram", "ram", 8 << 30)]
    measure("placement, in process", lambda: place(geo, Launch(ctx=next(windows), parallel=1), pools), 20)
