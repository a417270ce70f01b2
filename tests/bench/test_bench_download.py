"""A verified pull over loopback, beside what people would use. Shows ratios of one run; asserts none of them.

``BENCH_LARGE=1`` for the 2 GiB that shared figures are quoted for; ``BENCH_DIR`` for the disk to use.
Targets: ≤ 0.35 × (curl, then sha256sum), ≤ 0.7 × (curl, then openssl dgst).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LARGE = bool(os.environ.get("BENCH_LARGE"))
SIZE = (2 << 30) if LARGE else (96 << 20)
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5" if LARGE else "2"))

SERVER = """
import http.server, os, socketserver, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(os.path.getsize(sys.argv[1])))
        self.end_headers()
        with open(sys.argv[1], "rb") as file: self.connection.sendfile(file)
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer): daemon_threads = True
server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""

ENTRY = """\
id: big
name: Big
family: big
summary: A large file.
quant: Q4_K_M
files:
  - role: model
    name: big.gguf
    size: {size}
    sha256: "{sha256}"
    sources:
      - {{url: "{url}"}}
"""


@pytest.fixture
def ground() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gezel-bench-", dir=os.environ.get("BENCH_DIR")))
    yield folder
    shutil.rmtree(folder)


def write_noise(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for _ in range(SIZE >> 22):
            block = os.urandom(1 << 22)
            digest.update(block)
            file.write(block)
    return digest.hexdigest()


def run(*words: str | Path) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def test_verified_pull(ground: Path, compared: Callable[..., None]) -> None:
    if missing := [tool for tool in ("curl", "sha256sum", "openssl") if shutil.which(tool) is None]:
        pytest.skip(f"to compare with: {', '.join(missing)} not found")
    sha256 = write_noise(ground / "served")
    server = subprocess.Popen([sys.executable, "-c", SERVER, ground / "served"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/big.gguf"
        (ground / "catalog" / "models").mkdir(parents=True)
        entry = ENTRY.format(size=SIZE, sha256=sha256, url=url)
        (ground / "catalog" / "models" / "big.yaml").write_text(entry)
        figures = measure(ground, url, sha256)
    finally:
        server.kill()
        server.communicate()
    middle = {name: statistics.median(seconds) for name, seconds in figures.items()}
    for digest, wanted in (("sha256sum", 0.35), ("openssl", 0.7)):
        what, than = f"verified pull, {SIZE >> 20} MiB over loopback", f"curl, then {digest}"
        compared(what, middle["pull"], than, middle["curl"] + middle[digest], wanted if LARGE else None)


def measure(ground: Path, url: str, sha256: str) -> dict[str, list[float]]:
    """Seconds of each way, in turns, so that all meet the same disturbances."""
    plain, store = ground / "plain", ground / "store"

    def pull() -> None:
        program = [sys.executable, "-m", "gezel_rules.cli"]
        done = run(*program, "--catalog", ground / "catalog", "--store", store, "pull", "big", "--json")
        assert json.loads(done)[0]["files"][0]["sha256"] == sha256

    def by_curl() -> None:
        run("curl", "--silent", "--fail", "--output", plain, url)

    def by_sha256sum() -> None:
        assert run("sha256sum", plain).split()[0] == sha256

    def by_openssl() -> None:
        assert run("openssl", "dgst", "-sha256", plain).split()[-1] == sha256

    figures: dict[str, list[float]] = {"pull": [], "curl": [], "sha256sum": [], "openssl": []}
    for _ in range(ROUNDS):
        figures["pull"].append(timed(pull))
        shutil.rmtree(store)
        figures["curl"].append(timed(by_curl))
        figures["sha256sum"].append(timed(by_sha256sum))
        figures["openssl"].append(timed(by_openssl))
        plain.unlink()
    return figures
