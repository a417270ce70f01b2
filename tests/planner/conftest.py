"""A small world for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from worlds import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A catalog with one host (``card``: CUDA, 24 GiB, nothing held) and no models yet."""
    return World(tmp_path)
