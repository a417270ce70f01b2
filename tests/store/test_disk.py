"""The disk's faults and the machine's: full, read-only, two installers, clocks that jump, names that would escape."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gezel_rules.errors import BadInput, Refused, TransferFailed
from gezel_rules.store import install as install_module
from gezel_rules.store.install import InstallPlan, Source, Wanted, install, installed, verify
from gezel_rules.store.locks import locked
from gezel_rules.store.part import Part
from gezel_rules.store.progress import Limit
from gezel_rules.store.troubles import DiskFull

from .conftest import Said, gguf
from .hub_server import File, Server

DATA = gguf(3_000_000)
SHA = hashlib.sha256(DATA).hexdigest()
PATH = "/x/model.gguf"


def plan(server: Server, size: int | None = len(DATA), name: str = "model.gguf", directory: str = "m") -> InstallPlan:
    source = Source("url", server.url(PATH))
    return InstallPlan(directory, directory, (Wanted("model", name, size, SHA, (source,)),), fingerprint="f")


def mounted(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no tmpfs of our own here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path / "small", "size=2m")


def test_no_room_is_said_before_the_first_byte(server: Server, small_disk: Path) -> None:
    server.files[PATH] = File(DATA)
    with pytest.raises(Refused, match=r"3 MiB to fetch, 2 MiB free; make 65 MiB room or choose another --store"):
        install(plan(server), small_disk)
    assert not server.gets()


def test_what_can_be_linked_needs_no_room(small_disk: Path) -> None:
    mine = small_disk / "mine.gguf"
    mine.write_bytes(DATA[:1_500_000])
    digest = hashlib.sha256(DATA[:1_500_000]).hexdigest()
    wanted = Wanted("model", "m.gguf", 1_500_000, digest, (Source("path", str(mine)),))
    model = install(InstallPlan("m", "m", (wanted,)), small_disk / "store")
    assert Path(model.files[0].path).samefile(mine)


def test_disk_full_on_the_way_keeps_the_part(server: Server, small_disk: Path) -> None:
    """The size was not known before; then somebody makes room."""
    server.files[PATH] = File(DATA)
    with pytest.raises(DiskFull, match="no room left"):
        install(plan(server, size=None), small_disk)
    assert installed(small_disk) == []
    subprocess.run(["mount", "-o", "remount,size=9m", small_disk], check=True)
    before = server.sent[PATH]
    model = install(plan(server, size=None), small_disk)
    assert Path(model.files[0].path).read_bytes() == DATA
    assert server.gets()[-1].headers["Range"]
    assert server.sent[PATH] - before < len(DATA)


def test_quota_in_place_of_a_small_disk(server: Server, store: Path) -> None:
    """The same by a limit on file sizes, which needs no root."""
    script = (
        "import resource, signal, sys; from pathlib import Path\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "from gezel_rules.store.install import *; from gezel_rules.errors import GezelError\n"
        "url, sha, store = sys.argv[1:]\n"
        "file = Wanted('model', 'model.gguf', None, sha, (Source('url', url),))\n"
        "try: install(InstallPlan('m', 'm', (file,)), Path(store))\n"
        "except GezelError as error: print(error); sys.exit(error.exit_status)\n"
    )
    server.files[PATH] = File(DATA)
    arguments = [sys.executable, "-c", script, server.url(PATH), SHA, store]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3, done.stderr
    assert "no room left" in done.stdout and done.stderr == ""
    before = server.sent[PATH]
    install(plan(server), store)
    assert server.sent[PATH] - before < len(DATA)


def test_read_only_store(server: Server, tmp_path: Path) -> None:
    """Listing works; installing says so in one line and asks no server."""
    server.files[PATH] = File(DATA)
    for folder in mounted(tmp_path / "ro", "size=96m"):
        model = install(plan(server), folder)
        server.seen.clear()
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        assert installed(folder) == [model]
        assert not any(verdict.problem for verdict in verify(folder, "m"))
        with pytest.raises(BadInput, match="cannot be written"):
            install(plan(server, directory="other"), folder)
        assert not server.seen
        with pytest.raises(BadInput, match="cannot be written"):
            install_module.remove(folder, "m")
        assert installed(folder) == [model]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind root")
def test_store_without_permission(server: Server, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    with pytest.raises(BadInput, match="cannot be written"):
        install(plan(server), tmp_path / "locked" / "store")


def test_the_store_is_a_file(server: Server, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a directory")
    with pytest.raises(BadInput):
        install(plan(server), tmp_path / "store")


# --- two installers --------------------------------------------------------------------------------------------------


def _install(args: tuple[InstallPlan, Path]) -> str:
    return install(*args).files[0].sha256


def test_four_installers_at_once_fetch_it_once(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, rate=6e6)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert pool.map(_install, [(plan(server), store)] * 4) == [SHA] * 4
    assert server.sent[PATH] == len(DATA)
    assert not any(verdict.problem for verdict in verify(store, "m"))


def test_the_second_waits_and_says_so(store: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from gezel_rules.store.locks import locked\n"
        "with locked(Path(sys.argv[1]), 'm'): print('held', flush=True); time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, store], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    said = Said()
    with pytest.raises(Refused, match="another process"), locked(store, "m", said.note, wait=0.3):
        pass
    assert said.notes == ["m: waiting for another process that works on it"]
    holder.kill()
    holder.wait()
    with locked(store, "m", wait=5.0):  # the dead process's lock is nobody's
        pass
    holder.stdout.close()


# --- clocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [-7 * 86400.0, 7 * 86400.0], ids=["a week back", "a week ahead"])
def test_clock_jump_in_the_middle(server: Server, store: Path, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    real, began = time.time, time.monotonic()
    monkeypatch.setattr(time, "time", lambda: real() + (jump if time.monotonic() - began > 0.15 else 0.0))
    server.files[PATH] = File(DATA, faults=[("cut", 1_000_000), ("status", 503, {"Retry-After": "0"})])
    model = install(plan(server), store, limit=Limit(8e6))
    assert model.files[0].sha256 == SHA
    assert time.monotonic() - began < 20
    os.utime(model.files[0].path, (real() + jump, real() + jump))
    server.seen.clear()
    assert install(plan(server), store).files[0].sha256 == SHA
    assert not server.seen


# --- parts -----------------------------------------------------------------------------------------------------------


def test_a_damaged_part_is_cut_back_to_what_is_proven(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, faults=[("cut", 1000000), ("status", 404)])
    with pytest.raises(TransferFailed):
        install(plan(server), store)
    path = store / ".staging" / "m" / "model.gguf.part"
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    server.files[PATH].faults.clear()
    model = install(plan(server), store)
    assert Path(model.files[0].path).read_bytes() == DATA
    assert "Range" not in server.gets()[-1].headers


def test_a_part_with_zeros_after_a_power_cut_is_cut_back(tmp_path: Path) -> None:
    """The log survived, the last blocks did not."""
    part = Part(tmp_path / "x.part")
    part.open()
    for piece in (b"a" * 1000, b"b" * 1000):
        os.write(part.fd, piece)
        part.hasher.update(piece)
        part.offset += len(piece)
        part.checkpoint(part.offset, part.hasher)
    part.close()
    data = part.path.read_bytes()
    part.path.write_bytes(data[:1500] + bytes(500))
    again = Part(tmp_path / "x.part")
    again.open()
    assert again.offset == 1000
    assert again.path.stat().st_size == 1000
    assert again.hasher.hexdigest() == hashlib.sha256(b"a" * 1000).hexdigest()
    again.close()


@pytest.mark.parametrize("log", [b"", b"{", b"null\n", b'{"at": -5, "sha256": "x"}\n', b"\xff\xfe\n", b"[1]\n" * 1000])
def test_a_log_that_is_nonsense_proves_nothing(tmp_path: Path, log: bytes) -> None:
    (tmp_path / "x.part").write_bytes(b"a" * 1000)
    (tmp_path / "x.part.log").write_bytes(log)
    part = Part(tmp_path / "x.part")
    part.open()
    assert part.offset == 0
    assert part.path.stat().st_size == 0
    part.close()


def test_memory_stays_flat(server: Server, store: Path) -> None:
    """A file many times larger than the buffers."""
    size = 300 << 20
    script = (
        "import resource, sys; from pathlib import Path; from gezel_rules.store.install import *\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak(); url, store = sys.argv[1:]\n"
        "file = Wanted('model', 'model.bin', None, None, (Source('url', url),))\n"
        "install(InstallPlan('m', 'm', (file,)), Path(store))\n"
        "print(peak() - before)\n"
    )
    server.files[PATH] = File(bytes(size))
    done = subprocess.run(
        [sys.executable, "-c", script, server.url(PATH), store], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64 << 10  # ru_maxrss is in KiB on Linux
