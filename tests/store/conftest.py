from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.engines import registry
from gezel_rules.engines.family import CompanionName
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies
from gezel_rules.store import transfer, web
from gezel_rules.store.progress import Progress
from gezel_rules.store.repository import Companions

from .hub_server import Server


def gguf(size: int, seed: int = 0) -> bytes:
    """A well-formed GGUF file of a few keys, no tensors, and ``size`` bytes with noise at its end."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    keys = text("general.architecture") + struct.pack("<I", 8) + text("llama")
    keys += text("general.file_type") + struct.pack("<II", 4, 15)
    keys += text("llama.context_length") + struct.pack("<II", 4, 4096)
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 3) + keys
    return head + random.Random(seed).randbytes(size - len(head))


def shipped_companions() -> Companions:
    """The shipped rules of names for files that belong beside a model."""
    policies = read_policies(policies_dir(), registry.family(DEFAULT_FAMILY), None)
    return policies.rows("companion_names", CompanionName)


class Said(Progress):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
def far() -> Iterator[Server]:
    """Another origin: same address, another port."""
    with Server() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Short waits, no hub but the tests' own, no cache of the person who runs them."""
    monkeypatch.setattr(transfer, "BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(web, "READ_SECONDS", 2.0)
    for name in ("HF_TOKEN", "HF_HUB_CACHE", "HF_ENDPOINT", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
