"""What engines of several years print of their own memory and of their drafters, added up."""

from __future__ import annotations

import shutil

import pytest
from shipped_rules import shipped_rules

from gezel_rules.errors import BadInput
from gezel_rules.places import policies_dir
from gezel_rules.regex import Regex
from gezel_rules.runtime.figures import MOST_BUFFERS, FigureLines, Figures

MIB = 1 << 20
LINES = shipped_rules().figures


def told(*lines: str) -> dict:
    figures = Figures(LINES)
    for line in lines:
        figures.take(line)
    return figures.data()


@pytest.mark.parametrize(
    ("line", "pool", "part", "name", "mib"),
    [
        ("0.01.138.183 I load_tensors:   CPU_Mapped model buffer size =   235.16 MiB",
         "host", "weights", "CPU_Mapped", 235.16),
        ("0.01.138.407 I load_tensors:   CPU_REPACK model buffer size =    12.66 MiB",
         "host", "weights", "CPU_REPACK", 12.66),
        ("load_tensors:        CUDA0 model buffer size = 11800.00 MiB", "CUDA0", "weights", "CUDA0", 11800),
        ("load_tensors:  MTL0_Mapped model buffer size = 14803.00 MiB", "MTL0", "weights", "MTL0_Mapped", 14803),
        ("llm_load_tensors:      Metal buffer size =  3772.00 MiB", "MTL0", "weights", "Metal", 3772),
        ("llm_load_tensors:      SYCL0 buffer size =  1100.00 MiB", "SYCL0", "weights", "SYCL0", 1100),
        ("llama_kv_cache:        CPU KV buffer size =    96.00 MiB", "host", "context", "CPU", 96),
        ("llama_kv_cache_init:  CUDA_Host KV buffer size =    64.00 MiB", "host", "context", "CUDA_Host", 64),
        ("llama_memory_recurrent:      CUDA0 RS buffer size =    62.81 MiB", "CUDA0", "context", "CUDA0", 62.81),
        ("I sched_reserve:        CPU compute buffer size =    51.28 MiB", "host", "compute", "CPU", 51.28),
        ("sched_reserve: Vulkan_Host compute buffer size =     0.89 MiB", "host", "compute", "Vulkan_Host", 0.89),
    ],
)  # fmt: skip
def test_a_buffer(line, pool, part, name, mib):
    assert told(line) == {"buffers": [{"pool": pool, "part": part, "name": name, "bytes": round(mib * MIB)}]}


@pytest.mark.parametrize(
    "line",
    [
        "llama_context:  ROCm_Host  output buffer size =     3.79 MiB",  # of no pool of a plan
        "llama_kv_cache: size =   96.00 MiB ( 32768 cells,   3 layers,  1/1 seqs), K (f16):   48.00 MiB",
        "srv    load_model: prompt cache is enabled, size limit: 8192 MiB",
        "allocated buffer, size =  3772.00 MiB, ( 3772.00 / 49152.00)",
    ],
)
def test_other_sizes_are_no_buffer_of_a_plan(line):
    assert told(line) == {}


def test_buffers_of_one_name_are_added_up():
    lines = [f"llama_kv_cache:        CPU KV buffer size = {mib} MiB" for mib in ("96.00", "15.00")]
    assert [buffer["bytes"] for buffer in told(*lines)["buffers"]] == [111 * MIB]


@pytest.mark.parametrize("words", ["acceptance", "acceptance rate"])
def test_drafts_of_all_requests_are_added_up(words):
    line = "slot print_timing: id  0 | task 7 | draft {} = 0.57576 (   19 accepted /    33 generated), mean len =  2.1"
    assert told(line.format(words), line.format(words)) == {"buffers": [], "drafts": {"accepted": 38, "drafted": 66}}


def test_a_log_without_end_fills_no_memory():
    figures = told(*(f"load_tensors: GPU{number} model buffer size = 1.00 MiB" for number in range(2 * MOST_BUFFERS)))
    assert len(figures["buffers"]) == MOST_BUFFERS


def test_a_pattern_that_catches_no_number_tells_nothing():
    lines = FigureLines(
        (Regex(r"(?P<name>\w+) (?P<part>\w+) (?P<mib>\w+)"),), {"part": "weights"}, ((Regex("."), "host"),)
    )
    figures = Figures(lines)
    figures.take("name part many")
    assert figures.data() == {}


def test_a_pattern_that_names_too_little_is_refused(tmp_path):
    policies = tmp_path / "policies"
    shutil.copytree(policies_dir(), policies)
    path = policies / "llama-cpp" / "figures.yaml"
    path.write_text(path.read_text().replace("(?P<drafted>", "(?:"))
    with pytest.raises(BadInput, match=r"must name \(\?P<drafted>…\)"):
        shipped_rules(policies)
