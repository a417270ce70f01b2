"""``--help`` beside a Python that does nothing: ``pytest tests/bench --benchmark-enable``. Wanted: ≤ 2.5 times."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture
def bare_python(process):
    return process(sys.executable, "-c", "pass")


@pytest.mark.benchmark(group="help")
def test_help(beside, gezel, bare_python):
    beside("--help, process", gezel("--help"), "python -c pass", bare_python, wanted=2.5, rounds=25)


@pytest.mark.benchmark(group="help")
def test_help_of_a_command(beside, gezel, bare_python):
    beside("plan --help, process", gezel("plan", "--help"), "python -c pass", bare_python, rounds=25)
