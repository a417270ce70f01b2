"""Which files of a listing a reference means, and which belong beside them: by names and folders alone."""

from __future__ import annotations

import pytest

from gezel_rules.catalog.references import parse_reference
from gezel_rules.errors import BadInput
from gezel_rules.store.hub import HubFile
from gezel_rules.store.repository import Found, find

from .conftest import shipped_companions

REPO = "someone/Some-GGUF"
LISTED = (
    "README.md",
    "Some-Q4_K_M.gguf",
    "Some-UD-Q4_K_M.gguf",
    "Some-Q8_0.gguf",
    "dflash-Some-Q8_0.gguf",
    "BF16/Some-BF16-00001-of-00002.gguf",
    "BF16/Some-BF16-00002-of-00002.gguf",
    "IQ1/Some-IQ1_S-00001-of-00003.gguf",
    "IQ1/Some-IQ1_S-00003-of-00003.gguf",
    "mmproj-Some-Q8_0.gguf",
    "mmproj-Some-F16.gguf",
    "mmproj-Some-F32.gguf",
)


def found(wish: str, *names: str) -> Found:
    """What ``hf://REPO`` and ``wish`` mean among files of these names."""
    files = [HubFile(name, 1, None) for name in names or LISTED]
    return find(parse_reference(f"hf://{REPO}{wish}"), files, shipped_companions())


def along(said: Found) -> list[str]:
    return [group.path for group, _ in said.along]


def beside(said: Found) -> list[str]:
    return [group.path for group, _ in said.beside]


def refused(wish: str, *names: str) -> str:
    with pytest.raises(BadInput) as caught:
        found(wish, *names)
    return str(caught.value).removeprefix(f"{REPO}: ")


@pytest.mark.parametrize(
    ("wish", "first", "count"),
    [
        (":Q4_K_M", "Some-Q4_K_M.gguf", 1),
        (":q4_k_m", "Some-Q4_K_M.gguf", 1),
        (":ud-q4_k_m", "Some-UD-Q4_K_M.gguf", 1),
        (":Q8_0", "Some-Q8_0.gguf", 1),
        (":bf16", "BF16/Some-BF16-00001-of-00002.gguf", 2),
        ("/BF16/", "BF16/Some-BF16-00001-of-00002.gguf", 2),
        ("/BF16:bf16", "BF16/Some-BF16-00001-of-00002.gguf", 2),
        ("/BF16/Some-BF16-00002-of-00002.gguf", "BF16/Some-BF16-00001-of-00002.gguf", 2),
        ("/mmproj-Some-F32.gguf", "mmproj-Some-F32.gguf", 1),
    ],
)
def test_choosing(wish: str, first: str, count: int) -> None:
    model = found(wish).model
    assert (model.path, len(model.files)) == (first, count)


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (":Q5_K_M", "has no Q5_K_M; it has BF16, Q4_K_M, Q8_0, UD-Q4_K_M; beside the model: dflash-Some-Q8_0.gguf"),
        (":IQ1_S", "has no IQ1_S; it has BF16"),  # a shard of it is missing
        ("/IQ1/", "no model lies in 'IQ1'; its folders are 'BF16'"),
        ("/BF16:Q8_0", "'BF16' has no Q8_0; it has BF16"),
        ("/IQ1/Some-IQ1_S-00001-of-00003.gguf", "has no complete model IQ1/Some-IQ1_S-00001-of-00003.gguf"),
    ],
)
def test_what_is_not_there_lists_what_is(wish: str, said: str) -> None:
    assert refused(wish).startswith(said)


def test_the_best_projector_comes_along() -> None:
    assert along(found(":q8_0")) == ["mmproj-Some-F16.gguf"]
    assert beside(found(":q8_0")) == ["dflash-Some-Q8_0.gguf"]


DRAFTERS = [
    "draft/model-Q8_0.gguf", "Drafter/model-Q8_0.gguf", "eagle3/model-Q8_0.gguf", "deep/speculators/model-Q8_0.gguf",
    "MTP/model-Q8_0.gguf", "mtp-head/model-Q8_0.gguf", "MTP/Q8_0/model-Q8_0.gguf", "Q8_0/MTP/model-Q8_0.gguf",
    "model-eagle-Q8_0.gguf", "model.EAGLE-Q8_0.gguf", "model-medusa-Q8_0.gguf", "model-p-eagle-Q8_0.gguf",
    "model-mtp-only-Q8_0.gguf", "nextn-model-Q8_0.gguf", "mtp.gguf",
]  # fmt: skip


@pytest.mark.parametrize("name", DRAFTERS)
def test_a_drafter_is_told_by_its_name_or_folder(name: str) -> None:
    said = found(":Q8_0", name, "model-Q8_0.gguf")
    assert (said.model.path, beside(said)) == ("model-Q8_0.gguf", [name])
    only = refused(":Q8_0", name, "model-Q4_0.gguf")
    assert only == f"has no Q8_0; it has Q4_0; beside the model: {name}"


