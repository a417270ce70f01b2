"""The shipped catalog: complete, true to the real headers, never with a figure nobody has verified."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from gezel_rules.catalog import Entry, entries, find, ids
from gezel_rules.documents.source import load_yaml
from gezel_rules.engines.llama_cpp.described_header import draft_header_of, header_of
from gezel_rules.engines.llama_cpp.model_facts import model_facts
from gezel_rules.gguf import Array, Header, read_header
from gezel_rules.places import catalog_dir, schemas_dir

HEADERS = Path(__file__).parent.parent / "data" / "headers"
SHAPES = {
    "command-r7b": "command-r7b",
    "deepseek-v2-lite": "deepseek-v2-lite",
    "deepseek-v3": "deepseek-v3",
    "falcon-h1-7b": "falcon-h1-7b",
    "gemma-2-9b": "gemma2-9b",
    "gemma-3-4b": "gemma3-4b",
    "gemma-4-26b-a4b": "gemma4-26b-a4b",
    "gemma-4-e4b": "gemma4-e4b",
    "glm-4.5-air": "glm-4.5-air",
    "gpt-oss-20b": "gpt-oss-20b",
    "granite-4.0-h-tiny": "granite-4.0-h-tiny",
    "lfm2-1.2b": "lfm2-1.2b",
    "llama-3.1-8b": "llama-3.1-8b",
    "llama-3.1-8b-f16": "llama-3.1-8b-f16",
    "llama-3.1-8b-q8_0": "llama-3.1-8b-q8_0",
    "llama-3.2-1b": "llama-3.2-1b",
    "llama-4-scout": "llama-4-scout",
    "mamba-2.8b": "mamba-2.8b",
    "mistral-small-24b": "mistral-small-24b",
    "mixtral-8x7b": "mixtral-8x7b",
    "nemotron-3-nano-30b": "nemotron-3-nano-30b",
    "olmo-2-13b": "olmo2-13b",
    "phi-3.5-mini": "phi-3.5-mini",
    "qwen3-30b-a3b": "qwen3-30b-a3b",
    "qwen3-30b-a3b-q8_0": "qwen3-30b-a3b-q8_0",
    "qwen3-8b": "qwen3-8b",
    "qwen3-next-80b-a3b": "qwen3-next-80b-a3b",
    "qwen3.5-35b-a3b": "qwen3.5-35b-a3b",
    "qwen3.5-9b-mtp": "qwen3.5-9b-mtp",
}
"""Catalog id → the header of the same shape that the engine's own figures were taken with."""
FROM_A_FILE = "gemma-3-270m"
MODELS = ids(catalog_dir())


def shape_header(name: str, folder: Path) -> Header:
    path = folder / f"{name}.gguf"
    path.write_bytes(gzip.decompress((HEADERS / f"{name}.gguf.head.gz").read_bytes()))
    return read_header(path, check_size=False)


def geometry(header: Header) -> dict[str, object]:
    keys = ("general.architecture", "general.file_type", "tokenizer.ggml.tokens")
    return {key: value for key, value in header.metadata.items() if key.startswith(f"{header.arch}.") or key in keys}


def tensors(header: Header) -> list[tuple[object, ...]]:
    return sorted((tensor.name, tensor.type, tensor.dims, tensor.nbytes) for tensor in header.tensors)


def test_every_model_has_a_shape_to_be_held_against() -> None:
    assert set(MODELS) == {*SHAPES, FROM_A_FILE}
    assert len({header_of(find(catalog_dir(), model)).arch for model in MODELS}) >= 15  # type: ignore[union-attr]


@pytest.mark.parametrize("model", SHAPES)
def test_the_header_of_an_entry_is_the_real_shape(model: str, tmp_path: Path) -> None:
    header = header_of(find(catalog_dir(), model))
    real = shape_header(SHAPES[model], tmp_path)
    assert header is not None
    assert tensors(header) == tensors(real)
    assert geometry(header) == geometry(real)


def test_the_model_on_pypi_is_the_one_described(tmp_path: Path) -> None:
    """Its chunks, joined in the entry's order, have the entry's size and digest, and its header is the entry's."""
    entry = find(catalog_dir(), FROM_A_FILE)
    part = entry.model.parts[0]
    source = part.sources[0]
    if importlib.util.find_spec(source.parts[0].partition("/")[0]) is None:
        pytest.skip(f"needs the real model: pip install {source.address}")
    path, digest = tmp_path / part.name, hashlib.sha256()
    with path.open("wb") as file:
        for resource in source.parts:
            module, _, inner = resource.partition("/")
            spec = importlib.util.find_spec(module)
            assert spec is not None and spec.submodule_search_locations
            data = Path(spec.submodule_search_locations[0], inner).read_bytes()
            digest.update(data)
            file.write(data)
    assert (path.stat().st_size, digest.hexdigest()) == (part.size, part.sha256)
    real, header = read_header(path), header_of(entry)
    assert header is not None and header.file_bytes == part.size
    assert tensors(header) == tensors(real)
    assert geometry(header) == geometry(real)
    assert model_facts(header)["model.has_chat_template"] is False
    assert model_facts(real)["model.has_chat_template"] is False


