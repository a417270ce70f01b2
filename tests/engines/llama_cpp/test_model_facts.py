"""Facts of a model: right on real shapes, absent when the header does not settle them, never an exception."""

from __future__ import annotations

import json
import struct
from math import prod

import pytest
from gguf_oracle import gguf_file, key, tensor, text
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.engines.llama_cpp.model_facts import MODEL_FACT_KEYS, model_facts
from gezel_rules.gguf import Array, Header, Tensor
from gezel_rules.gguf.parse import parse_header

SUFFIXES = sorted(
    {
        word.removeprefix("<arch>.")
        for formula in MODEL_FACT_KEYS.values()
        for word in formula.replace(",", " ").split()
        if word.startswith("<arch>.")
    }
)


@pytest.fixture(scope="module")
def facts_of(header_bytes):
    def facts(name, **kinds):
        return model_facts(parse_header(header_bytes[f"{name}.gguf"], name, None), **kinds)

    return facts


def header(*keys: bytes, tensors: tuple[bytes, ...] = (), arch: str = "some") -> Header:
    return parse_header(gguf_file(key("general.architecture", 8, text(arch)), *keys, tensors=tensors), "made", None)


def u32(suffix: str, value: int) -> bytes:
    return key(f"some.{suffix}", 4, struct.pack("<I", value))


def test_a_dense_model(facts_of):
    assert facts_of("llama-3.1-8b", drafters=["eagle3"], projectors=["clip"]) == {
        "model.arch": "llama",
        "model.name": "llama-3.1-8b",
        "model.file_type": "Q4_K_M",
        "model.layers": 32,
        "model.trained_window": 131_072,
        "model.embedding": 4096,
        "model.vocab": 128_256,
        "model.experts": 0,
        "model.experts_used": 0,
        "model.mtp_layers": 0,
        "model.mtp_only": False,
        "model.has_chat_template": False,
        "model.is_drafter": False,
        "model.is_projector": False,
        "model.tied_embeddings": False,
        "model.weights_bytes": 4_912_898_304,
        "model.parameters": 8_030_261_312,
        "model.head_dim_k": 128,
        "model.head_dim_v": 128,
        "model.recurrent": False,
        "model.mla": False,
        "model.byte_order": "little",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("deepseek-v3", {"mla": True, "experts": 256, "experts_used": 8, "head_dim_k": 576, "head_dim_v": 512}),
        ("gemma3-4b", {"sliding_window": 1024, "tied_embeddings": True, "vocab": 262_208}),
        ("qwen3.5-9b-mtp", {"mtp_layers": 1, "mtp_only": False, "recurrent": True, "layers": 33}),
        ("glm-4.5-air", {"mtp_layers": 1, "layers": 47, "recurrent": False}),
        ("gpt-oss-20b", {"file_type": "MXFP4_MOE", "experts": 32, "sliding_window": 128}),
        ("mamba-2.8b", {"recurrent": True, "tied_embeddings": True}),
        ("lfm2-1.2b", {"recurrent": True}),
        ("deci-varying-SYNTHETIC", {"layers": 80, "head_dim_k": 128}),
    ],
)
def test_other_shapes(facts_of, name, expected):
    facts = facts_of(name)
    assert {key: facts[f"model.{key}"] for key in expected} == expected


def test_every_real_shape_gives_only_known_names_and_plain_json(header_bytes, facts_of):
    for name in header_bytes:
        facts = facts_of(name.removesuffix(".gguf"), drafters=(), projectors=())
        assert set(facts) <= set(MODEL_FACT_KEYS)
        assert json.loads(json.dumps(facts)) == facts
        assert facts["model.weights_bytes"] > 0


def test_mamba_has_no_head_size_and_says_nothing(facts_of):
    assert not {"model.head_dim_k", "model.head_dim_v", "model.sliding_window"} & set(facts_of("mamba-2.8b"))


def test_an_mtp_head_needs_the_key_and_the_tensor():
    keys = u32("block_count", 5), u32("nextn_predict_layers", 2)
    head = tensor("blk.3.nextn.eh_proj.weight", (1,))
    trunk = tensor("blk.0.attn_norm.weight", (1,), offset=32)
    assert model_facts(header(*keys))["model.mtp_layers"] == 0
    assert model_facts(header(keys[0], tensors=(head,)))["model.mtp_layers"] == 0
    with_head = model_facts(header(*keys, tensors=(head, trunk)))
    assert (with_head["model.mtp_layers"], with_head["model.mtp_only"]) == (2, False)
    alone = model_facts(header(*keys, tensors=(head,)))
    assert (alone["model.mtp_layers"], alone["model.mtp_only"]) == (2, True)
    later = tensor("blk.4.nextn.eh_proj.weight", (1,))
    assert model_facts(header(*keys, tensors=(later,)))["model.mtp_layers"] == 0


