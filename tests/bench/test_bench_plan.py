"""``plan --json`` from the shell beside the engine's ``llama-fit-params``: ``pytest tests/bench --benchmark-enable``.

Both start a process and read the same file; ours also judges every policy and explains every flag. Cold: our caches
are empty (the disk's are not). Wanted: at most 0.15 of the engine's time cold, 0.08 warm.
"""

from __future__ import annotations

import shutil

import pytest

HOST = ("--host", "rtx-4090", "--json")


@pytest.fixture
def engines_own(process, fit_params, real_model):
    return process(fit_params, "-m", real_model)


@pytest.mark.engine
@pytest.mark.benchmark(group="plan")
def test_cold(beside, gezel, engines_own, real_model, tmp_path):
    plan = gezel("plan", real_model, *HOST, home="cold")
    empty = lambda: shutil.rmtree(tmp_path / "cold", ignore_errors=True)  # noqa: E731
    beside("plan --json, cold cache, process", plan, "llama-fit-params", engines_own, wanted=0.15, before=empty)


@pytest.mark.engine
@pytest.mark.benchmark(group="plan")
def test_warm(beside, gezel, engines_own, real_model):
    plan = gezel("plan", real_model, *HOST)
    beside("plan --json, warm cache, process", plan, "llama-fit-params", engines_own, wanted=0.08)


@pytest.mark.benchmark(group="plan")
def test_catalog_model(beside, gezel):
    """Without any file or engine: what the command costs by itself."""
    plan, bare = gezel("plan", "gemma-3-270m", *HOST), gezel("--version")
    beside("plan --json of a catalog model, warm", plan, "gezel-rules --version", bare)
