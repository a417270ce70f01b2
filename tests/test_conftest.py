"""The rules every test runs under, tried on small sessions of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")
SESSION = """
import os, pytest

@pytest.mark.engine
def test_needs_an_engine():
    pytest.skip("no engine here")

def test_needs_something_else():
    pytest.skip("no network here")

@pytest.mark.skip
def test_says_nothing():
    pass

@pytest.mark.xfail(reason="known")
@pytest.mark.engine
def test_known():
    assert False
"""


@pytest.fixture
def session(tmp_path):
    """Runs a test file under the same conftest."""
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text())

    def run(text: str, **environment: str) -> str:
        (tmp_path / "test_it.py").write_text(text)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-o",
            "markers=engine",
            "-rA",
            "test_it.py",
        ]
        environ = {**os.environ, "GEZEL_REQUIRE_ENGINES": "", **environment}
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120).stdout

    return run


def test_a_missing_engine_skips_for_a_person(session):
    out = session(SESSION)
    assert "2 skipped, 1 xfailed, 1 error" in out
    assert "skipped without a reason" in out


def test_a_missing_engine_fails_in_ci(session):
    out = session(SESSION, GEZEL_REQUIRE_ENGINES="1")
    assert "1 failed, 1 skipped, 1 xfailed, 1 error" in out
    assert "GEZEL_REQUIRE_ENGINES is set, and this was skipped: no engine here" in out


def test_a_file_that_leaves_itself_out_fails_in_ci(session):
    text = 'import pytest\npytest.importorskip("no_such_module", reason="bring no_such_module")\ndef test_it(): pass\n'
    assert "1 skipped" in session(text)
    out = session(text, GEZEL_REQUIRE_ENGINES="1")
    assert "1 error" in out and "bring no_such_module" in out


def test_what_a_person_has_set_does_not_reach_the_tests(session, tmp_path):
    names = ["HOME", "GEZEL_STORE", "GEZEL_CACHE", "GEZEL_STATE", "GEZEL_CONFIG"]
    text = (
        "import os, tempfile\n"
        "def test_it():\n"
        f"    assert all(os.environ[n].startswith(tempfile.gettempdir() + '/gezel-tests-') for n in {names})\n"
        "    assert not {'GEZEL_WINDOW', 'LLAMA_ARG_CTX_SIZE', 'XDG_DATA_HOME', 'COLUMNS'} & set(os.environ)\n"
        "    assert os.environ['GEZEL_LLAMA_SERVER'] == '/my/engine'\n"
    )
    mine = {name: str(tmp_path / "mine") for name in [*names, "XDG_DATA_HOME"]}
    foreign = {"GEZEL_WINDOW": "1", "LLAMA_ARG_CTX_SIZE": "2", "COLUMNS": "40"}
    out = session(text, GEZEL_LLAMA_SERVER="/my/engine", **foreign, **mine)
    assert "1 passed" in out
    assert not (tmp_path / "mine").exists()


def test_nothing_is_left_in_the_temporary_directory(session, tmp_path):
    (tmp_path / "tmp").mkdir()
    assert "1 passed" in session("def test_it(): pass\n", TMPDIR=str(tmp_path / "tmp"))
    assert not list((tmp_path / "tmp").glob("gezel-tests-*"))
    assert Path(os.environ["GEZEL_STORE"]).is_relative_to(tempfile.gettempdir())
