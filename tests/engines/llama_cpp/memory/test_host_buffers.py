"""Weights on the CPU, by the buffer the engine gives them on each kind of processor."""

from __future__ import annotations

import pytest
from engine_truth import MIB, architectures, judged_buffers, retyped, rows, same_buffers, shape

from gezel_rules.engines.llama_cpp.memory.estimate import estimate_geometry
from gezel_rules.engines.llama_cpp.memory.flags import Launch
from gezel_rules.engines.llama_cpp.memory.host_buffers import BUFFERS, stays
from gezel_rules.errors import BadInput
from gezel_rules.gguf.records import Tensor


@pytest.mark.parametrize(("table", "processor", "asked"), [("truth", None, 1363), ("amx", "amx", 74)])
def test_every_buffer_is_as_large_as_the_engine_says(table, processor, asked):
    judged = judged_buffers(table, processor)
    assert len(judged) == asked
    assert [(row["shape"], row["model_mib"], ours) for row, ours, right in judged if not right] == []


def test_every_buffer_of_other_types_is_too():
    """Six shapes with all their tensors of one type, put to a build for AMX and to one for AVX2 (llama.cpp 0.6.0-dev,
    sdist 11434, ``-fit on -lv 4``, with and without ``--no-repack``)."""
    wrong, made = [], {}
    for row in rows("retyped"):
        name, kind, launch = row["gguf"], row["type"], Launch(ctx=512, parallel=1, processor=row["processor"])
        geo = made.get((name, kind)) or made.setdefault((name, kind), retyped(name, kind))
        ours = estimate_geometry(geo, launch).buffers
        if not same_buffers(ours, row["model_mib"]):
            wrong.append((name, kind, row["processor"], ours, row["model_mib"]))
    assert len(made) == 6 * 28
    assert wrong == []


def test_amx_changes_nothing_but_the_weights():
    for row in rows("amx"):
        plain, amx = (
            estimate_geometry(shape(row["gguf"]), Launch(ctx=8192, parallel=1, processor=p)) for p in ("plain", "amx")
        )
        assert amx.caches == plain.caches
        assert amx.compute_bytes == plain.compute_bytes


def test_without_packing_everything_lies_in_one_buffer():
    found = estimate_geometry(shape("qwen3-30b-a3b.gguf"), Launch(ctx=8192, processor="plain"))
    assert found.buffers == {"Host": found.weights_bytes, "CPU_REPACK": 0, "AMX": 0}


def test_devices_leave_the_buffers_to_what_stays():
    geo = shape("llama-3.1-8b.gguf")
    none = estimate_geometry(geo, Launch(ctx=8192, devices=1, processor="amx"))
    half = estimate_geometry(geo, Launch(ctx=8192, devices=1, n_gpu_layers=16, processor="amx"))
    assert none.buffers == {"Host": none.pools[-1].model_bytes, "CPU_REPACK": 0, "AMX": 0}
    assert half.buffers["AMX"] > 1000 * MIB
    assert sum(half.buffers.values()) == half.pools[-1].model_bytes


def stay(kind, dims, processor="amx", nbytes=1 << 20, **use):
    """Buffer and bytes of one tensor of a MiB, a matrix of the trunk unless told otherwise."""
    tensor = Tensor("blk.0.made_up.weight", dims, kind, nbytes)
    return tuple(stays(tensor, architectures(), **{"experts": False, "multiplied": True, **use})[processor])


@pytest.mark.parametrize(
    ("kind", "dims", "use", "processor", "expected"),
    [
        ("Q4_K", (256, 64), {}, "amx", ("AMX", MIB + 64 * 4)),
        ("Q4_K", (256, 40), {}, "amx", ("CPU_REPACK", MIB)),
        ("Q4_K", (256, 36), {}, "amx", ("Host", MIB)),
        ("Q4_K", (256, 64), {}, "avx2", ("CPU_REPACK", MIB)),
        ("Q4_K", (256, 64), {}, "plain", ("Host", MIB)),
        ("Q4_K", (256, 64, 8), {"experts": True}, "amx", ("CPU_REPACK", MIB)),
        ("Q4_K", (256, 64, 1), {"experts": True}, "amx", ("Host", MIB)),
        ("Q4_K", (256, 64, 8), {}, "avx2", ("Host", MIB)),
        ("Q4_K", (256, 64), {"multiplied": False}, "amx", ("Host", MIB)),
        ("Q8_0", (64, 32), {}, "amx", ("AMX", MIB + 32 * 2 * 4)),
        ("Q8_0", (64, 32), {}, "avx2", ("Host", MIB)),
        ("Q8_0", (64, 32, 8), {}, "amx", ("AMX", MIB // 8 + 32 * 2 * 4)),
        ("IQ4_XS", (512, 32), {}, "amx", ("AMX", MIB + 32 * 2 * 2)),
        ("Q8_0", (64, 32, 0), {}, "amx", ("AMX", MIB + 32 * 2 * 4)),
        ("F16", (16, 32, 8), {}, "amx", ("AMX", MIB)),
        ("F16", (24, 32), {}, "amx", ("Host", MIB)),
        ("F16", (4096,), {}, "amx", ("Host", MIB)),
        ("BF16", (64, 64), {}, "amx", ("Host", MIB)),
        ("Q2_K", (256, 64), {}, "avx2", ("Host", MIB)),
        ("Q2_K", (256, 64), {}, "avx512", ("CPU_REPACK", MIB)),
        ("Q2_K", (256, 64), {}, "amx", ("CPU_REPACK", MIB)),
    ],
)
def test_one_tensor(kind, dims, use, processor, expected):
    assert stay(kind, dims, processor, **use) == expected


def test_tensors_are_padded():
    assert stay("F32", (3, 3), nbytes=36) == ("Host", 64)


def test_a_processor_nobody_described():
    with pytest.raises(BadInput, match="processor 'sse' is none of: plain, avx2, avx512, amx"):
        estimate_geometry(shape("llama-3.2-1b.gguf"), Launch(processor="sse"))


def test_the_table_names_types_it_describes():
    tables = architectures()
    assert {kind for row in tables.processors.values() for kind in row.repack} == set(tables.repack)
    assert BUFFERS == ("Host", "CPU_REPACK", "AMX")
