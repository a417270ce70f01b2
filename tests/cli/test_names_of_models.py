"""Names as people copy them, and what a repository holds beside its models: through the command line, from a hub on
loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from gezel_rules.catalog.references import parse_reference
from gezel_rules.errors import BadInput
from tests.store.conftest import gguf
from tests.store.hub_server import Server

REPO = "someone/model-GGUF"
NAMES = [
    ("hf.co/user/repo:Q4_K_M", "hf://user/repo:Q4_K_M"),
    ("huggingface.co/user/repo", "hf://user/repo:Q4_K_M"),
    ("https://hf.co/user/repo:q8_0", "hf://user/repo:Q8_0"),
    ("https://huggingface.co/user/repo", "hf://user/repo:Q4_K_M"),
    ("https://www.huggingface.co/user/repo/", "hf://user/repo:Q4_K_M"),
    ("https://huggingface.co/user/repo?library=llama.cpp#readme", "hf://user/repo:Q4_K_M"),
    ("https://huggingface.co/user/repo/tree/main", "hf://user/repo:Q4_K_M"),
    ("https://huggingface.co/user/repo/tree/0123abc/Q8_0", "hf://user/repo@0123abc/Q8_0/"),
    ("https://huggingface.co/user/repo/tree/main/big/", "hf://user/repo/big/"),
    ("https://huggingface.co/user/repo/tree/main/big%20one/deep:q8_0", "hf://user/repo/big one/deep:Q8_0"),
    ("https://huggingface.co/user/repo/tree/refs%2Fpr%2F1/big", "hf://user/repo@refs%2Fpr%2F1/big/"),
    ("https://huggingface.co/user/repo/tree/refs/pr/1/big", "hf://user/repo@refs%2Fpr%2F1/big/"),
    ("https://huggingface.co/user/repo/tree/new%2Ftry", "hf://user/repo@new%2Ftry:Q4_K_M"),
    ("https://huggingface.co/user/repo/blob/refs%2Fpr%2F1/big/x.gguf", "hf://user/repo@refs%2Fpr%2F1/big/x.gguf"),
    ("https://huggingface.co/user/repo/tree/main/big?show_file_info=big%2Fx.gguf", "hf://user/repo/big/x.gguf"),
    ("user/repo/big:q8_0", "hf://user/repo/big:Q8_0"),
    ("https://huggingface.co/user/repo/blob/main/a/x%20y.gguf", "hf://user/repo/a/x y.gguf"),
    ("https://huggingface.co/user/repo/resolve/0123abc/x.gguf?download=true", "hf://user/repo@0123abc/x.gguf"),
    ("https://huggingface.co/user/repo?show_file_info=x-Q8_0.gguf", "hf://user/repo/x-Q8_0.gguf"),
]


@pytest.mark.parametrize(("text", "meant"), NAMES)
def test_pages_of_the_hub(text: str, meant: str) -> None:
    assert str(parse_reference(text)) == meant
    assert str(parse_reference(meant)) == meant


@pytest.mark.parametrize(
    "text",
    ["https://huggingface.co/user", "https://huggingface.co/datasets/user/repo", "https://huggingface.co/datasets/user",
     "https://huggingface.co/user/repo/blob/main/README.md", "https://huggingface.co/user/repo/blob/main/../../x.gguf",
     "https://huggingface.co/user/repo/blob/main/big", "https://huggingface.co/user/repo/tree/main/%2E%2E/big",
     "https://huggingface.co/user/repo/tree/..%2Fx/big"],
)  # fmt: skip
def test_pages_that_show_no_model(text: str) -> None:
    with pytest.raises(BadInput, match="not a model"):
        parse_reference(text)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Serves a repository with files of these names."""
    with Server() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.base)
        yield lambda *names, repo=REPO: server.hub(repo, {name: gguf(1000, seed=len(name)) for name in names})


def fetched(place, *words: str) -> dict[str, str]:
    """Role → name of what a pull would bring."""
    said = place.call("pull", *words, "--dry-run", "--json")
    assert said.status == 0, said.err
    (plan,) = json.loads(said.out)
    return {file["role"]: file["name"] for file in plan["files"]} | {
        left["name"]: left["reason"] for left in plan["left_out"]
    }


def test_a_drafter_is_not_taken_for_the_model(place, hub) -> None:
    hub("model-MXFP4.gguf", "eagle3-model-Q8_0.gguf")
    said = place.call("pull", f"{REPO}:Q8_0", "--dry-run")
    assert (said.status, said.out) == (2, "")
    assert "has no Q8_0; it has MXFP4; beside the model: eagle3-model-Q8_0.gguf" in said.err


