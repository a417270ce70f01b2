"""Number 15 of the edges: places that are full, forbidden, hidden or not text."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gguf_files import write_gguf
from real_headers import sparse as sparse

from gezel_rules.documents.source import load_yaml
from gezel_rules.errors import BadInput
from gezel_rules.places import catalog_dir, policies_dir
from gezel_rules.policy.files import all_paths
from gezel_rules.runtime import journal
from gezel_rules.runtime.launch import INCIDENTS

NOT_TEXT = os.fsdecode(b"not-\xff-text")
AS_ANYBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
"""Runs a command as nobody: root may read and write everything."""


def ask(
    *argv: str, under: tuple[str, ...] = (), cwd: Path | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    return subprocess.run(
        [*under, sys.executable, "-m", "gezel_rules.cli", *argv], cwd=cwd, timeout=120, capture_output=True,
        text=True, errors="surrogateescape", env={**os.environ, "PYTHONPATH": str(policies_dir().parent), **environ},
    )  # fmt: skip


def in_one_line(ran: subprocess.CompletedProcess[str], status: int, *said: str) -> None:
    """The command ended so, and said so in one line."""
    assert ran.returncode == status, ran
    assert ran.stderr.startswith("gezel-rules") and ran.stderr.count("\n") == 1
    assert all(word in ran.stderr for word in said), ran.stderr


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "small.gguf"
    write_gguf(path, load_yaml(catalog_dir() / "models" / "qwen3-8b.yaml").plain()["header"])
    return path


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A directory whose name is no UTF-8."""
    (tmp_path / NOT_TEXT).mkdir()
    return tmp_path / NOT_TEXT


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("this user may mount nothing: no small disk")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(disk: Path) -> None:
    """Leave no byte free."""
    with (disk / "filler").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))


def test_15_a_model_file_in_a_place_that_is_not_text(odd: Path, model: Path) -> None:
    path = shutil.copy(model, odd / f"{NOT_TEXT}.gguf")
    for argv in (
        ["memory", path],
        ["plan", path, "--host", "rtx-4090"],
        ["inspect", path],
        ["explain", path, "--host", "rtx-4090"],
    ):
        ran = ask(*map(str, argv))
        assert (ran.returncode, ran.stderr) == (0, ""), ran


def test_15_a_name_that_is_not_text_is_kept_and_read_back(tmp_path: Path) -> None:
    path = journal.append(tmp_path, "20261201T000000-00000a", {"model": NOT_TEXT})
    assert [record for _, record in journal.records(tmp_path)] == [{"model": NOT_TEXT}]
    journal.amend(path, outcome=NOT_TEXT)
    assert next(journal.records(tmp_path))[1]["outcome"] == NOT_TEXT


def test_15_policies_store_catalog_state_and_home_that_are_not_text(odd: Path) -> None:
    for name, source in (("policies", policies_dir()), ("catalog", catalog_dir())):
        shutil.copytree(source, odd / name)
    places = ["--policies", str(odd / "policies"), "--catalog", str(odd / "catalog"), "--store", str(odd / "store")]
    environ = {"HOME": str(odd), "GEZEL_CACHE": str(odd / "cache"), "GEZEL_STATE": str(odd / "state")}
    for argv in (["plan", "qwen3-8b", "--host", "rtx-4090"], ["ls"], ["ps"], ["policy", "check"], ["catalog", "check"]):
        for _ in range(2):  # the second time from the cache
            ran = ask(*places, *argv, **environ)
            assert ran.returncode == 0 and "fault" not in ran.stderr, ran


def test_15_a_model_file_whose_name_begins_with_dashes(tmp_path: Path, model: Path) -> None:
    shutil.copy(model, tmp_path / "--x.gguf")
    for argv in (["memory", "--", "--x.gguf"], ["plan", "--host", "rtx-4090", "--", "--x.gguf"]):
        ran = ask(*argv, cwd=tmp_path)
        assert (ran.returncode, ran.stderr) == (0, ""), ran
    ran = ask("run", "--max-tokens", "1", "--", "--y.gguf", "hello", cwd=tmp_path, GEZEL_LLAMA_SERVER=sys.executable)
    in_one_line(ran, 2, "./--y.gguf: ")


def test_15_a_full_disk_is_said_with_the_file_and_nothing_stays(small_disk: Path, model: Path) -> None:
    fill(small_disk)
    ran = ask("plan", str(model), "--host", "rtx-4090", GEZEL_CACHE=str(small_disk / "cache"))
    assert (ran.returncode, ran.stderr) == (0, "")  # a cache that cannot be written is no fault
    with pytest.raises(OSError, match="No space left") as raised:
        journal.append(small_disk / "state", "20261201T000000-00000a", {"what": "x" * 9000})
    assert Path(raised.value.filename).parent == small_disk / "state" / journal.FOLDER
    assert [path.name for path in small_disk.rglob("*") if path.is_file()] == ["filler"]


def test_15_what_may_not_be_read_is_bad_input(tmp_path: Path, model: Path) -> None:
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root, who can be somebody else")
    if subprocess.run(
        [*AS_ANYBODY, sys.executable, "-c", "import gezel_rules"],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(policies_dir().parent)},
    ).returncode:
        pytest.skip("nobody else may read this code here")
    model.chmod(0)
    tmp_path.chmod(0o755)
    for argv in (["memory", str(model)], ["plan", str(model), "--host", "rtx-4090"], ["log", str(model)]):
        in_one_line(ask(*argv, under=AS_ANYBODY, GEZEL_CACHE="", GEZEL_STATE=""), 2, "ermission denied")


def test_15_policies_that_nobody_would_read_are_a_problem(tmp_path: Path) -> None:
    shutil.copytree(policies_dir(), tmp_path / "policies")
    shutil.copy(policies_dir() / "runtime" / "supervision.yaml", tmp_path / "policies" / "stray.yaml")
    with pytest.raises(BadInput, match=r"stray\.yaml: not in a folder"):
        all_paths(tmp_path / "policies")
    in_one_line(ask("policy", "check", str(tmp_path / "policies")), 2, "stray.yaml: not in a folder")
    in_one_line(ask("--policies", str(tmp_path / "policies"), "plan", "qwen3-8b", "--host", "rtx-4090"), 2, "stray")


def test_15_the_newest_records_stay(tmp_path: Path) -> None:
    from gezel_rules.runtime.state_files import forget_oldest

    written = [journal.append(tmp_path, f"20261201T00000{number}-00000a", {"number": number}) for number in range(5)]
    forget_oldest(tmp_path / journal.FOLDER, 2)
    assert [path for path, _ in journal.records(tmp_path)] == sorted(written)[-2:]  # names sort by the second
    forget_oldest(tmp_path / INCIDENTS, 2)  # no folder yet: nothing to do


def test_15_proc_is_hidden(tmp_path: Path, model: Path) -> None:
    hidden = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /proc && exec "$@"', "sh")
    if subprocess.run([*hidden, "true"], capture_output=True).returncode:
        pytest.skip("this user may mount nothing: /proc stays")
    for argv in (["plan", "qwen3-8b"], ["plan", str(model), "--json"], ["ps"], ["doctor"], ["devices"]):
        ran = ask(*argv, under=hidden)
        assert ran.returncode in (0, 1, 3), ran  # 3: an engine whose libraries are found by way of /proc
        assert "a fault of" not in ran.stderr and "Traceback" not in ran.stderr, ran
