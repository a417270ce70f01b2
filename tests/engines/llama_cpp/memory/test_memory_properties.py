"""What must hold for any launch: more window never costs less, cells come in whole pads, parts make the whole."""

from __future__ import annotations

from engine_truth import architectures, index, shape
from hypothesis import given, settings
from hypothesis import strategies as st

from gezel_rules.engines.llama_cpp.memory.estimate import estimate_geometry
from gezel_rules.engines.llama_cpp.memory.launch import Launch

PAD = 256
shapes = st.sampled_from(sorted(index())).map(shape)
types = st.sampled_from(["f16", "q8_0", "q4_0", "f32"])
counts = st.integers(1, 8)


@st.composite
def launches(draw):
    """Flags an operator might pass."""
    kind, devices = draw(types), draw(st.integers(0, 3))
    return Launch(
        ctx=draw(st.integers(1, 200_000)),
        type_k=kind,
        type_v=kind,
        parallel=draw(st.none() | counts),
        kv_unified=draw(st.booleans()),
        ubatch=draw(st.sampled_from([32, 512, 1024])),
        swa_full=draw(st.booleans()),
        devices=devices,
        n_gpu_layers=draw(st.none() | st.integers(0, 99)),
        tensor_split=tuple(draw(st.lists(st.integers(1, 9), min_size=devices, max_size=devices))),
        n_cpu_moe=draw(st.integers(0, 20)),
        no_kv_offload=draw(st.booleans()),
    )


@given(shapes, launches(), st.integers(0, 100_000))
@settings(max_examples=120, deadline=None)
def test_more_window_never_costs_less(geo, launch, more):
    small = estimate_geometry(geo, launch)
    large = estimate_geometry(geo, launch._replace(ctx=launch.ctx + more))
    assert large.kv_bytes >= small.kv_bytes
    assert large.weights_bytes == small.weights_bytes
    assert large.recurrent_bytes == small.recurrent_bytes


@given(shapes, launches())
@settings(max_examples=150, deadline=None)
def test_parts_make_the_whole(geo, launch):
    found = estimate_geometry(geo, launch)
    caches = sum(c.bytes for c in found.caches) + found.recurrent_bytes
    assert sum(pool.context_bytes for pool in found.pools) == caches
    assert sum(pool.model_bytes for pool in found.pools) == found.weights_bytes
    assert sum(pool.compute_bytes for pool in found.pools) == found.compute_bytes
    assert found.total_bytes == (
        found.weights_bytes - found.lazy_bytes + caches + found.compute_bytes + found.output_bytes
    )
    for cache in found.caches:
        assert sum(size for _, size in cache.parts) == cache.bytes


@given(shapes, launches())
@settings(max_examples=150, deadline=None)
def test_cells_are_whole_pads_and_hold_the_window(geo, launch):
    found = estimate_geometry(geo, launch)
    assert all(cache.cells % PAD == 0 for cache in found.caches)
    assert found.context.ctx >= launch.ctx
    assert all(cache.cells <= found.context.ctx_seq for cache in found.caches)


@given(shapes, launches())
@settings(max_examples=80, deadline=None)
def test_devices_hold_the_same_weights_as_one_cpu_but_for_a_tied_output(geo, launch):
    there = estimate_geometry(geo, launch)
    here = estimate_geometry(geo, launch._replace(devices=0, tensor_split=()))
    tied = sum(w.bytes for w in geo.weights if w.name.endswith("(tied)"))
    assert there.weights_bytes - here.weights_bytes in (0, tied)


@given(shapes, st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_a_finer_type_never_costs_less(geo, slots):
    sizes = [
        estimate_geometry(geo, Launch(ctx=16384, type_k=k, type_v=k, parallel=slots)).kv_bytes
        for k in sorted(architectures().cache_types, key=lambda k: architectures().cache_types[k].bytes)
    ]
    assert sizes == sorted(sizes)
