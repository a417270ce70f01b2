"""What an engine prints: kept at both ends, within its sizes, whatever it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gezel_rules.planner.needs import EngineLogs
from gezel_rules.runtime.engine_log import EngineLog

SIZES = EngineLogs(1 << 20, 2, 8, 64 << 10, 100, 1 << 20, 5, 1 << 20, 1 << 30)
MEASURED = """
import resource, subprocess, sys
from pathlib import Path
from gezel_rules.planner.needs import EngineLogs
from gezel_rules.runtime.engine_log import EngineLog
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
log = EngineLog(Path(sys.argv[1]), EngineLogs(*map(int, sys.argv[3].split(","))), ["a-secret"])
child = subprocess.Popen([sys.executable, "-c", sys.argv[2]], stdout=subprocess.PIPE)
log.read_from(child.stdout)
child.wait()
log.join(100)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, len(log.lines()))
"""


def read(tmp_path: Path, code: str, sizes: EngineLogs = SIZES, secrets: tuple[str, ...] = ()) -> EngineLog:
    """The log of a process that runs ``code``, read to its end."""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    log = EngineLog(tmp_path / "engine.log", sizes, secrets)
    assert child.stdout is not None
    log.read_from(child.stdout)
    child.wait()
    log.join(60)
    return log


def test_the_log_rotates_and_is_remembered_at_both_ends(tmp_path: Path) -> None:
    sizes = SIZES._replace(bytes=2000, first_lines=10)
    log = read(tmp_path, "for i in range(1000): print(f'line {i:04}')", sizes)
    assert log.lines() == [f"line {i:04}" for i in (*range(10), *range(995, 1000))]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["engine.log", "engine.log.1", "engine.log.2"]
    assert all(path.stat().st_size <= 2000 for path in tmp_path.iterdir())
    assert (tmp_path / "engine.log").read_text().endswith("line 0999\n")


def test_both_ends_have_a_size(tmp_path: Path) -> None:
    """A line that does not fit the beginning any more is remembered at the end, as are all that follow."""
    sizes = SIZES._replace(first_bytes=50, last_bytes=20)
    log = read(tmp_path, "for i in range(100): print(f'line {i:04}')", sizes)
    assert log.lines() == [f"line {i:04}" for i in (*range(5), 98, 99)]


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nfor _ in range(500): sys.stdout.write('x' * (1 << 20))",
        "for _ in range(21000): print('x' * 65535)",
        "for _ in range(200000): print()",
    ],
    ids=["one line of 500 MiB", "21,000 lines of 64 KiB", "empty lines"],
)
def test_memory_stays_flat(tmp_path: Path, code: str) -> None:
    """As shipped; 32 MiB are five times what the ends may hold, and a fortieth of what is printed."""
    from shipped_rules import shipped_rules

    sizes = ",".join(map(str, shipped_rules().logs))
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path / "engine.log"), code, sizes],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    grown, lines = map(int, done.stdout.split())
    assert lines > 0
    assert grown < 32 << 10  # KiB


def test_a_long_line_is_cut_and_says_so(tmp_path: Path) -> None:
    log = read(tmp_path, "print('x' * 3000)\nprint('end')", SIZES._replace(line_bytes=1024))
    assert log.lines() == ["x" * 1024 + " … and 1,977 bytes more", "end"]


@pytest.mark.parametrize("before", range(1000, 1030, 3))
def test_no_part_of_a_secret_is_kept_where_a_line_is_cut(tmp_path: Path, before: int) -> None:
    code = f"print('open-sesame ' * 5 + 'x' * {before - 60} + 'open-sesame' + 'y' * 999)"
    log = read(tmp_path, code, SIZES._replace(line_bytes=1024), ("open-sesame",))
    written = log.path.read_text()
    assert "ope" not in written
    assert log.lines() == written.splitlines()


def test_a_full_disk_does_not_block_the_engine(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    log = EngineLog(tmp_path / "engine.log", SIZES)
    child = subprocess.Popen([sys.executable, "-c", "print('x' * 100000)\nprint('end')"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    log._file = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115 - the log closes it
    log._open = lambda: None  # type: ignore[method-assign]
    log.read_from(child.stdout)
    assert child.wait(20) == 0
    log.join(10)
    assert log.lines()[-1] == "end"
