"""Debian's browser without a window, for tests of pages."""

from __future__ import annotations

import os
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import NamedTuple

import pytest

WITHOUT_WINDOW = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr")


class Seen(NamedTuple):
    """What a browser made of a page: the bytes of its pixels, and what its console said."""

    pixels: bytes
    console: list[str]


def seen(page: Path, folder: Path) -> Seen:
    """Show a page; skips where there is no chromium, and fails there in CI, which installs it."""
    program = shutil.which("chromium")
    if program is None and os.environ.get("GEZEL_REQUIRE_ENGINES", "0") in ("", "0"):
        pytest.skip("no chromium here: apt-get install chromium")
    assert program, "no chromium here: apt-get install chromium"
    picture = folder / f"{page.stem}.png"
    own = (f"--user-data-dir={folder / 'profile'}", "--window-size=1200,1600", f"--screenshot={picture}")
    ended = subprocess.run(
        [program, *WITHOUT_WINDOW, *own, page.as_uri()], stdin=subprocess.DEVNULL, capture_output=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stderr.decode("utf-8", "replace").splitlines()
    return Seen(_pixels(picture.read_bytes()), [line for line in lines if ":CONSOLE" in line])


def _pixels(png: bytes) -> bytes:
    """The filtered rows of a PNG: an empty page is nearly all zeros."""
    at, packed = 8, b""
    while at < len(png):
        size = int.from_bytes(png[at : at + 4], "big")
        packed += png[at + 8 : at + 8 + size] if png[at + 4 : at + 8] == b"IDAT" else b""
        at += size + 12
    return zlib.decompress(packed)
