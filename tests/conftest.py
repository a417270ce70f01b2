"""For every test: nothing of the person who runs them is read or written, and a skip says why.

With ``GEZEL_REQUIRE_ENGINES=1``, as CI sets it, a missing engine is a failure: no test marked ``engine`` may skip, and
no file of tests may leave itself out.
"""

from __future__ import annotations

import os
import shutil
import site
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

REQUIRED = "GEZEL_REQUIRE_ENGINES"
KEPT = frozenset({REQUIRED, "GEZEL_LLAMA_SERVER", "GEZEL_FUZZ_ROUNDS"})  # which engine, and how long, a person says
OURS = {"GEZEL_STORE": "store", "GEZEL_CACHE": "cache", "GEZEL_STATE": "state", "GEZEL_CONFIG": "config"}
STEERS = ("GEZEL_", "LLAMA_ARG_", "XDG_")  # prefixes of variables that change what a plan or an engine does
WIDTH = frozenset({"COLUMNS", "LINES"})  # readline, which pytest imports, tells them to xdist's workers
NO_REASON = ("", "unconditional skip", "Skipped")

_away = pytest.StashKey[Path]()
_before = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Move into directories of our own before any test module is imported."""
    config.stash[_before] = dict(os.environ)
    config.stash[_away] = away = Path(tempfile.mkdtemp(prefix="gezel-tests-"))
    os.environ.update(_surroundings(away))
    for name in _foreign(os.environ):
        del os.environ[name]
    # A slow machine is no defect; in CI the same examples every time, so that red means a change made it red.
    hypothesis_settings.register_profile(
        "tests", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=required()
    )
    hypothesis_settings.load_profile("tests")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Back to where the person was; what the tests left goes."""
    os.environ.clear()
    os.environ.update(config.stash[_before])
    shutil.rmtree(config.stash[_away], ignore_errors=True)


def required() -> bool:
    """Whether a missing engine is a failure."""
    return os.environ.get(REQUIRED, "0") not in ("", "0")


def _surroundings(away: Path) -> dict[str, str]:
    """The user's directories, empty. User-installed packages are still found."""
    (away / "home").mkdir()
    paths = {variable: str(away / name) for variable, name in OURS.items()}
    return {**paths, "HOME": str(away / "home"), "PYTHONUSERBASE": site.getuserbase()}


def _foreign(environ: Any) -> list[str]:
    steering = {name for name in environ if name.startswith(STEERS)}
    return sorted((steering - KEPT - OURS.keys()) | (WIDTH & environ.keys()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip without a reason fails; so does a missing engine where engines are required."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _judge(report, _reason(report), engine=item.get_closest_marker("engine") is not None)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a file that leaves itself out as a whole."""
    report = yield
    if report.skipped:
        _judge(report, _reason(report), engine=True)
    return report


def _reason(report: Any) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(said).removeprefix("Skipped: ").strip()


def _judge(report: Any, reason: str, engine: bool) -> None:
    if reason in NO_REASON:
        report.outcome, report.longrepr = "failed", "skipped without a reason"
    elif engine and required():
        report.outcome, report.longrepr = "failed", f"{REQUIRED} is set, and this was skipped: {reason}"


@pytest.fixture(scope="session", autouse=True)
def _away_from_home(request: pytest.FixtureRequest) -> Iterator[None]:
    """The variables still point where ``pytest_configure`` put them when the last test is over."""
    expected = {name: os.environ[name] for name in (*OURS, "HOME")}
    yield
    assert {name: os.environ.get(name) for name in expected} == expected
