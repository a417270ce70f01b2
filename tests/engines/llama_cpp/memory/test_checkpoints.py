"""Context checkpoints against the server's own words: "created context checkpoint 1 of 32 (…, size = … MiB)"
(llama.cpp 0.6.0-dev, files of zeros, prompts of so many tokens)."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import urllib.request
from contextlib import suppress

import pytest
from engine_at_hand import real_llama_server
from engine_truth import DATA, MIB, architectures, shape

from gezel_rules.engines.llama_cpp.memory.checkpoints import checkpoint_bytes, drafter_checkpoint_bytes
from gezel_rules.engines.llama_cpp.memory.estimate import estimate_geometry
from gezel_rules.engines.llama_cpp.memory.flags import Launch
from gezel_rules.engines.llama_cpp.memory.geometry import geometry
from gezel_rules.gguf import read_header

ROWS = [json.loads(line) for line in (DATA / "truth" / "checkpoints.jsonl").read_text().splitlines()]
HEADING = 0.0001  # MiB per token: position and sequence of each cell, which the estimate leaves out


def one(name: str, **flags) -> int:
    """Bytes of a checkpoint with a full window."""
    geo = shape(name)
    return checkpoint_bytes(geo, estimate_geometry(geo, Launch(**flags)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['gguf']}-{row['tokens']}")
def test_it_is_what_the_server_copies(row) -> None:
    """A state is copied whole; of a cache the cells that hold a token of the prompt."""
    launch = {"ctx": row["ctx"], "parallel": row["parallel"], "ubatch": row["ubatch"]}
    drafted = {"spec": (row["spec"],)} if row["spec"] else {}
    geo = shape(row["gguf"])
    found = estimate_geometry(geo, Launch(**launch, **drafted))
    state = found.recurrent_bytes // (found.context.slots * found.context.states)
    cells = (checkpoint_bytes(geo, found) - state) // (geo.window or row["ctx"]) * row["tokens"]
    assert (state + cells) / MIB == pytest.approx(row["checkpoint_mib"], abs=0.004 + HEADING * row["tokens"])


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite"])
def test_a_cache_that_can_be_cut_back_needs_none(name: str) -> None:
    assert one(f"{name}.gguf", ctx=8192, parallel=1) == 0


def test_it_does_not_grow_with_the_window_or_the_slots_once_the_sliding_window_is_full() -> None:
    sizes = {one("gemma3-4b.gguf", ctx=n * 8192, parallel=n) for n in (1, 2, 4)}
    assert sizes == {1024 * 29 * 4 * 256 * 2 * 2}
    assert one("gemma3-4b.gguf", ctx=8192, parallel=1, swa_full=True) == 0


def test_a_drafter_that_slides_is_copied_by_its_window_and_a_plain_one_whole() -> None:
    found = {
        name: estimate_geometry(shape(name), Launch(ctx=16384, parallel=2))
        for name in ("gemma3-4b.gguf", "llama-3.2-1b.gguf")
    }
    slides, plain = (drafter_checkpoint_bytes(shape(name), each, head=False) for name, each in found.items())
    assert slides == one("gemma3-4b.gguf", ctx=16384, parallel=2)
    assert plain == found["llama-3.2-1b.gguf"].kv_bytes // 2


@pytest.mark.engine
def test_the_server_copies_no_more_than_the_sliding_window(real_model) -> None:
    """Gemma 3 270M: 900 tokens, a window of 512."""
    flags = ["--port", "0", "--no-warmup", "-c", "2048", "-np", "1", "-ub", "128"]
    command = [*real_llama_server().command, "-lv", "5", "-m", str(real_model), *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    watchdog = threading.Timer(240, process.kill)
    watchdog.start()
    size = 0.0
    for line in process.stdout:
        if found := re.search(r"listening on (http://\S+)", line):
            threading.Thread(target=_ask, args=(found[1],), daemon=True).start()
        if found := re.search(r"created context checkpoint \d+ of 32 .* size = ([\d.]+) MiB", line):
            size = float(found[1])
            break
    watchdog.cancel()
    process.kill()
    process.wait()
    process.stdout.close()
    geo = geometry(read_header(real_model), architectures())
    ours = checkpoint_bytes(geo, estimate_geometry(geo, Launch(ctx=2048, parallel=1, ubatch=128)))
    assert ours / MIB == pytest.approx(size, rel=0.01)


def _ask(address: str) -> None:
    body = json.dumps({"prompt": [5 + i % 200 for i in range(900)], "n_predict": 1}).encode()
    request = urllib.request.Request(f"{address}/completion", body, {"Content-Type": "application/json"})
    with suppress(OSError):  # the server is ended as soon as it has said the size
        urllib.request.urlopen(request, timeout=240).read()
