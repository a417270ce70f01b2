"""RPC servers on loopback: llama.cpp's own way to make one machine look like several devices."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from engine_at_hand import real_llama_server


def binaries() -> tuple[Path, Path]:
    """llama-server and ggml-rpc-server of one build; skips where there are none."""
    server = Path(real_llama_server().command[0])
    lender = server.with_name("ggml-rpc-server")
    if not lender.exists():
        pytest.skip(f"this build of llama.cpp has no {lender.name} beside llama-server")
    return server, lender


@contextmanager
def lending(lender: Path, count: int) -> Iterator[list[str]]:
    """So many devices on loopback, each as host:port."""
    ports = [free_port() for _ in range(count)]
    running = [_start(lender, port) for port in ports]
    try:
        yield [f"127.0.0.1:{port}" for port in ports]
    finally:
        for process in running:
            process.kill()
            process.wait()


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def _start(lender: Path, port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [lender, "-H", "127.0.0.1", "-p", str(port), "-d", "CPU"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.05)
    process.kill()
    process.wait()
    raise AssertionError("ggml-rpc-server did not listen")
