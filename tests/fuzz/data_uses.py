"""Data files that people, and we ourselves, write, each where it is read from, and the commands that read it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from gguf_files import write_gguf

from gezel_rules.documents.source import load_yaml
from gezel_rules.places import catalog_dir, policies_dir
from gezel_rules.runtime.process import started
from gezel_rules.store.manifest import write_manifest
from gezel_rules.store.names import MANIFEST
from gezel_rules.store.wanted import Installed, InstalledFile

RECORD = Path(__file__).parents[1] / "data" / "records" / "format-2.json"
ENTRIES = ("qwen3-8b", "gemma-4-e4b", "qwen3.5-9b-mtp", "llama-4-scout", "falcon-h1-7b", "deepseek-v2-lite")
HOSTS = ("rtx-4090", "rtx-4090-pair", "cpu-32g", "mac-96g", "rx-7900-xtx-rocm")
TESTS = ("address", "threads", "prompt_cache", "repack", "vision")
PLAN = ("plan", "qwen3-8b", "--host", "rtx-4090")
SITE = {
    "settings": {"window": "64k", "slots": 2, "kv_type": "q8_0", "extra_args": ["--no-mmap"], "vision": False},
    "models": {"qwen3-8b": {"window": 8192, "spec_type": "none"}},
}
LAYER = {
    "summary": "What is different here.", "version": "1.0.0",
    "tables": {
        "kv_types": {"rows": {"q4_0": {"automatic": False, "slow_on": ["cuda"]}}},
        "kv_exclusions": {"rows": {"llama": {"why": "we measured it"}}, "without": ["grok"]},
        "engine_defaults": {"rows": {"memory": {"slots": 2}}},
    },
    "decisions": {
        "kv.coarser": {"rules": [{"id": "never-here", "before": "operators", "when": "candidate.name == 'q4_0'",
                                  "then": "reject", "because": "too coarse for us"}]},
        "threads.count": {"without": ["own-thread-pool"], "rules": [{"id": "catalog", "then": "2 * 2"}]},
    },
}  # fmt: skip


class Kind(NamedTuple):
    """Files of one kind as plain data, by their paths below ``root``, and what reads one: argvs for its path."""

    root: Path
    files: Mapping[str, Any]
    commands: Callable[[Path], tuple[tuple[str, ...], ...]]


def kinds(root: Path, patch: pytest.MonkeyPatch) -> dict[str, Kind]:
    """Every kind there is, in directories of their own, which the environment names."""
    for name in ("store", "state", "config", "catalog"):
        patch.setenv(f"GEZEL_{name.upper()}", str(root / name))
    shutil.copytree(catalog_dir(), root / "catalog")
    shutil.copytree(policies_dir(), root / "policies")
    found = {
        "entries": Kind(root, _yaml(root, "catalog/models", ENTRIES), _of_entry),
        "hosts": Kind(root, _yaml(root, "catalog/hosts", HOSTS), _of_host),
        "sites": Kind(root, {"config/site.yaml": SITE}, lambda path: (PLAN, ("explain", *PLAN[1:]))),
        "layers": Kind(root, {"layer.yaml": LAYER}, lambda path: (("--layer", str(path), *PLAN),)),
        "manifests": Kind(root, {"store/m/manifest.json": _manifest(root / "store")}, _of_manifest),
        "records": Kind(root, {f"state/journal/{RECORD.name}": json.loads(RECORD.read_text())}, _of_record),
        "states": Kind(root, _states(), lambda path: (("ps",), ("ps", "--json"), PLAN)),
        "tests": Kind(root, _yaml(root, "policies/llama-cpp", [f"{name}_test" for name in TESTS]),
                      lambda path: (("--policies", str(root / "policies"), "policy", "test", str(path)),)),
    }  # fmt: skip
    for kind in found.values():
        for name, data in kind.files.items():
            write(kind.root / name, json.dumps(data))
    return found


def write(path: Path, text: str) -> None:
    """Write a file as its owner would; its folders are made for the owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    path.chmod(0o600)


def _yaml(root: Path, folder: str, names: Any) -> dict[str, Any]:
    return {f"{folder}/{name}.yaml": load_yaml(root / folder / f"{name}.yaml").plain() for name in names}


def _of_entry(path: Path) -> tuple[tuple[str, ...], ...]:
    return (("plan", path.stem, "--host", "rtx-4090", "--json"), ("explain", path.stem, "--host", "cpu-32g"))


def _of_host(path: Path) -> tuple[tuple[str, ...], ...]:
    return ((*PLAN[:3], str(path)), ("explain", "gemma-4-e4b", "--host", str(path), "--json"))


def _of_manifest(path: Path) -> tuple[tuple[str, ...], ...]:
    return (("ls",), ("ls", "--json"), ("verify", "m"), ("plan", "m", "--host", "rtx-4090"))


def _of_record(path: Path) -> tuple[tuple[str, ...], ...]:
    named = f"@{path.stem}"
    return (("history",), ("history", "--json"), ("explain", named), ("replay", named), ("replay", str(path), "--json"))


def _manifest(store: Path) -> dict[str, Any]:
    """Of an installed model: the file is there."""
    header = load_yaml(catalog_dir() / "models" / "qwen3-8b.yaml").plain()["header"]
    path = store / "m" / "g1" / "model.gguf"
    path.parent.mkdir(parents=True)
    write_gguf(path, {**header, "tensors": header["tensors"].splitlines()[0]})
    stat = path.stat()
    files = (InstalledFile("model", path.name, str(path), stat.st_size, "0" * 64, True, "hf://a/b", stat.st_mtime_ns,
                           stat.st_ino, "", stat.st_ctime_ns, 1),)  # fmt: skip
    left_out = (("drafter.gguf", "not wanted here"),)
    write_manifest(store, Installed("m", "m", files, "f", "", "", "Q4_K_M", "", False, {"arch": "qwen3"}, left_out))
    return dict(json.loads((store / "m" / MANIFEST).read_text()))


def _states() -> dict[str, Any]:
    """An engine that runs (this very process stands in for it), a lease of it, and a part that broke."""
    pid, token = os.getpid(), started(os.getpid())
    entry = {
        "id": "20261129T172400-1f3a9c", "model": "m", "engine": "llama-server", "url": "http://127.0.0.1:1", "pid": pid,
        "started": token, "owner": pid, "owner_started": token, "since": 1796097286.5, "log": "/nowhere.log",
        "key_file": "", "record": "",
    }  # fmt: skip
    lease = {"pid": pid, "started": token, "pools": {"GPU0": 1 << 30, "host": 1 << 20}}
    broken = {"0.6.0": {"drafter": {"failure": "oom", "at": 1796097286.5}}}
    return {
        f"state/running/{entry['id']}.json": entry, f"state/leases/{entry['id']}.json": lease,
        "state/broken-parts.json": broken,
    }  # fmt: skip
