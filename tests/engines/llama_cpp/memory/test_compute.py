"""Graphs of compute buffers: what is left out or put in again while building one does not change what it comes to."""

from __future__ import annotations

import pytest
from engine_truth import index, shape

from gezel_rules.engines.llama_cpp.memory import compute
from gezel_rules.engines.llama_cpp.memory.estimate import estimate_geometry
from gezel_rules.engines.llama_cpp.memory.flags import Launch

LAUNCHES = (
    Launch(ctx=8192, flash_attn="on"),
    Launch(ctx=8192, devices=2, tensor_split=(1, 2), n_cpu_moe=6, type_k="q8_0", type_v="q8_0"),
    Launch(ctx=8192, devices=1, n_gpu_layers=9, no_kv_offload=True, flash_attn="off"),
)


@pytest.mark.parametrize("name", sorted(index()))
def test_a_layer_put_in_again_is_the_layer_built_again(name, monkeypatch):
    repeated = [estimate_geometry(shape(name), launch).pools for launch in LAUNCHES]
    monkeypatch.setattr(compute, "alike", lambda geo: [])
    monkeypatch.setattr(compute, "_remembered", lambda geo: {})
    assert [estimate_geometry(shape(name), launch).pools for launch in LAUNCHES] == repeated


def test_of_layers_that_are_alike_three_are_built(monkeypatch):
    built, real = [], compute.pass_of
    monkeypatch.setattr(compute, "pass_of", lambda run, number, *rest: built.append(number) or real(run, number, *rest))
    monkeypatch.setattr(compute, "_remembered", lambda geo: {})
    estimate_geometry(shape("llama-3.1-8b.gguf"), LAUNCHES[0])
    assert len(built) == 3  # the first, one of those in between, the last