def test_drafters_projectors_and_heads_are_found_and_offered(place, hub) -> None:
    hub("model-Q8_0.gguf", "eagle3-model-Q8_0.gguf", "mtp-model-Q8_0.gguf", "mmproj-model-F16.gguf")
    found = fetched(place, f"{REPO}:q8_0")
    assert (found["model"], found["projector"]) == ("model-Q8_0.gguf", "mmproj-model-F16.gguf")
    assert found["eagle3-model-Q8_0.gguf"].startswith("a drafter beside the model")
    assert f"pull hf://{REPO}/eagle3-model-Q8_0.gguf" in found["eagle3-model-Q8_0.gguf"]
    assert found["mtp-model-Q8_0.gguf"].startswith("an MTP head beside the model")


def test_a_drafter_may_be_asked_for_by_its_file(place, hub) -> None:
    hub("model-Q8_0.gguf", "eagle3-model-Q8_0.gguf")
    assert fetched(place, f"hf://{REPO}/eagle3-model-Q8_0.gguf")["model"] == "eagle3-model-Q8_0.gguf"


TAGGED = ("model-X-Balanced.gguf", "model-X-I-Compact.gguf", "model-Q4_K_M.gguf")


@pytest.mark.parametrize(("tag", "name"), [
    ("X-Balanced", 0), ("x-balanced", 0), ("X-I-COMPACT", 1), ("i-compact", 1), ("q4_k_m", 2),
])  # fmt: skip
def test_tags_that_are_no_quants_are_found_whatever_their_case(place, hub, tag: str, name: int) -> None:
    hub(*TAGGED)
    assert fetched(place, f"{REPO}:{tag}") == {"model": TAGGED[name]}


@pytest.mark.parametrize("repo", [REPO, "someone/other-GGUF"])
def test_tags_that_are_no_quants_are_listed_whole(place, hub, repo: str) -> None:
    hub(*TAGGED, repo=repo)
    said = place.call("pull", f"{repo}:Q5_K_M", "--dry-run")
    assert "has no Q5_K_M; it has Q4_K_M, X-Balanced, X-I-Compact" in said.err


def test_19_a_folder_of_a_page_is_read_and_fetched(place, hub) -> None:
    hub("model-Q8_0.gguf", "draft/model-Q8_0.gguf", "big/model-Q8_0-00001-of-00001.gguf", "big/model-Q4_0.gguf")
    page = f"https://huggingface.co/{REPO}/tree/main/big:q4_0"
    assert fetched(place, page)["model"] == "model-Q4_0.gguf"
    several = place.call("pull", f"{REPO}:q8_0", "--dry-run")
    assert several.status == 2 and f"; name one as hf://{REPO}/big:Q8_0 or hf://{REPO}/" in several.err
    said = place.call("pull", f"{REPO}/draft:q8_0")
    assert said.status == 0, said.err
    (model,) = json.loads(place.call("ls", "--json").out)
    assert model["model"] == f"hf://{REPO}/draft:Q8_0"
    assert place.call("rm", f"{REPO}/draft:Q8_0").status == 0


def test_19_a_projector_that_only_its_folder_tells_is_stored_beside_the_model(place, hub) -> None:
    hub("model-F16.gguf", "mmproj/model-F16.gguf")
    said = place.call("pull", f"{REPO}:F16")
    assert said.status == 0, said.err
    (manifest,) = place.root.glob("store/*/manifest.json")
    kept = {file["role"]: file["name"] for file in json.loads(manifest.read_text())["files"]}
    assert kept == {"model": "model-F16.gguf", "projector": "projector-model-F16.gguf"}


def test_19_a_revision_with_a_slash_is_asked_for_as_it_is_named(place, monkeypatch) -> None:
    with Server() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.base)
        server.hub(REPO, {"big/model-Q8_0.gguf": gguf(1000)}, revision="refs/pr/1")
        said = place.call("pull", f"https://huggingface.co/{REPO}/tree/refs%2Fpr%2F1/big")
    assert said.status == 0, said.err


def test_a_pull_tells_what_lies_beside(place, hub) -> None:
    hub("model-Q8_0.gguf", "dflash-model-Q8_0.gguf")
    said = place.call("pull", f"hf.co/{REPO}:Q8_0")
    assert said.status == 0, said.err
    assert "dflash-model-Q8_0.gguf  not fetched: a drafter beside the model" in said.out
