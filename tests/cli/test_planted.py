"""Another user can write where we keep models and caches, and plants links and files: a user who is not root is told of
each in one line, and nothing outside is touched."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gezel_rules.cli import main
from gezel_rules.places import catalog_dir
from tests.store.conftest import gguf
from tests.store.hub_server import File, Server

ANOTHER = 65534  # nobody
SIZE = 200_000
ENTRY = """\
id: {name}
name: Small
family: small
summary: A header and noise.
quant: Q4_K_M
files:
  - role: model
    name: model.gguf
    size: {size}
    sha256: "{sha256}"
    sources:
      - {{url: "{url}"}}
"""
CALLS = """\
import contextlib, io, json, os, sys
from gezel_rules.cli import main
assert os.geteuid() != 0
told = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
    told.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(told))
"""
pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such owners and modes")


class User(NamedTuple):
    """How a command is started as a user without privileges, and whose files are ours then."""

    prefix: tuple[str, ...]
    uid: int


@pytest.fixture(scope="module")
def user() -> User:
    """Who runs the tests, if that is not root; else another, or root's own files without root's powers."""
    if os.geteuid() != 0:
        return User((), os.geteuid())
    users = (
        User(("setpriv", "--reuid", "1001", "--regid", "1001", "--clear-groups", "--inh-caps=-all"), 1001),
        User(("unshare", "--user", "--map-user=1000", "--map-group=1000"), 0),
    )
    can = "import gezel_rules.cli, os, subprocess, sys; assert os.geteuid(); subprocess.run([sys.executable, '-c', ''])"
    for one in users:
        if shutil.which(one.prefix[0]) and not subprocess.call([*one.prefix, sys.executable, "-c", can]):
            return one
    pytest.fail("neither setpriv nor unshare lets root give up its powers here")


class Place:
    """Folders of that user, world-writable where things are planted; a folder outside, with a file in it. Model ``m``
    is installed, ``n`` can be pulled."""

    def __init__(self, base: Path, server: Server, user: User) -> None:
        self.base, self.user = base, user
        self.store, self.cache, self.outside = base / "store", base / "cache", base / "outside"
        (base / "catalog" / "models").mkdir(parents=True)
        for name in ("m", "n"):
            data = gguf(SIZE, seed=ord(name))
            server.files[f"/{name}/model.gguf"] = File(data)
            about = {"size": SIZE, "sha256": hashlib.sha256(data).hexdigest(), "url": server.url(f"/{name}/model.gguf")}
            (base / "catalog" / "models" / f"{name}.yaml").write_text(ENTRY.format(name=name, **about))
        assert main([*self.words(), "pull", "m"]) == 0
        for folder in (self.cache, base / "state", self.outside, self.outside / "removed-precious"):
            folder.mkdir()
        (self.outside / "model.gguf").write_bytes(b"somebody's own")
        (self.outside / "x.lock").write_bytes(b"locked")

    def words(self) -> list[str]:
        return ["--catalog", str(self.base / "catalog"), "--store", str(self.store)]

    def open_to_all(self) -> None:
        """The files become the user's; everybody may write into the folders of store and cache."""
        for path in [self.base, *self.base.rglob("*")]:
            if os.geteuid() == 0:
                os.lchown(path, self.user.uid, -1)
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o777 if path.is_relative_to(self.store) or path == self.cache else 0o755)

    def run(self, *commands: tuple[str, ...]) -> list[tuple[int, str, str]]:
        calls = json.dumps([[*self.words(), *words] for words in commands])
        places = {f"GEZEL_{name.upper()}": str(self.base / name) for name in ("cache", "state", "config")}
        done = subprocess.run(
            [*self.user.prefix, sys.executable, "-c", CALLS, calls], capture_output=True, text=True, timeout=120,
            env={**os.environ, **places, "HOME": str(self.base)}, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return [(status, out, err) for status, out, err in json.loads(done.stdout)]

    def untouched(self) -> list[Any]:
        """What lies outside: names, contents, and when each was written."""
        paths = sorted(self.outside.rglob("*"))
        return [(p, p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in [self.outside, *paths]]


@pytest.fixture
def place(user: User) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="gezel-planted-") as folder, Server() as server:
        yield Place(Path(folder), server, user)


def to_folder(at: Path, outside: Path) -> None:
    at.symlink_to(outside, target_is_directory=True)


def to_file(at: Path, outside: Path) -> None:
    at.symlink_to(outside / "model.gguf")


def second_name(at: Path, outside: Path) -> None:
    os.link(outside / "model.gguf", at)


def pipe(at: Path, outside: Path) -> None:
    os.mkfifo(at)


def a_file(at: Path, outside: Path) -> None:
    at.write_bytes(b'{"manifest": 1}')


KINDS: dict[str, tuple[str, Callable[[Path, Path], None]]] = {
    "a link for the staging folder of all": (".staging", to_folder),
    "a link for the staging folder of a model": (".staging/n", to_folder),
    "a link for what is ready": (".staging/n/ready", to_folder),
    "a link for a ready file": (".staging/n/ready/model.gguf", to_file),
    "a link for the part": (".staging/n/model.gguf.part", to_file),
    "a second name of the part": (".staging/n/model.gguf.part", second_name),
    "a pipe for the part": (".staging/n/model.gguf.part", pipe),
    "a link for the part's log": (".staging/n/model.gguf.part.log", to_file),
    "a link for what arrived wrong": (".staging/n/model.gguf.rejected", to_file),
    "a link for a removed model": (".staging/removed-x", to_folder),
    "a file for the staging folder of all": (".staging", a_file),
    "a file for the staging folder of a model": (".staging/n", a_file),
    "a file for the locks": (".locks", a_file),
    "a link for the locks": (".locks", to_folder),
    "a link for a lock": (".locks/n.lock", to_file),
    "a link for a model": ("n", to_folder),
    "a link for the manifest": ("m/manifest.json", to_file),
    "a link for the manifest on its way": ("m/manifest.json.new", to_file),
    "a second name of the manifest on its way": ("m/manifest.json.new", second_name),
    "a pipe for the manifest": ("m/manifest.json", pipe),
    "a manifest that is none": ("m/manifest.json", a_file),
    "a link for an old generation": ("m/0123456789ab", to_folder),
    "a link for a model's file": ("m/GENERATION/model.gguf", to_file),
}


def plant(place: Place, where: str, how: Callable[[Path, Path], None]) -> Path:
    """Plant something in the store, as another user where that can be done; where it lies."""
    for folder in (".staging/n/ready", ".locks"):
        (place.store / folder).mkdir(parents=True, exist_ok=True)
    (generation,) = (path.name for path in (place.store / "m").iterdir() if path.is_dir())
    at = place.store / where.replace("GENERATION", generation)
    if at.is_dir():
        shutil.rmtree(at)
    at.unlink(missing_ok=True)
    place.open_to_all()
    how(at, place.outside)
    if how is not second_name:
        give_away(at)
    return at


def give_away(path: Path) -> None:
    """Make a file another user's, where that can be done."""
    if os.geteuid() == 0:
        os.lchown(path, ANOTHER, ANOTHER)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_planted_in_the_store(place: Place, kind: str) -> None:
    at = plant(place, *KINDS[kind])
    before = place.untouched()
    looked, *others = place.run(
        ("verify",), ("ls", "--json"), ("pull", "n"), ("pull", "m"), ("verify", "--repair"), ("rm", "n"), ("rm", "m"),
    )  # fmt: skip
    assert place.untouched() == before
    assert [line for line in looked[1].splitlines() if f"{at}: " in line], looked
    for status, _, err in others:
        assert status in (0, 1, 2, 3), err
        for line in err.splitlines():
            assert line.isprintable() and "Traceback" not in line and "fault of gezel-rules" not in line, err
    assert all(err.count("\n") == 1 for status, _, err in others if status >= 2)


def test_what_is_planted_in_the_cache(place: Place) -> None:
    """Somebody else's files under the names of ours, then links there, then links for folders: as good as not there."""
    place.open_to_all()
    plan = ("--catalog", str(catalog_dir()), "plan", "gemma-3-270m", "--host", "rtx-4090", "--json")
    (status, planned, _), (_, found, _) = place.run(plan, ("doctor", "--json"))
    said = f"{place.cache} is not writable by you alone: nothing that is kept there is used"
    assert said in [finding["what"] for finding in json.loads(found)]
    kept, before = [path for path in place.cache.rglob("*") if path.is_file()], place.untouched()
    assert status == 0 and kept

    def as_before() -> None:
        (after, again, _), (_, doctor, _) = place.run(plan, ("doctor", "--json"))
        assert (after, again, said in doctor) == (0, planned, True) and place.untouched() == before

    for path in kept:
        path.write_bytes(b"{}")
        give_away(path)
    as_before()
    for path in kept:
        path.unlink()
        to_file(path, place.outside)
        give_away(path)
    as_before()
    if os.geteuid() == 0:  # a link of our own would be our own wish
        for folder in (place.cache / "engines", place.cache):
            shutil.rmtree(folder, ignore_errors=True)
            to_folder(folder, place.outside)
            give_away(folder)
            as_before()
            folder.unlink()
            folder.mkdir()
            folder.chmod(0o777)