def test_no_recurrent_layer_in_the_list_is_no_recurrent_model():
    layers = key("some.attention.recurrent_layers", 9, struct.pack("<IQ??", 7, 2, False, False))
    assert model_facts(header(layers))["model.recurrent"] is False
    layers = key("some.attention.recurrent_layers", 9, struct.pack("<IQ??", 7, 2, False, True))
    assert model_facts(header(layers))["model.recurrent"] is True


def test_kinds_come_from_policy_and_are_unknown_without_it():
    drafter = header(arch="eagle3")
    assert "model.is_drafter" not in model_facts(drafter)
    assert model_facts(drafter, drafters={"eagle3"})["model.is_drafter"] is True
    assert model_facts(drafter, projectors={"clip"})["model.is_projector"] is False
    assert model_facts(header(arch="clip"), projectors={"clip"})["model.is_projector"] is True


def test_head_size_is_derived_when_it_is_not_stated():
    facts = model_facts(header(u32("embedding_length", 4096), u32("attention.head_count", 32)))
    assert (facts["model.head_dim_k"], facts["model.head_dim_v"]) == (128, 128)


def test_vocabulary_from_the_tokens_then_the_key_then_the_embedding():
    tokens = key("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 3) + text("a") * 3)
    table = tensor("token_embd.weight", (8, 5))
    assert model_facts(header(tokens, u32("vocab_size", 4), tensors=(table,)))["model.vocab"] == 3
    assert model_facts(header(u32("vocab_size", 4), tensors=(table,)))["model.vocab"] == 4
    assert model_facts(header(tensors=(table,)))["model.vocab"] == 5
    assert "model.vocab" not in model_facts(header())


def test_chat_template_and_guessed_file_type():
    def file_type(number: int) -> bytes:
        return key("general.file_type", 4, struct.pack("<I", number))

    facts = model_facts(header(key("tokenizer.chat_template", 8, text("{{ x }}")), file_type(1024 + 15)))
    assert facts["model.has_chat_template"] is True
    assert facts["model.file_type"] == "Q4_K_M"
    empty = model_facts(header(key("tokenizer.chat_template", 8, text("")), file_type(999)))
    assert empty["model.has_chat_template"] is False
    assert "model.file_type" not in empty


def test_nothing_is_known_of_a_header_with_nothing_in_it():
    assert model_facts(Header(3, {}, (), 32, None), drafters=["x"], projectors=["y"]) == {
        "model.experts": 0,
        "model.experts_used": 0,
        "model.mtp_layers": 0,
        "model.mtp_only": False,
        "model.has_chat_template": False,
        "model.weights_bytes": 0,
        "model.parameters": 0,
        "model.recurrent": False,
        "model.mla": False,
        "model.byte_order": "little",
    }


VALUES = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.booleans(),
    st.text(max_size=8),
    st.lists(st.integers(-5, 5), max_size=4).map(tuple),
    st.builds(Array, st.sampled_from(["STRING", "INT32", "TEXT"]), st.integers(0, 2**40)),
)


@given(
    general=st.dictionaries(
        st.sampled_from(["general.name", "general.file_type", "tokenizer.chat_template", "tokenizer.ggml.tokens"]),
        VALUES,
    ),
    arch=VALUES,
    geometry=st.dictionaries(st.sampled_from(SUFFIXES), VALUES),
    shape=st.lists(st.integers(0, 99), max_size=4),
)
def test_any_values_give_plain_facts_of_the_right_type(general, arch, geometry, shape):
    metadata = {"general.architecture": arch, **general, **{f"{arch}.{k}": v for k, v in geometry.items()}}
    tensors = (Tensor("token_embd.weight", tuple(shape), "F32", 4 * prod(shape)),)
    facts = model_facts(Header(3, metadata, tensors, 32, None), drafters=["a"], projectors=["b"])
    assert set(facts) <= set(MODEL_FACT_KEYS)
    for name, value in facts.items():
        flag = name.startswith(
            ("model.is_", "model.has_", "model.tied", "model.recurrent", "model.mla", "model.mtp_only")
        )
        text_fact = name in ("model.arch", "model.name", "model.file_type", "model.byte_order")
        assert type(value) is (bool if flag else str if text_fact else int), name
        assert type(value) is not int or value >= 0
