"""The files of a policy directory, by name alone."""

from __future__ import annotations

import os
from pathlib import Path

from gezel_rules.errors import BadInput, why

LOGS = "logs"
"""Folders of log policies: rules over an engine's log, with a grammar and a checker of their own."""


def all_paths(directory: Path) -> list[Path]:
    """Every policy file of a directory, in name order, but for tests beside them.

    Raises BadInput when there is no such directory, no policy in it, or one that nobody would read.
    """
    return list(map(Path, file_names(directory)))


def file_names(directory: Path) -> list[str]:
    """The same as text, for every start: thirty paths take longer to make than to read."""
    if not directory.is_dir():
        raise BadInput(f"{directory}: no such policy directory")
    found = [(base, name) for base, _, files in os.walk(directory, onerror=_unreadable) for name in files]
    names = [os.path.join(base, name) for base, name in found if _is_policy(name)]  # noqa: PTH118
    if stray := [name for base, name in found if _is_policy(name) and base == str(directory)]:
        raise BadInput(f"{directory}/{min(stray)}: not in a folder (expected <area>/<name>.yaml)")
    if not names:
        raise BadInput(f"{directory}: no policy files (expected <area>/<name>.yaml)")
    return sorted(names)


def _unreadable(error: OSError) -> None:
    raise BadInput(f"{error.filename}: {why(error)}") from None


def _is_policy(name: str) -> bool:
    return name.endswith(".yaml") and not name.endswith("_test.yaml")


def policy_paths(directory: Path) -> list[Path]:
    """The files of tables and decisions."""
    return [path for path in all_paths(directory) if not is_log(path, directory)]


def log_policy_paths(directory: Path) -> list[Path]:
    """The log policies."""
    return [path for path in all_paths(directory) if is_log(path, directory)]


def is_log(path: Path, directory: Path) -> bool:
    """Whether a file is a log policy: it lies in a folder of such."""
    return LOGS in path.relative_to(directory).parts[:-1]


def shown_name(path: Path, directory: Path) -> str:
    """How people know the file: ``policies/kv/kv.yaml``, wherever the set is installed."""
    name = directory.name or directory.absolute().name
    return f"{name}/{path.relative_to(directory).as_posix()}"
