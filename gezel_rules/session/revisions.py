"""Policies as a maintainer names them: a folder, or a git revision of the folder that is worked on."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gezel_rules.errors import BadInput, why
from gezel_rules.facts.printable import printable
from gezel_rules.record import NamedTuple

MOST_BYTES = 64 << 20
"""Of a revision's policies; the shipped ones take 200 KiB."""
TIMEOUT = 30.0  # seconds; git answers at once


class Folder(NamedTuple):
    """Policies on disk, and what they are called: the word that named them."""

    path: Path
    called: str


@contextmanager
def policies_of(word: str, worked_on: Path) -> Iterator[Folder]:
    """The folder that a word names, else the policies of that git revision in the repository of those ``worked_on``;
    written out for the length of the block. Raises BadInput for what is neither."""
    if Path(word).is_dir():
        yield Folder(_named(Path(word)), word)
        return
    folder = _named(worked_on)
    with tempfile.TemporaryDirectory(prefix="gezel-rules-policies-") as root:
        _write_out(_archive(word, folder), Path(root))
        yield Folder(Path(root) / folder.name, word)


def _named(path: Path) -> Path:
    """With a name of its own, also for ``.``; links keep theirs."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _write_out(archive: bytes, root: Path) -> None:
    """The plain files of an archive; links are none of a policy."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            content, path = files.extractfile(member) if member.isfile() else None, root / member.name
            if content is not None and path.resolve().is_relative_to(root.resolve()):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())


def _archive(revision: str, worked_on: Path) -> bytes:
    """The tracked files of a folder as they were at a revision, under the folder's own name."""
    said = printable(revision, 60)
    if not worked_on.is_dir():
        raise BadInput(f"{worked_on}: no such policy directory")
    neither = f"{said}: neither a folder nor a git revision"
    if revision.startswith("-"):
        raise BadInput(neither)
    try:
        commit = _git(worked_on, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except BadInput as error:
        raise BadInput(f"{neither} ({error})") from None
    if not commit.strip().isalnum():  # nothing, or a range
        raise BadInput(f"{neither} of the repository that {worked_on} is in")
    tree = _git(worked_on, "rev-parse", "--verify", "--quiet", f"{commit.decode().strip()}:./").decode().strip()
    if not tree:
        raise BadInput(f"{said}: this revision has no {worked_on.name}")
    top = Path(os.fsdecode(_git(worked_on, "rev-parse", "--show-toplevel").rstrip(b"\n")))
    return _git(top, "archive", "--format=tar", f"--prefix={worked_on.name}/", tree)


def _git(folder: Path, *words: str) -> bytes:
    """What git says; nothing where it says no. Raises BadInput when there is no git or no repository."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(["git", *words], cwd=folder, env=environ, capture_output=True, timeout=TIMEOUT)
    except FileNotFoundError:
        raise BadInput("git is not installed") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise BadInput(f"git: {why(error) if isinstance(error, OSError) else 'no answer'}") from None
    if done.returncode > 1:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise BadInput(printable(lines[-1]) if lines else f"git: status {done.returncode}")
    if len(done.stdout) > MOST_BYTES:
        raise BadInput(f"git: more than {MOST_BYTES >> 20} MiB of policies")
    return done.stdout
