"""Installing a model: plan, reuse, fetch, verify, publish. A crash at any point leaves the old model or the new one."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Sequence
from pathlib import Path

from gezel_rules.errors import BadInput, Refused, TransferFailed, why
from gezel_rules.store.fetch import Bench, Known, bring, kept, learn, room
from gezel_rules.store.integrity import unchanged
from gezel_rules.store.locks import locked
from gezel_rules.store.manifest import read_manifest
from gezel_rules.store.names import MANIFEST, STAGING, check_directory, check_names
from gezel_rules.store.plan import plan_install
from gezel_rules.store.progress import Limit, Progress
from gezel_rules.store.publish import clear, described, generation_of, publish
from gezel_rules.store.shelf import installed, remove, verify
from gezel_rules.store.wanted import Installed, InstalledFile, InstallPlan, Source, Wanted
from gezel_rules.store.web import Web

__all__ = [
    "InstallPlan",
    "Installed",
    "InstalledFile",
    "Source",
    "Wanted",
    "install",
    "installed",
    "plan_install",
    "remove",
    "verify",
]

SPARE_BYTES = 64 << 20  # left free on the volume: manifests, logs and other people's work


def install(
    plan: InstallPlan, store: Path, progress: Progress | None = None, limit: Limit | None = None, web: Web | None = None
) -> Installed:
    """Bring a model to the store and publish it; what is there already is not fetched again.

    Raises BadInput (unsafe names, a store that cannot be written), Refused (no room), TransferFailed (no source gave
    the right bytes); the old model stays in each case, and what has arrived waits for the next try.
    """
    check_names(wanted.name for wanted in plan.wanted)
    check_directory(store, plan.directory)
    if not plan.wanted:
        raise BadInput(f"{plan.model_id}: nothing to install")
    progress = progress or Progress()
    with locked(store, plan.directory, progress.note):
        bench = Bench(store, store / STAGING / plan.directory, plan.directory, web or Web(), progress, limit or Limit())
        try:
            return _install(plan, bench)
        except OSError as error:
            raise _disk(error, store) from None
        finally:
            bench.web.close()
            _tidy(bench)


def _install(plan: InstallPlan, bench: Bench) -> Installed:
    current = _current(plan, bench)
    found = {wanted.name: kept(wanted, current, bench) for wanted in plan.wanted}
    if current and all(found.values()) and _same(plan, current):
        return _refreshed(plan, current, found, bench)
    known = [learn(wanted, bench) for wanted in plan.wanted if not found[wanted.name]]
    for item in known:
        found[item.wanted.name] = kept(item.wanted, current, bench, item.sha256)
    missing = [item for item in known if not found[item.wanted.name]]
    bench.ready.mkdir(parents=True, exist_ok=True)
    _check_space(missing, bench)
    for item in missing:
        found[item.wanted.name] = bring(item, bench)
    return publish(plan, _ordered(plan, found), bench)


def _ordered(plan: InstallPlan, found: dict[str, InstalledFile | None]) -> list[InstalledFile]:
    files = [(wanted, found[wanted.name]) for wanted in plan.wanted]
    return [file._replace(role=wanted.role) for wanted, file in files if file]


def _current(plan: InstallPlan, bench: Bench) -> Installed | None:
    """The model as published; a broken manifest counts as none (its files are still looked at)."""
    if not (bench.store / plan.directory / MANIFEST).exists():
        return None
    try:
        current = read_manifest(bench.store, plan.directory)
    except BadInput as error:
        bench.progress.note(f"{error}; installing anew")
        return None
    if current.model_id != plan.model_id:
        raise BadInput(f"{plan.directory}: is the directory of '{current.model_id}', not of '{plan.model_id}'")
    return current


def _same(plan: InstallPlan, current: Installed) -> bool:
    """Whether exactly the installed files are wanted."""
    return [file.name for file in current.files] == [wanted.name for wanted in plan.wanted]


def _refreshed(
    plan: InstallPlan, current: Installed, found: dict[str, InstalledFile | None], bench: Bench
) -> Installed:
    """Nothing to fetch: write the manifest again only if what it says about the catalog or a stat is out of date."""
    files = tuple(_ordered(plan, found))
    fresh = described(plan, files, current.header)
    if fresh == current and all(unchanged(file) for file in files):
        clear(current, bench)
        return current
    if generation_of(files) != Path(files[0].path).parent.name:
        return publish(plan, files, bench)
    from gezel_rules.store.manifest import write_manifest

    write_manifest(bench.store, fresh)
    clear(fresh, bench)
    return fresh


def _check_space(missing: Sequence[Known], bench: Bench) -> None:
    """Refuse before the first byte what cannot fit. Unknown sizes cannot be counted."""
    need = sum(room(item, bench) for item in missing)
    free = shutil.disk_usage(bench.store).free
    if need and need + SPARE_BYTES > free:
        from gezel_rules.decisions.words import say_bytes

        short = say_bytes(need + SPARE_BYTES - free)
        raise Refused(
            f"{bench.store}: {say_bytes(need)} to fetch, {say_bytes(free)} free; "
            f"make {short} room or choose another --store"
        )


def _tidy(bench: Bench) -> None:
    """Nothing stays of a try that brought nothing: no empty part, no empty folder."""
    for path in [*bench.staging.glob("*.part"), *bench.staging.glob("*.part.log")]:
        with contextlib.suppress(OSError):
            if path.lstat().st_size == 0:
                path.unlink()
    for folder in (bench.ready, bench.staging):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _disk(error: OSError, store: Path) -> TransferFailed | BadInput:
    said = why(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return TransferFailed(f"{store}: {said}; what has arrived is kept")
    return BadInput(f"{error.filename or store}: cannot be written ({said})")
