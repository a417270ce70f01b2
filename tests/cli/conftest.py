"""The command line as a process of its own, and what it may not touch when it says no."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gezel_rules.cli import main

OURS = ("store", "state", "config", "cache", "here")
SHIPPED = Path(__file__).parents[2]
NONSENSE = (None, -1, 0, 1 << 70, "x\x1b[2J", [], {}, [1], {"a": 1}, True, 1.5, 10**400)
"""What may stand in a record that nobody here wrote."""
Word = str | bytes | os.PathLike[str]


class Said(NamedTuple):
    """How a command ended: exit status, and its two streams as text."""

    status: int
    out: str
    err: str


class Place:
    """A user's directories under ``root``; the working directory is ``here``."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.here, self._capsys = root, root / "here", capsys
        self.here.mkdir()
        self.prompt = root / "prompt"
        self.prompt.write_text("hello")
        (root / "home").mkdir()
        for name in ("store", "state", "config", "cache"):
            monkeypatch.setenv(f"GEZEL_{name.upper()}", str(root / name))
        monkeypatch.setenv("HOME", str(root / "home"))
        monkeypatch.delenv("GEZEL_LLAMA_SERVER", raising=False)
        monkeypatch.setattr("sys.stdin", io.StringIO("hello"))
        monkeypatch.chdir(self.here)

    def start(self, *words: Word, **environment: str) -> subprocess.Popen[bytes]:
        """The command as a process; streams are pipes, a prompt on stdin."""
        return subprocess.Popen(
            [sys.executable, "-m", "gezel_rules.cli", *words], env={**os.environ, **environment},
            stdin=self.prompt.open("rb"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *words: Word, **environment: str) -> Said:
        """The command as a process, to its end."""
        child = self.start(*words, **environment)
        out, err = child.communicate(timeout=120)
        return Said(child.returncode, out.decode(), err.decode())

    def call(self, *words: str) -> Said:
        """The command in this process: the same, cheaper."""
        self._capsys.readouterr()
        try:
            status = main(words)
        except SystemExit as end:
            status = int(end.code or 0)
        return Said(status, *self._capsys.readouterr())

    def contents(self) -> dict[str, str]:
        """Every file with its digest, but for the cache's and two notes the store keeps for itself: lock files, so that
        two installers agree, and which bytes a server was found to have wrong, so that nobody pays for them again."""
        return {
            str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for name in ("store", "state", "config", "here", "home")
            for path in sorted((self.root / name).rglob("*"))
            if path.is_file() and path.suffix not in (".lock", ".rejected")
        }


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    """Directories of a person who has never used this before."""
    return Place(tmp_path, monkeypatch, capsys)


@pytest.fixture
def refused(place: Place) -> Callable[..., str]:
    """Runs a command that must be refused as bad input: exit 2, one line on stderr, nothing else changed. Returns the
    line. ``apart``: in a process of its own."""

    def check(*words: Word, apart: bool = False, status: int = 2, **environment: str) -> str:
        before = place.contents()
        said = place.run(*words, **environment) if apart else place.call(*map(os.fsdecode, words))
        assert said.status == status, said
        assert_one_line(said)
        assert place.contents() == before
        return said.err.rstrip("\n")

    return check


def assert_one_line(said: Said) -> None:
    """Nothing on stdout, one printable line on stderr, by us, that is no traceback."""
    line = said.err.removesuffix("\n")
    assert said.out == "" and line and line.isprintable(), said
    assert line.startswith("gezel-rules") and "Traceback" not in line and "fault of gezel-rules" not in line


@pytest.fixture
def copied(place: Place) -> Callable[..., Path]:
    """A copy of the shipped policies or catalog in the working directory, one text in one file replaced."""

    def copy(what: str, file: str, old: str, new: str) -> Path:
        shutil.copytree(SHIPPED / what, place.here / what, dirs_exist_ok=True)
        path = place.here / what / file
        text = path.read_text()
        assert old in text, f"{file} no longer says {old!r}"
        path.write_text(text.replace(old, new, 1))
        return place.here / what

    return copy


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times as people read them, the same wherever the tests run."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
