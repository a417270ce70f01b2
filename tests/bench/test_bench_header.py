"""Reading the header of a 262,144-token model beside ``gguf.GGUFReader``: ``pytest tests/bench --benchmark-enable``.

Wanted: at most 0.003 of the reference's time in process. Figures are ratios of medians from one run; nothing asserts
on them. A header in pieces is one of a file still being written; a kept one comes from the cache.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gezel_rules.gguf import read_header

OURS = "from gezel_rules.gguf import read_header; read_header(__import__('sys').argv[1])"
WANTED = {"read_header": 0.003}
THEIRS = "from gguf import GGUFReader; GGUFReader(__import__('sys').argv[1])"


@pytest.fixture
def model(real_model):
    return real_model


@pytest.fixture(scope="module")
def figures(compared):
    """Name → median seconds; rows of the table beside the reference."""
    medians: dict[str, float] = {}
    yield medians
    for name, seconds in medians.items():
        than = "GGUFReader, process" if "process" in name else "GGUFReader"
        if than in medians and name != than:
            compared(name, seconds, than, medians[than], WANTED.get(name))


@pytest.fixture
def measure(benchmark, figures):
    """Runs a benchmark and notes its median."""

    def run(name, function, *arguments, rounds=30):
        result = benchmark.pedantic(function, arguments, rounds=rounds, warmup_rounds=1 if rounds > 1 else 0)
        if benchmark.stats:
            figures[name] = benchmark.stats.stats.median
        return result

    return run


@pytest.mark.benchmark(group="header")
def test_reference(benchmark, measure, model):
    if not benchmark.enabled:
        pytest.skip("benchmarks are off, and the reference takes ten seconds")
    import gguf

    assert len(measure("GGUFReader", gguf.GGUFReader, model, rounds=2).tensors) == 236


@pytest.mark.benchmark(group="header")
def test_mapped(measure, model):
    assert len(measure("read_header", read_header, model).tensors) == 236


@pytest.mark.benchmark(group="header")
def test_in_pieces(measure, model):
    os.utime(model)
    try:
        assert len(measure("read_header, pieces", read_header, model).tensors) == 236
    finally:
        os.utime(model, (1_000_000_000, 1_000_000_000))


@pytest.mark.benchmark(group="header")
def test_kept(measure, model, tmp_path):
    def read():
        return read_header(model, cache_dir=tmp_path)

    read()
    assert len(measure("read_header, kept", read).tensors) == 236


@pytest.mark.benchmark(group="process")
def test_reference_process(benchmark, measure, model):
    if not benchmark.enabled:
        pytest.skip("benchmarks are off, and the reference takes ten seconds")
    measure("GGUFReader, process", subprocess.check_call, [sys.executable, "-c", THEIRS, model], rounds=1)


@pytest.mark.benchmark(group="process")
def test_process(measure, model):
    measure("read_header, process", subprocess.check_call, [sys.executable, "-c", OURS, model], rounds=10)


@pytest.mark.benchmark(group="process")
def test_bare_python(measure):
    measure("bare Python, process", subprocess.check_call, [sys.executable, "-c", "pass"], rounds=10)
