"""Files that only we can have written are read; whatever others could have put there is as good as not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gezel_rules.owned import is_owned, make_owned, read_owned, write_owned
from gezel_rules.store.durable import replace_durably

ANOTHER = 65534  # nobody


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "of-one" / "set.json"
    write_owned(path, b"ours")
    return path


def test_what_we_wrote_is_read(kept: Path) -> None:
    assert read_owned(kept) == b"ours"
    assert [oct(path.stat().st_mode & 0o777) for path in (kept, kept.parent, kept.parent.parent)] == [
        "0o600", "0o700", "0o700",
    ]  # fmt: skip
    assert list(kept.parent.iterdir()) == [kept]


def test_a_wide_umask_makes_no_difference(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_owned(tmp_path / "a" / "b" / "set.json", b"ours")
    finally:
        os.umask(before)
    assert read_owned(tmp_path / "a" / "b" / "set.json") == b"ours"
    assert is_owned(tmp_path / "a")


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write(kept: Path, mode: int) -> None:
    kept.chmod(mode)
    assert read_owned(kept) is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_where_others_can_write(kept: Path, mode: int) -> None:
    kept.parent.chmod(mode)
    assert not is_owned(kept.parent)
    assert read_owned(kept) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("which", ["file", "folder"])
def test_what_is_anothers(kept: Path, which: str) -> None:
    os.chown(kept if which == "file" else kept.parent, ANOTHER, ANOTHER)
    assert read_owned(kept) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_folder_behind_anothers_link(kept: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "cache", target_is_directory=True)
    there = link / "of-one" / "set.json"
    assert read_owned(there) == b"ours"  # where we made the link
    os.lchown(link, ANOTHER, ANOTHER)
    assert read_owned(there) is None and not is_owned(there.parent)
    for path in (there, link / "set.json", link / "another" / "set.json"):
        with pytest.raises(OSError, match="behind another user's link"):
            write_owned(path, b"new")
    assert list((tmp_path / "cache").rglob("*.json")) == [kept] and kept.read_bytes() == b"ours"


def test_a_link_is_not_followed_and_is_replaced(kept: Path) -> None:
    elsewhere = kept.with_name("elsewhere")
    kept.rename(elsewhere)
    kept.symlink_to(elsewhere)
    assert read_owned(kept) is None
    write_owned(kept, b"new")
    assert (read_owned(kept), elsewhere.read_bytes()) == (b"new", b"ours")


def test_a_planted_name_of_ours_is_not_written_through(kept: Path, tmp_path: Path) -> None:
    """The file is staged under a name that others can guess."""
    target = tmp_path / "target"
    target.write_bytes(b"theirs")
    kept.with_name(f".{kept.name}.{os.getpid()}").symlink_to(target)
    write_owned(kept, b"new")
    assert (target.read_bytes(), read_owned(kept)) == (b"theirs", b"new")


def test_what_is_no_file(kept: Path) -> None:
    os.mkfifo(kept.with_name("pipe"))
    assert read_owned(kept.with_name("pipe")) is None
    assert read_owned(kept.parent) is None
    assert read_owned(kept.with_name("nothing")) is None
    assert read_owned(kept, most=3) is None


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError):
        make_owned(tmp_path / "file" / "below")
    with pytest.raises(OSError):
        write_owned(tmp_path / "file" / "below" / "set.json", b"x")


def test_a_signal_while_a_file_is_written_leaves_nothing(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_owned(kept, b"others")
    with pytest.raises(KeyboardInterrupt):
        replace_durably(kept, b"others")
    monkeypatch.undo()
    assert read_owned(kept) == b"ours" and list(kept.parent.iterdir()) == [kept]
