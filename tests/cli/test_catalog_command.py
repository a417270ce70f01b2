"""``catalog check`` and ``catalog header``. What a check finds is in ``tests/catalog/test_maintainers_walk.py``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from gguf_files import write_gguf

from gezel_rules.documents.source import Text, parse_yaml
from gezel_rules.places import catalog_dir
from tests.cli.conftest import Place

SHAPE = {
    "origin": "made up",
    "metadata": {
        "general.architecture": "llama", "llama.context_length": 4096, "llama.embedding_length": 64,
        "llama.block_count": 2, "llama.feed_forward_length": 128, "llama.vocab_size": 32,
        "llama.attention.head_count": 2, "llama.rope.freq_base": 10000.0,
    },
    "tensors": "token_embd.weight F16 64x32\nblk.0-1.attn_norm.weight F32 64\nblk.0-1.attn_q.weight F16 64x64\n",
}  # fmt: skip


@pytest.fixture
def model(place: Place) -> Path:
    write_gguf(place.here / "some-model.gguf", SHAPE)
    return place.here / "some-model.gguf"


def test_the_shipped_catalog_is_in_order(place: Place) -> None:
    said = place.call("catalog", "check")
    assert said == (0, "checked 30 entries and 8 hosts: no problems\n", "")
    assert json.loads(place.call("catalog", "check", "--json").out) == {"problems": [], "entries": 30, "hosts": 8}


def test_problems_as_json_have_their_place(place: Place, copied: Callable[..., Path]) -> None:
    copied("catalog", "models/qwen3-8b.yaml", "  backends: [cuda]", "  backends: [cudda]")
    said = place.call("catalog", "check", "catalog", "--json")
    (problem,) = json.loads(said.out)["problems"]
    assert (said.status, said.err) == (2, "")
    assert problem == {
        "message": "unknown backend 'cudda'; did you mean 'cuda'?", "text": "  backends: [cudda]",
        "file": str(place.here / "catalog" / "models" / "qwen3-8b.yaml"), "line": 21, "column": 14, "width": 5,
    }  # fmt: skip


def test_words_come_from_the_policies_in_use(place: Place, copied: Callable[..., Path]) -> None:
    copied("catalog", "models/qwen3-8b.yaml", "  backends: [cuda]", "  backends: [warp]")
    backends = next(Path(catalog_dir().parent / "policies").rglob("backends.yaml"))
    file = backends.relative_to(catalog_dir().parent / "policies").as_posix()
    copied("policies", file, "      cuda:", "      warp: {label: Warp, gpu: true, host_buffer: true}\n      cuda:")
    assert place.call("catalog", "check", "catalog").status == 2
    assert place.call("--policies", "policies", "catalog", "check", "catalog").status == 0


def test_a_file_that_nothing_reads_is_said(place: Place) -> None:
    shutil.copytree(catalog_dir(), place.here / "catalog")
    (place.here / "catalog" / "models" / "Some Model.yaml").write_text("id: x\n")
    shutil.copy(place.here / "catalog" / "models" / "qwen3-8b.yaml", place.here / "catalog" / "models" / "other.yml")
    said = place.call("--catalog", "catalog", "catalog", "check")
    assert said.status == 2 and said.out.count("nothing reads this file: it must be named ID.yaml") == 2


def test_a_directory_without_a_catalog_is_refused(place: Place, refused: Callable[..., str]) -> None:
    assert "is no catalog" in refused("catalog", "check", str(place.here))


def test_a_pull_stops_at_a_word_that_is_none(copied: Callable[..., Path], refused: Callable[..., str]) -> None:
    """Before anything is asked of the network."""
    copied("catalog", "models/qwen3-8b.yaml", "type: draft-dflash", "type: dflash")
    line = refused("--catalog", "catalog", "pull", "qwen3-8b", "--backend", "cuda")
    assert "unknown speculative type 'dflash'; did you mean 'draft-dflash'?" in line


def test_a_header_is_described_as_an_entry_has_it(place: Place, model: Path) -> None:
    said = place.call("catalog", "header", str(model))
    assert (said.status, said.err) == (0, "")
    found = parse_yaml(Text("block", said.out)).plain()["header"]
    assert found["origin"] == "some-model.gguf"
    assert found["metadata"] == SHAPE["metadata"]
    assert sorted(found["tensors"].splitlines()) == sorted(str(SHAPE["tensors"]).splitlines())
    as_json = json.loads(place.call("catalog", "header", str(model), "--origin", "read by me", "--json").out)
    assert as_json["header"] == {**found, "origin": "read by me"}


def test_an_entry_with_that_header_is_in_order_and_plans_alike(place: Place, model: Path) -> None:
    block = place.call("catalog", "header", str(model)).out
    (place.here / "catalog" / "models").mkdir(parents=True)
    (place.here / "catalog" / "models" / "mine.yaml").write_text(
        "id: mine\nname: Mine\nfamily: mine\nsummary: Made up.\nquant: F16\nfiles:\n"
        f"  - {{role: model, name: mine.gguf, sources: [{{path: {model}}}]}}\n{block}"
    )
    said = place.call("catalog", "check", "catalog")
    assert said == (0, "checked 1 entry and 0 hosts: no problems\n", "")
    host = str(catalog_dir() / "hosts" / "rtx-4090.yaml")
    plans = [
        json.loads(place.call("--catalog", "catalog", "plan", what, "--host", host, "--json").out)
        for what in ("mine", str(model))
    ]
    assert plans[0]["memory"] == plans[1]["memory"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which model on disk?"),
        (("nowhere.gguf",), "nowhere.gguf"),
        (("some-model.gguf", "more"), "unrecognized arguments: more"),
    ],
)
def test_what_cannot_be_described_is_refused(refused: Callable[..., str], model: Path, words, said: str) -> None:
    assert said in refused("catalog", "header", *words)


def test_a_file_that_contradicts_itself_is_not_described(place: Place, refused: Callable[..., str]) -> None:
    metadata = {**SHAPE["metadata"], "llama.block_count": 3}  # type: ignore[dict-item]
    write_gguf(place.here / "odd.gguf", {**SHAPE, "metadata": metadata})
    line = refused("catalog", "header", "odd.gguf")
    assert "'llama.block_count' is 3, which is blocks 0-2, but 'tensors' has blocks 0-1" in line


def test_an_action_that_is_none_is_named(refused: Callable[..., str]) -> None:
    assert "check" in refused("catalog", "chekc")
