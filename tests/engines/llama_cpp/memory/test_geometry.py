"""From keys to layers: patterns, shared caches, states, latent attention, indexers; and headers that make no sense."""

from __future__ import annotations

import pytest
from engine_truth import architectures, shape
from hypothesis import given, settings
from hypothesis import strategies as st

from gezel_rules.engines.llama_cpp.memory.estimate import estimate, estimate_geometry
from gezel_rules.engines.llama_cpp.memory.geometry import geometry
from gezel_rules.engines.llama_cpp.memory.launch import Launch
from gezel_rules.errors import BadInput
from gezel_rules.gguf import Array, Header, Tensor

ROWS = architectures().architectures


def header(arch, keys, tensors=()):
    """A header of so many keys; tensors by name and dimensions, in f16."""
    made = {
        "context_length": 4096,
        "embedding_length": 1024,
        "block_count": 8,
        "attention.head_count": 8,
        "attention.head_count_kv": 4,
        **keys,
    }
    metadata = {"general.architecture": arch, **{f"{arch}.{k}": v for k, v in made.items() if v is not None}}
    return Header(
        3, metadata, tuple(Tensor(n, d, "F16", 2 * d[0] * (d[1] if len(d) > 1 else 1)) for n, d in tensors), 0, None
    )


def sliding(arch, **keys):
    return [layer.sliding for layer in geometry(header(arch, keys), architectures()).layers]