def test_only_what_was_hashed_has_a_digest() -> None:
    """The one model whose bytes are at hand; every other size and digest comes from the hub when it is pulled."""
    stated = {
        entry.id
        for entry in entries(catalog_dir())
        for file in entry.files
        for part in file.parts
        if part.size is not None or part.sha256 is not None
    }
    assert stated == {FROM_A_FILE}
    assert not any(entry.draft and entry.draft.resident for entry in entries(catalog_dir()))


@pytest.mark.parametrize("model", MODELS)
def test_chat_template_is_a_fact_of_the_described_header(model: str) -> None:
    entry = find(catalog_dir(), model)
    header = header_of(entry)
    assert header is not None
    assert model_facts(header)["model.has_chat_template"] is entry.chat


def test_the_shapes_that_policies_tell_apart_are_all_there() -> None:
    facts = {model: model_facts(header_of(find(catalog_dir(), model))) for model in MODELS}  # type: ignore[arg-type]

    def with_fact(name: str) -> set[str]:
        return {model for model, known in facts.items() if known.get(name)}

    assert {"glm-4.5-air", "qwen3.5-9b-mtp"} <= with_fact("model.mtp_layers")
    assert {"deepseek-v3", "deepseek-v2-lite"} <= with_fact("model.mla")
    assert {"falcon-h1-7b", "qwen3-next-80b-a3b", "mamba-2.8b", "lfm2-1.2b"} <= with_fact("model.recurrent")
    assert {"gemma-2-9b", "gemma-3-4b", "gpt-oss-20b"} <= with_fact("model.sliding_window")
    assert {"mixtral-8x7b", "qwen3-30b-a3b", "llama-4-scout"} <= with_fact("model.experts")


def test_a_drafter_limited_to_one_backend_has_a_header_of_its_own() -> None:
    entry = find(catalog_dir(), "qwen3-8b")
    assert entry.draft is not None and entry.draft.file is not None
    assert entry.draft.backends == tuple(entry.overlays)
    header = draft_header_of(entry)
    assert header is not None
    assert model_facts(header)["model.parameters"] == 1_048_626_432  # as its publisher counts them
    assert draft_header_of(find(catalog_dir(), "llama-3.1-8b")) is None


def test_families_hold_the_quants_among_which_the_nearest_is_looked_for() -> None:
    families: dict[str, set[str]] = {}
    for entry in entries(catalog_dir()):
        families.setdefault(entry.family, set()).add(entry.quant)
    assert families["llama-3.1-8b"] == {"Q4_K_M", "Q8_0", "F16"}
    assert families["qwen3-30b-a3b"] == {"Q4_K_M", "Q8_0"}


def test_drafts_by_id_exist_and_share_the_vocabulary() -> None:
    for entry in entries(catalog_dir()):
        if entry.draft and entry.draft.id:
            assert vocabulary(find(catalog_dir(), entry.draft.id)) == vocabulary(entry)


def vocabulary(entry: Entry) -> object:
    header = header_of(entry)
    assert header is not None
    return model_facts(header)["model.vocab"]


def test_sharded_models_name_every_part_and_its_source() -> None:
    file = find(catalog_dir(), "deepseek-v3").model
    assert len(file.parts) == 9
    assert file.name.endswith("-00001-of-00009.gguf")
    assert [part.sources[0].file for part in file.parts] == [f"Q4_K_M/{part.name}" for part in file.parts]


@pytest.mark.parametrize("kind", ["models", "hosts"])
def test_the_schemas_accept_every_shipped_file(kind: str) -> None:
    schema = json.loads((schemas_dir() / SCHEMAS[kind]).read_text())
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    paths = sorted((catalog_dir() / kind).glob("*.yaml"))
    assert paths
    for path in paths:
        root = load_yaml(path)
        assert [error.message for error in validator.iter_errors(root.plain())] == []
        assert root.text.line(1) == f"# yaml-language-server: $schema=../../schemas/{SCHEMAS[kind]}"


SCHEMAS = {"models": "catalog-entry.schema.json", "hosts": "host.schema.json"}


def test_headers_describe_arrays_that_nobody_needs_to_read() -> None:
    header = header_of(find(catalog_dir(), FROM_A_FILE))
    assert header is not None
    assert header.metadata["tokenizer.ggml.tokens"] == Array("STRING", 262144)