@pytest.mark.parametrize("name", ["draft/model-Q8_0.gguf", "draft/deep/model-eagle3-Q8_0.gguf"])
def test_what_a_person_names_is_the_model(name: str) -> None:
    files = (name, "model-Q8_0.gguf", "mmproj-F16.gguf")
    for wish in ("/draft/", "/draft:Q8_0", f"/{name}"):
        assert found(wish, *files) == Found(found(wish, *files).model)
        assert found(wish, *files).model.path == name


def test_in_a_folder_that_is_named_drafters_are_told_by_name() -> None:
    said = refused("/draft:F16", "draft/model-Q8_0.gguf", "draft/eagle3-model-F16.gguf", "model-F16.gguf")
    assert said == "'draft' has no F16; it has Q8_0; beside the model: draft/eagle3-model-F16.gguf"


def test_a_model_with_its_own_head_is_no_head() -> None:
    said = found(":Q8_0", "Qwen-MTP-Q8_0.gguf", "Qwen-MTP-Q4_0.gguf", "mmproj-F16.gguf")
    assert (said.model.path, beside(said)) == ("Qwen-MTP-Q8_0.gguf", [])


def test_a_repository_of_drafters_gives_one() -> None:
    said = found(":Q8_0", "eagle3/model-Q8_0.gguf", "eagle3/model-F16.gguf", "model.imatrix.gguf")
    assert said.model.path == "eagle3/model-Q8_0.gguf"
    assert refused(":Q8_0", "model.imatrix.gguf", "mmproj-F16.gguf").startswith("has no complete model")


UNSLOTH = tuple(f"{q}/model{tag}-0000{n}-of-00003.gguf" for q, tag in (("Q8_0", ""), ("UD-IQ2_M", "-UD-IQ2_M"))
                for n in (1, 2, 3))  # fmt: skip


@pytest.mark.parametrize("wish", [":Q8_0", "/Q8_0/", "/Q8_0:q8_0"])
def test_quants_in_folders_of_their_own(wish: str) -> None:
    said = found(wish, *UNSLOTH, "mmproj-F16.gguf")
    assert [file.path for file in said.model.files] == list(UNSLOTH[:3])
    assert along(said) == ["mmproj-F16.gguf"]


def test_quants_in_folders_are_listed() -> None:
    assert refused(":Q5_0", *UNSLOTH) == "has no Q5_0; it has Q8_0, UD-IQ2_M"


def test_a_name_says_more_than_its_folder() -> None:
    assert found(":Q4_0", "Q8_0/model-Q4_0.gguf", "Q8_0/model-Q8_0.gguf").model.path == "Q8_0/model-Q4_0.gguf"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a/model-Q8_0.gguf", "b/model-Q8_0.gguf"), "b:Q8_0 or hf://someone/Some-GGUF/a/model-Q8_0.gguf"),
        (("model-Q8_0.gguf", "a/bigger-Q8_0.gguf"), "a:Q8_0 or hf://someone/Some-GGUF/model-Q8_0.gguf"),
        (("model-Q8_0.gguf", "Q8_0/model.gguf"), "Q8_0:Q8_0 or hf://someone/Some-GGUF/model-Q8_0.gguf"),
    ],
)
def test_the_same_quant_in_several_folders(names: tuple[str, ...], said: str) -> None:
    line = refused(":Q8_0", *names)
    assert line.startswith("Q8_0 is in several folders: ") and all(name in line for name in names)
    assert line.endswith(f"; name one as hf://{REPO}/{said}")
    folder, file = line.partition("name one as ")[2].split(" or ")
    chosen = {found(one.removeprefix(f"hf://{REPO}"), *names).model.path for one in (folder, file)}
    assert chosen == set(names)


def test_the_way_out_keeps_the_revision() -> None:
    line = refused("@refs%2Fpr%2F1:Q8_0", "a/model-Q8_0.gguf", "b/model-Q8_0.gguf")
    assert f"name one as hf://{REPO}@refs%2Fpr%2F1/b:Q8_0 or hf://{REPO}@refs%2Fpr%2F1/a/model-Q8_0.gguf" in line


def test_a_projector_belongs_to_the_models_it_lies_with() -> None:
    two = ("a/model-Q8_0.gguf", "a/mmproj-a-Q8_0.gguf", "b/model-F16.gguf", "b/mmproj/b-F16.gguf", "b/draft/m.gguf")
    assert along(found(":Q8_0", *two)) == ["a/mmproj-a-Q8_0.gguf"]
    assert (along(found(":F16", *two)), beside(found(":F16", *two))) == (["b/mmproj/b-F16.gguf"], ["b/draft/m.gguf"])
    assert along(found("/a/", *two, "mmproj-F16.gguf")) == ["a/mmproj-a-Q8_0.gguf"]  # beside the model first
    assert along(found(":Q8_0", "m/model-Q8_0.gguf", "sight/mmproj-F16.gguf")) == ["sight/mmproj-F16.gguf"]
    assert along(found(":Q8_0", *UNSLOTH, "BF16/mmproj-BF16.gguf")) == ["BF16/mmproj-BF16.gguf"]
