"""The placement search: what fits stays, what moves is as little as needed, and no pool is ever overfilled."""

from __future__ import annotations

import pytest
from engine_truth import index, shape
from hypothesis import given, settings
from hypothesis import strategies as st

from gezel_rules.engines.llama_cpp.memory.estimate import estimate_geometry
from gezel_rules.engines.llama_cpp.memory.flags import Launch
from gezel_rules.engines.llama_cpp.memory.placement import Pool, place
from gezel_rules.engines.llama_cpp.memory.search import largest

GIB = 1 << 30
LAUNCH = Launch(ctx=16384, parallel=1)


def cards(*gib, ram=64):
    return [
        *(Pool(f"GPU{i}", "discrete", round(g * GIB)) for i, g in enumerate(gib)),
        Pool("ram", "ram", round(ram * GIB)),
    ]


def check_pools(found, pools, beside=0, margin=0):
    """Every pool holds what it was given, card by card."""
    for number, (use, pool) in enumerate(zip(found.pools[:-1], pools, strict=False)):
        assert use.total + margin + (beside if number == 0 else 0) <= pool.usable_bytes
    assert found.pools[-1].total + found.estimate.output_bytes <= pools[-1].usable_bytes


def test_what_fits_stays_whole():
    found = place(shape("llama-3.1-8b.gguf"), LAUNCH, cards(24))
    assert (found.fits, found.step, found.n_gpu_layers, found.tensor_split) == (True, "resident", 33, ())
    assert found.pools[-1].context_bytes == 0


def test_experts_go_first_and_no_more_than_needed():
    geo, pools = shape("qwen3-30b-a3b.gguf"), cards(12)
    found = place(geo, LAUNCH, pools)
    assert (found.fits, found.step, found.n_gpu_layers) == (True, "experts", 49)
    check_pools(found, pools)
    less = estimate_geometry(geo, found.launch._replace(n_cpu_moe=found.n_cpu_moe - 1))
    assert less.pools[0].total > pools[0].usable_bytes


def test_feed_forward_tensors_go_before_layers():
    geo, pools = shape("mistral-small-24b.gguf"), cards(10)
    found = place(geo, LAUNCH, pools)
    assert (found.fits, found.step) == (True, "ffn")
    assert found.n_gpu_layers == 41
    ((pattern, buffer),) = found.override_tensor
    assert buffer == "CPU"
    assert pattern.startswith(r"blk\.(0|1|2|")
    check_pools(found, pools)


def test_layers_go_last():
    geo, pools = shape("mistral-small-24b.gguf"), cards(4)
    found = place(geo, LAUNCH, pools)
    assert (found.fits, found.step) == (True, "layers")
    assert 0 < found.n_gpu_layers < 41
    check_pools(found, pools)


def test_steps_are_the_callers_choice():
    geo = shape("qwen3-30b-a3b.gguf")
    assert not place(geo, LAUNCH, cards(12), steps=()).fits
    assert place(geo, LAUNCH, cards(12), steps=("layers",)).step == "layers"


def test_unequal_cards_are_proven_one_by_one():
    geo, pools = shape("llama-3.1-8b.gguf"), cards(6, 3)
    found = place(geo, Launch(ctx=32768, parallel=1), pools)
    assert found.fits
    assert sum(found.tensor_split) == 33
    check_pools(found, pools)


def test_a_sum_that_would_fit_is_not_enough():
    geo = shape("deepseek-v3.gguf")
    one_layer_too_big = cards(*[4] * 110, ram=1)  # 440 GiB in pieces smaller than any expert layer
    assert not place(geo, Launch(ctx=4096, parallel=1), one_layer_too_big[:16] + one_layer_too_big[-1:]).fits


def test_refusal_says_what_is_missing_and_what_was_tried():
    found = place(shape("deepseek-v3.gguf"), LAUNCH, cards(24))
    assert not found.fits
    assert found.shortfall_bytes > 290 * GIB
    assert [attempt.step for attempt in found.tried[:2]] == ["resident", "experts"]
    assert all(attempt.why and attempt.shortfall_bytes > 0 for attempt in found.tried)


def test_what_runs_beside_sits_on_the_first_card_and_a_margin_on_each():
    geo = shape("llama-3.1-8b.gguf")
    need = estimate_geometry(geo, LAUNCH._replace(devices=1)).pools[0].total
    pools = [Pool("GPU0", "discrete", need + GIB), Pool("ram", "ram", 64 * GIB)]
    assert place(geo, LAUNCH, pools, additional_gpu_bytes=GIB, steps=()).fits
    assert not place(geo, LAUNCH, pools, additional_gpu_bytes=GIB + 1, steps=()).fits
    assert place(geo, LAUNCH, pools, margin_bytes=GIB, steps=()).fits
    assert not place(geo, LAUNCH, pools, margin_bytes=GIB + 1, steps=()).fits


def test_a_card_pays_for_the_host_weights_it_copies():
    geo, launch = shape("qwen3-30b-a3b.gguf"), LAUNCH._replace(devices=1, n_cpu_moe=10)
    without = estimate_geometry(geo, launch)
    paying = estimate_geometry(geo, launch._replace(op_offload=True))
    largest_expert = max(w.bytes for w in geo.weights if w.experts and w.place < 10)
    assert paying.pools[0].compute_bytes - without.pools[0].compute_bytes == largest_expert


def test_no_card_means_the_cpu():
    found = place(shape("llama-3.2-1b.gguf"), LAUNCH, cards(ram=16))
    assert (found.fits, found.step, found.n_gpu_layers) == (True, "cpu", None)
    assert not place(shape("llama-3.1-8b.gguf"), LAUNCH, cards(ram=2)).fits


@given(st.sampled_from(sorted(index())), st.lists(st.integers(1, 48), min_size=1, max_size=3), st.integers(4, 128))
@settings(max_examples=60, deadline=None)
def test_no_placement_overfills_a_pool(name, gib, ram):
    pools = cards(*gib, ram=ram)
    found = place(shape(name), LAUNCH, pools, additional_gpu_bytes=GIB // 2, margin_bytes=GIB // 8)
    if found.fits:
        check_pools(found, pools, beside=GIB // 2, margin=GIB // 8)
        assert found.shortfall_bytes == 0
    else:
        assert found.shortfall_bytes > 0


@given(st.integers(0, 100), st.integers(0, 100), st.integers(1, 7))
def test_largest_is_the_largest(limit, most, step):
    found = largest(lambda n: n <= limit, step, most, step)
    brute = [n for n in (*range(step, most + 1, step), *([most] if most >= step else [])) if n <= limit]
    assert found == max(brute, default=0)


def test_an_mtp_context_pipelines_over_devices_like_its_trunk():
    """816 MiB each for the trunk's and the head's buffers on the second device, 592 MiB more on the host, said the
    engine."""
    launch = Launch(ctx=65536, parallel=1, ubatch=1024, devices=2, n_gpu_layers=99, tensor_split=(1.0, 3.0))
    geo = shape("qwen3.5-9b-mtp.gguf")
    plain = estimate_geometry(geo, launch).pools
    drafting = estimate_geometry(geo, launch._replace(spec=("draft-mtp",))).pools
    more = [(b.compute_bytes - a.compute_bytes) / 2**20 for a, b in zip(plain, drafting, strict=True)]
    assert more == pytest.approx([0, 816, 592], abs=8)
