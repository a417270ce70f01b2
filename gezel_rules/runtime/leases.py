"""Memory that running engines hold: a lease per engine, worth nothing once its process is gone.

A plan made now must leave room for what other launches were promised, also while they are still loading and the
measured free memory does not show it yet.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gezel_rules.runtime import process
from gezel_rules.runtime.state_files import each_json, new_id, write_json

FOLDER = "leases"


def take(state_dir: Path, pools: Mapping[str, int], pid: int | None = None) -> Path:
    """Reserve bytes per pool (``GPU0``, ``host``) for as long as the process lives. Returns the lease file."""
    path = state_dir / FOLDER / f"{new_id()}.json"
    hold(path, pools, os.getpid() if pid is None else pid)
    return path


def hold(path: Path, pools: Mapping[str, int], pid: int) -> None:
    """Write a lease for a process: also to hand one on, from us to the engine we started."""
    write_json(path, {"pid": pid, "started": process.started(pid), "pools": dict(pools)})


def release(path: Path) -> None:
    """Give a lease back; one that is gone is no error."""
    path.unlink(missing_ok=True)


def held(state_dir: Path) -> dict[str, int]:
    """Bytes reserved per pool by living processes. Leases of dead ones are removed."""
    total: dict[str, int] = {}
    for path, lease in each_json(state_dir / FOLDER):
        if not _lives(lease):
            release(path)
            continue
        for pool, size in _pools(lease):
            total[pool] = total.get(pool, 0) + size
    return total


def _lives(lease: Mapping[str, Any]) -> bool:
    pid, token = lease.get("pid"), lease.get("started")
    return isinstance(pid, int) and pid > 0 and isinstance(token, str) and process.alive(pid, token)


def _pools(lease: Mapping[str, Any]) -> list[tuple[str, int]]:
    pools = lease.get("pools")
    if not isinstance(pools, dict):
        return []
    return [(pool, size) for pool, size in pools.items() if isinstance(size, int) and size > 0]