@pytest.mark.parametrize(
    ("arch", "keys", "dense"),
    [
        ("gemma3", {"attention.sliding_window": 512}, [5]),
        ("gemma2", {}, [1, 3, 5, 7]),
        ("gpt-oss", {"attention.sliding_window": 128}, [1, 3, 5, 7]),
        ("cohere2moe", {"attention.sliding_window": 512}, [0, 4]),
        ("llama4", {}, [3, 7]),
        ("llama4", {"attention.sliding_window": 0}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ("olmo2", {}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ("olmo2", {"attention.sliding_window": 512}, [3, 7]),
        ("exaone4", {"attention.sliding_window": 512}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ("phi3", {"attention.sliding_window": 512}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ("plamo3", {"attention.sliding_window": 512}, [7]),
        ("gemma3", {"attention.sliding_window": 512, "attention.sliding_window_pattern": 2}, [1, 3, 5, 7]),
        (
            "gemma3",
            {"attention.sliding_window": 512, "attention.sliding_window_pattern": (True, False) * 4},
            [1, 3, 5, 7],
        ),
    ],
)
def test_which_layers_are_dense(arch, keys, dense):
    assert [i for i, slides in enumerate(sliding(arch, **keys)) if not slides] == dense


def test_shared_and_hard_coded_caches():
    geo = geometry(
        header("gemma4", {"attention.sliding_window": 512, "attention.shared_kv_layers": 3}), architectures()
    )
    assert [layer.cached for layer in geo.layers] == [True] * 5 + [False] * 3
    assert sum(layer.cached for layer in shape("gemma3n-e4b.gguf").layers) == 20


def test_layers_of_an_mtp_head_are_not_cached_by_the_trunk():
    geo = geometry(header("glm4moe", {"nextn_predict_layers": 2}), architectures())
    assert [layer.cached for layer in geo.layers] == [True] * 6 + [False] * 2
    assert (geo.trunk, geo.nextn) == (6, 2)


@pytest.mark.parametrize(
    ("arch", "keys", "recurrent", "floats"),
    [
        ("mamba", {"ssm.conv_kernel": 4, "ssm.inner_size": 2048, "ssm.state_size": 16}, 8, 3 * 2048 + 16 * 2048),
        ("rwkv7", {"wkv.head_size": 64, "token_shift_count": 2}, 8, 2 * 1024 + 1024 * 64),
        ("lfm2", {"shortconv.l_cache": 3, "attention.head_count_kv": (0, 4) * 4}, 4, 2 * 1024),
        (
            "kimi-linear",
            {"kda.head_dim": 64, "ssm.conv_kernel": 4, "attention.head_count_kv": (0, 0, 0, 1) * 2},
            6,
            3 * 3 * 8 * 64 + 64 * 64 * 8,
        ),
        (
            "qwen35",
            {"ssm.conv_kernel": 4, "ssm.inner_size": 2048, "ssm.state_size": 128, "ssm.group_count": 16},
            6,
            3 * (2048 + 2 * 16 * 128) + 128 * 2048,
        ),
    ],
)
def test_recurrent_states(arch, keys, recurrent, floats):
    geo = geometry(header(arch, keys), architectures())
    assert sum(layer.recurrent for layer in geo.layers) == recurrent
    assert geo.state_r + geo.state_s == floats


def test_latent_attention_caches_keys_only_when_the_file_says_how():
    keys = {"attention.key_length": 576, "attention.value_length": 512, "attention.head_count_kv": 1}
    plain = geometry(header("deepseek2", keys), architectures())
    assert (plain.mla, plain.layers[0].k, plain.layers[0].v) == (False, 576, 512)
    latent = {"attention.key_length_mla": 192, "attention.value_length_mla": 128}
    mla = geometry(header("deepseek2", {**keys, **latent}), architectures())
    assert (mla.mla, mla.layers[0].k, mla.layers[0].v) == (True, 576, 0)


def test_indexers_have_a_cache_of_their_own():
    keys = {"attention.indexer.key_length": 128, "attention.indexer.types": (1, 0) * 4}
    found = estimate(header("glm-dsa", keys), Launch(ctx=4096, parallel=1), architectures())
    by_name = {cache.name: cache for cache in found.caches}
    assert (by_name["full"].layers, by_name["indexer"].layers) == (8, 4)


def test_deepseek4_keeps_a_stream_per_slot_even_when_unified():
    keys = {
        "attention.sliding_window": 128,
        "attention.compress_ratios": (0, 4, 128, 4, 128, 4, 128, 4),
        "attention.indexer.key_length": 128,
        "attention.head_count_kv": 1,
    }
    found = estimate(header("deepseek4", keys), Launch(ctx=8192, parallel=4, kv_unified=True), architectures())
    assert {(c.name, c.cells, c.streams, c.layers) for c in found.caches} == {
        ("base", 8192, 4, 0),
        ("swa", 768, 4, 8),
        ("compressed", 2048, 4, 4),
        ("coarse", 256, 4, 3),
        ("indexer", 2048, 4, 4),
    }
    assert found.recurrent_bytes > 0


def test_encoders_have_no_cache():
    assert not estimate(header("bert", {}), Launch(), architectures()).caches


def test_an_unknown_architecture_is_estimated_and_said_to_be_unverified():
    found = estimate(header("llama9", {"attention.sliding_window": 512}), Launch(ctx=4096, parallel=1), architectures())
    assert found.kv_bytes == 4096 * 8 * 2 * 4 * 128 * 2
    assert "llama9 is unverified" in found.unknown[0]
    assert "attention.sliding_window, not accounted for" in found.unknown[0]
    assert found.to_json()["unknown"]


@pytest.mark.parametrize(
    ("launch", "reason"),
    [
        (Launch(type_v="q8_0", flash_attn="off"), "quantised V cache (q8_0) needs flash attention"),
        (Launch(spec=("draft-mtp",)), "needs an MTP head"),
        (Launch(spec=("draft-nothing",)), "draft-nothing is not known"),
    ],
)
def test_what_the_engine_would_refuse(launch, reason):
    assert any(reason in line for line in estimate_geometry(shape("llama-3.1-8b.gguf"), launch).refused)


def test_quantised_caches_need_whole_blocks():
    odd = header("llama", {"attention.key_length": 80, "attention.value_length": 80})
    found = estimate(odd, Launch(type_k="q8_0", type_v="q8_0"), architectures())
    assert sum("divisible by 32; this model has 80" in line for line in found.refused) == 2


def test_latent_caches_need_one_type():
    found = estimate_geometry(shape("deepseek-v3.gguf"), Launch(ctx=4096, type_k="q8_0"))
    assert "K (q8_0) and V (f16) types must be equal" in found.refused[0]


def test_an_unknown_cache_type_is_named_with_the_known_ones():
    with pytest.raises(BadInput, match=r"'q9_9' is not one the engine knows \(f32, f16, "):
        estimate_geometry(shape("llama-3.1-8b.gguf"), Launch(type_k="q9_9"))


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"block_count": None}, "block_count"),
        ({"block_count": 0}, "block_count"),
        ({"block_count": "8"}, "block_count"),
        ({"block_count": 100_000}, "100000 layers"),
        ({"embedding_length": 1 << 60}, "embedding_length"),
        ({"attention.head_count": 2.5}, "per-layer count"),
        ({"attention.head_count": Array("UINT32", 9999)}, "per-layer count"),
        ({"attention.key_length": -1}, "attention.key_length"),
        ({"expert_used_count": (1, "x")}, "per-layer count"),
        ({"expert_used_count": 5000}, "5000 experts"),
    ],
)
def test_senseless_headers_are_said_to_be(keys, word):
    with pytest.raises(BadInput, match=word):
        estimate(header("llama", keys), Launch(), architectures())


