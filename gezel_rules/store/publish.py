"""From a staging folder to a model: fsync, one rename, ``manifest.json`` last, then the old generation goes."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from gezel_rules.catalog.references import MODEL_SUFFIX
from gezel_rules.errors import BadInput, TransferFailed
from gezel_rules.store import adopt
from gezel_rules.store.durable import discard, sync_directory, sync_file
from gezel_rules.store.fetch import Bench
from gezel_rules.store.holds import unused, users
from gezel_rules.store.integrity import in_place
from gezel_rules.store.manifest import write_manifest
from gezel_rules.store.names import MANIFEST
from gezel_rules.store.wanted import Installed, InstalledFile, InstallPlan


def generation_of(files: Sequence[InstalledFile]) -> str:
    """The folder name of exactly these contents under these names."""
    lines = "".join(f"{file.name}\0{file.sha256}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()[:12]


def publish(plan: InstallPlan, files: Sequence[InstalledFile], bench: Bench) -> Installed:
    """Make the verified files the model. Raises OSError before anything changed for a reader."""
    folder = bench.store / plan.directory
    home = folder / generation_of(files)
    header = _header(files, bench)
    if any(Path(file.path).parent != home for file in files):
        _assemble(files, bench)
        _move_in(bench.ready, home)
    model = described(plan, tuple(file._replace(path=str(home / file.name)) for file in files), header)
    write_manifest(bench.store, model)
    clear(model, bench)
    return model


def _header(files: Sequence[InstalledFile], bench: Bench) -> dict[str, object]:
    try:
        return header_facts(files)
    except TransferFailed:
        for file in files:
            if not file.verified and Path(file.path).parent == bench.ready:
                Path(file.path).unlink()  # nobody vouches for it: the next try fetches it again
        raise


def _assemble(files: Sequence[InstalledFile], bench: Bench) -> None:
    """Everything of the new generation into ``ready``, and nothing else."""
    for stray in bench.ready.iterdir():
        if stray.name not in {file.name for file in files}:
            discard(stray)
    for file in files:
        source, target = Path(file.path), bench.ready / file.name
        if source != target:
            _place(source, target)
        sync_file(target)
    sync_directory(bench.ready)


def _place(source: Path, target: Path) -> None:
    """The same file under another name, or a copy with its times."""
    if adopt.link(source, target):
        return
    if not adopt.clone(source, target):
        target.unlink(missing_ok=True)  # a link that lies there is not written through
        shutil.copyfile(source, target)
    shutil.copystat(source, target)


def _move_in(ready: Path, home: Path) -> None:
    home.parent.mkdir(exist_ok=True)
    discard(home)  # left by a crash before its manifest; its files were hashed and linked into ready
    ready.rename(home)
    sync_directory(home.parent)
    sync_directory(home.parent.parent)


def clear(model: Installed, bench: Bench) -> None:
    """Delete what a published model no longer needs: staging, old generations, a manifest left half written. An old
    generation that an engine runs on stays until nobody holds it."""
    home = Path(model.files[0].path).parent
    shutil.rmtree(bench.staging, ignore_errors=True)
    for path in home.parent.iterdir():
        if path.name in (home.name, MANIFEST):
            continue
        with unused(path) as free:
            if free:
                discard(path, ignore_errors=True)
            else:
                bench.progress.note(f"{model.model_id}: {users(path)} goes on with the version before until it ends")


def described(plan: InstallPlan, files: tuple[InstalledFile, ...], header: dict[str, object]) -> Installed:
    """The model's record. An install with an unverified file has no fingerprint."""
    return Installed(
        plan.model_id,
        plan.directory,
        tuple(_stat_again(file) for file in files),
        plan.fingerprint if plan.fingerprint and all(file.verified for file in files) else None,
        plan.entry_digest,
        plan.catalog_version,
        plan.catalog_quant,
        plan.backend,
        plan.vision,
        header,
        plan.left_out,
    )


def _stat_again(file: InstalledFile) -> InstalledFile:
    return in_place(file, Path(file.path).lstat())


def header_facts(files: Sequence[InstalledFile]) -> dict[str, object]:
    """What the model's own header says; keys it does not settle are missing. A verified file that is no model has
    none. Raises TransferFailed for an unverified one: that is somebody's error page, not a model."""
    from gezel_rules.engines import registry

    model = next((file for file in files if file.role == "model"), files[0])
    try:
        return registry.of_file(model.path).summary_of_model(model.path)
    except BadInput as error:
        if not model.verified and model.name.lower().endswith(MODEL_SUFFIX):
            raise TransferFailed(f"{model.name}: what arrived is no model ({error})") from None
        return {}
