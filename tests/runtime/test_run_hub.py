"""``run user/repo``: a hub model is planned on its header, pulled, launched and answered by, as catalog ids are."""

from __future__ import annotations

from pathlib import Path

import pytest
from gguf_files import write_gguf

from tests.store.hub_server import Server

REPO, NAME = "someone/tiny-GGUF", "tiny-Q4_K_M.gguf"
HEADER = {
    "metadata": {
        "general.architecture": "llama", "general.file_type": 15, "llama.context_length": 4096,
        "llama.embedding_length": 256, "llama.block_count": 2, "llama.feed_forward_length": 512,
        "llama.vocab_size": 1024, "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
        "llama.attention.key_length": 64, "llama.attention.value_length": 64,
    },
    "tensors": (
        "token_embd.weight Q4_K 256x1024\noutput_norm.weight F32 256\noutput.weight Q4_K 256x1024\n"
        "blk.0-1.attn_norm.weight F32 256\nblk.0-1.attn_q.weight Q4_K 256x256\n"
        "blk.0-1.attn_k.weight Q4_K 256x128\nblk.0-1.attn_v.weight Q4_K 256x128\n"
        "blk.0-1.attn_output.weight Q4_K 256x256\nblk.0-1.ffn_norm.weight F32 256\n"
        "blk.0-1.ffn_gate.weight Q4_K 256x512\nblk.0-1.ffn_up.weight Q4_K 256x512\n"
        "blk.0-1.ffn_down.weight Q4_K 512x256\n"
    ),
}  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ):
    path = tmp_path / NAME
    write_gguf(path, HEADER)
    with Server() as server:
        server.hub(REPO, {NAME: path.read_bytes()})
        environ["HF_ENDPOINT"], environ["GEZEL_STORE"] = server.base, str(tmp_path / "store")
        yield server


def test_a_model_of_a_hub_is_pulled_and_answers(hub, gezel, answering, tmp_path: Path) -> None:
    asked = []
    for turn in ("first", "second"):
        run = gezel("run", f"{REPO}:Q4_K_M", "Hello", "--engine", answering(), "--max-tokens", "4")
        out, err = run.communicate(timeout=120)
        assert (run.returncode, bool(out.strip())) == (0, True), (turn, out, err)
        asked.append(len(hub.seen))
    assert len(list((tmp_path / "store").glob(f"*/*/{NAME}"))) == 1
    assert asked[0] == asked[1] > 0  # what is installed is asked of nobody