def test_a_layer_without_its_tensors_is_priced_coarsely_and_said_to_be():
    broken = header("llama", {}, [("blk.0.attn_q.weight", (1024, 1024)), ("blk.0.ffn_down.weight", (4096, 1024))])
    found = estimate(broken, Launch(ctx=2048), architectures())
    assert found.compute_bytes > 0
    assert "coarse estimate" in found.unknown[0]


values = st.one_of(
    st.integers(-2, 1 << 41), st.integers(0, 300), st.text(max_size=3), st.booleans(), st.floats(allow_nan=False),
    st.none(), st.lists(st.integers(0, 40), max_size=12).map(tuple), st.just(Array("UINT32", 1 << 40)),
)  # fmt: skip
KEYS = [
    "block_count", "context_length", "embedding_length", "attention.head_count", "attention.head_count_kv",
    "attention.key_length", "attention.value_length", "attention.sliding_window", "feed_forward_length",
    "attention.sliding_window_pattern", "attention.shared_kv_layers", "expert_count", "expert_used_count",
    "nextn_predict_layers", "ssm.conv_kernel", "ssm.inner_size", "ssm.state_size", "ssm.group_count",
    "full_attention_interval", "attention.recurrent_layers", "attention.compress_ratios",
    "attention.indexer.key_length", "attention.key_length_mla", "attention.value_length_mla", "vocab_size",
    "embedding_length_per_layer_input", "num_loops", "kda.head_dim", "wkv.head_size", "shortconv.l_cache",
]  # fmt: skip
STEMS = ["attn_norm", "attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_norm", "ffn_up", "ffn_down",
         "ffn_gate", "ffn_gate_inp", "ffn_down_exps", "ffn_up_exps", "ssm_in", "ssm_out", "ssm_conv1d", "ssm_a",
         "ssm_x", "shortconv.in_proj", "attn_kv_a_mqa", "attn_kv_a_norm", "altup_router", "attn_q_norm"]  # fmt: skip
tensors = st.lists(
    st.tuples(
        st.builds("blk.{}.{}.weight".format, st.integers(0, 9), st.sampled_from(STEMS)),
        st.lists(st.integers(1, 4096), min_size=1, max_size=3).map(tuple),
    ),
    max_size=12,
    unique_by=lambda pair: pair[0],
)


@given(st.sampled_from(sorted(ROWS)), st.dictionaries(st.sampled_from(KEYS), values, max_size=5), tensors)
@settings(max_examples=400, deadline=None)
def test_any_header_is_priced_or_refused_in_one_line(arch, keys, found):
    try:
        result = estimate(header(arch, keys, found), Launch(ctx=2048, parallel=2, devices=1), architectures())
    except BadInput as error:
        assert "\n" not in str(error)
    else:
        assert result.total_bytes >= 0
        assert all(min(pool[1:]) >= 0 for pool in result.pools)


@pytest.mark.parametrize(
    ("launch", "flash"),
    [
        ({"n_gpu_layers": 8}, False),  # layer 8 stays on the CPU, but what follows it runs on the GPU
        ({"n_gpu_layers": 8, "flash_attn": "on"}, True),
        ({"n_gpu_layers": 8, "type_v": "q8_0"}, True),
        ({"n_gpu_layers": 99}, True),
        ({"n_gpu_layers": 99, "no_kv_offload": True}, False),
    ],
)
def test_auto_mode_gives_up_flash_attention_where_it_would_leave_its_layer(launch, flash):
    found = estimate_geometry(shape("lfm2-1.2b.gguf"), Launch(ctx=8192, parallel=1, devices=1, **launch))
    assert found.context.flash is flash
    assert found.to_json()["flash_attention"] is flash


def test_what_giving_up_flash_attention_costs():
    """556 and 560 MiB said the engine, 76 with flash attention."""
    launch = Launch(ctx=8192, parallel=1, devices=1, n_gpu_layers=8)
    pools = estimate_geometry(shape("lfm2-1.2b.gguf"), launch).pools
    assert [round(pool.compute_bytes / 2**20) for pool in pools] == pytest.approx([556, 560], abs=8)
