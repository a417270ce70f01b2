"""A directory of policies as people named it."""

from __future__ import annotations

import os
from pathlib import Path


def named_directory(path: Path) -> Path:
    """With a name of its own, also for ``.``: problems begin with it."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links and rename the directory
