"""Device lists as engines print them: a CPU and an RPC build's own, others as users have posted them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.engines import registry
from gezel_rules.engines.llama_cpp.devices import MIB, Device, device_facts, device_rules, parse_devices
from gezel_rules.engines.llama_cpp.rows import DeviceName, DevicePrefix
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies

LISTINGS = Path(__file__).parents[2] / "data" / "engine-help"
POLICIES = read_policies(policies_dir(), registry.family("llama-cpp"), None)
RULES = device_rules(
    POLICIES.rows("device_prefixes", DevicePrefix),
    POLICIES.rows("device_names", DeviceName),
    POLICIES.tables["device_lines"],
)


def facts_of(text: str):
    return device_facts(parse_devices(text, RULES), RULES, "cpu", "llama-server --list-devices")


def test_two_cards_after_what_the_backend_prints_while_starting():
    text = (
        "ggml_cuda_init: found 2 CUDA devices (Total VRAM: 35936 MiB):\n"
        "  Device 0: NVIDIA GeForce RTX 3080 Ti, compute capability 8.6, VMM: yes, VRAM: 11909 MiB\n"
        "Available devices:\n"
        "  CUDA0: NVIDIA GeForce RTX 3080 Ti (11909 MiB, 11650 MiB free)\n"
        "  CUDA1: NVIDIA RTX PRO 4000 Blackwell SFF Edition (24026 MiB, 23795 MiB free)\n"
    )
    assert parse_devices(text, RULES) == [
        Device("CUDA0", "NVIDIA GeForce RTX 3080 Ti", 11909 * MIB, 11650 * MIB, "discrete"),
        Device("CUDA1", "NVIDIA RTX PRO 4000 Blackwell SFF Edition", 24026 * MIB, 23795 * MIB, "discrete"),
    ]
    found = facts_of(text)
    assert found["engine.backend"][:2] == ("cuda", "llama-server --list-devices: CUDA0")
    assert found["host.unified"].value is False
    assert found["devices"].value[0]["free_bytes"] == 11650 * MIB
    assert found["devices"].source == "llama-server --list-devices: CUDA0, CUDA1"


def test_an_integrated_gpu_is_told_by_its_description_parentheses_and_all():
    text = "Available devices:\n  ROCm0: AMD Radeon(TM) Graphics (110511 MiB, 110357 MiB free)\n"
    assert parse_devices(text, RULES) == [
        Device("ROCm0", "AMD Radeon(TM) Graphics", 110511 * MIB, 110357 * MIB, "integrated")
    ]
    assert facts_of(text)["host.unified"][:2] == (True, "llama-server --list-devices: ROCm0")


def test_unified_memory():
    found = facts_of("Available devices:\n  MTL0: Apple M3 Max (98304 MiB, 98303 MiB free)\n")
    assert found["engine.backend"].value == "metal"
    assert found["host.unified"].value is True


def test_a_software_renderer_is_flagged_and_never_chosen_before_a_card():
    text = (
        "Available devices:\r\n"
        "  Vulkan0: llvmpipe (LLVM 15.0.7, 256 bits) (24105 MiB, 24105 MiB free)\r\n"
        "  Vulkan1: NVIDIA GeForce RTX 2060 (6144 MiB, 5136 MiB free)\r\n"
    )
    devices = parse_devices(text, RULES)
    assert [(device.name, device.kind) for device in devices] == [("Vulkan0", "software"), ("Vulkan1", "discrete")]
    assert facts_of(text)["engine.backend"].source.endswith("Vulkan1")


def test_none_is_the_cpu():
    text = (LISTINGS / "llama-server-0.6.0-dev.list-devices.txt").read_text()
    found = facts_of(text)
    assert found["devices"].value == []
    assert found["engine.backend"].value == "cpu"
    assert found["host.unified"].value is False


def test_a_remote_device_of_a_real_rpc_build_is_no_backend_of_this_machine():
    text = (LISTINGS / "llama-server-0.6.0-dev.list-devices-rpc.txt").read_text()
    (device,) = parse_devices(text, RULES)
    assert device == Device("RPC0", "127.0.0.1:50977", 24105 * MIB, 24105 * MIB, "rpc")
    assert facts_of(text)["engine.backend"].value == "cpu"


def test_older_remote_names_hold_a_colon():
    text = "Available devices:\n  RPC[10.0.0.2:50052]: RPC[10.0.0.2:50052] (8000 MiB, 7000 MiB free)\n"
    (device,) = parse_devices(text, RULES)
    assert (device.name, device.kind) == ("RPC[10.0.0.2:50052]", "rpc")


def test_memory_an_engine_cannot_tell_is_unknown_not_zero():
    (device,) = parse_devices("Available devices:\n  CUDA0: Odd (0 MiB, 0 MiB free)\n", RULES)
    assert (device.total_bytes, device.free_bytes) == (None, None)


def test_a_name_no_rule_knows_leaves_the_answer_open():
    found = facts_of("Available devices:\n  Quux0: Something new (10 MiB, 9 MiB free)\n")
    assert found["engine.backend"].value is UNKNOWN
    assert found["host.unified"].value is UNKNOWN
    assert found["devices"].value[0]["kind"] is None
    assert "device rule" in found["engine.backend"].settle


def test_no_list_is_not_an_empty_list():
    assert parse_devices("usage: something else\n", RULES) is None
    assert facts_of("")["devices"].value is UNKNOWN


def test_words_of_a_device_cannot_drive_the_terminal():
    (device,) = parse_devices("Available devices:\n  CUDA0: evil\x1b[2J\x07 (10 MiB, 9 MiB free)\n", RULES)
    assert device.description.isprintable()


NAMES = st.from_regex(r"[A-Za-z]{1,8}[0-9]{1,3}", fullmatch=True)
WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=40).map(str.strip).filter(bool)


@given(st.lists(st.tuples(NAMES, WORDS, st.integers(1, 10**7), st.integers(0, 10**7)), max_size=8))
def test_every_printed_device_is_read_back(entries):
    text = "Available devices:\n" + "".join(f"  {n}: {d} ({t} MiB, {f} MiB free)\n" for n, d, t, f in entries)
    devices = parse_devices(text, RULES)
    assert [(d.name, d.description, d.total_bytes, d.free_bytes) for d in devices] == [
        (n, d, t * MIB, f * MIB) for n, d, t, f in entries
    ]


@given(st.text(max_size=400))
def test_any_text_gives_a_list_or_none(text):
    devices = parse_devices("Available devices:\n" + text, RULES)
    assert devices is not None
    assert all(device.name.isprintable() for device in devices)


NAMES_AND_KINDS = [
    ("Vulkan0: NVIDIA GeForce RTX 4060 Laptop GPU", "discrete"),
    ("Vulkan1: Intel(R) Arc(TM) Graphics", "integrated"),
    ("Vulkan0: Intel(R) Arc(tm) Graphics (MTL)", "integrated"),
    ("Vulkan0: Intel(R) Arc(TM) 140V GPU (16GB)", "integrated"),
    ("Vulkan0: Intel(R) Arc(TM) 140T GPU (48GB)", "integrated"),
    ("Vulkan0: Intel(R) Arc(TM) B390 GPU", "integrated"),
    ("Vulkan0: Intel(R) Arc(TM) B580 Graphics", "discrete"),
    ("Vulkan0: Intel(R) Arc(tm) B580 Graphics (BMG G21)", "discrete"),
    ("Vulkan0: Intel(R) Arc(TM) Pro B60 Graphics", "discrete"),
    ("Vulkan0: Intel(R) Arc(TM) Pro Graphics", "integrated"),
    ("Vulkan0: Intel(R) Arc(TM) Pro 140T GPU", "integrated"),
    ("SYCL0: Intel(R) Arc(TM) A770 Graphics", "discrete"),
    ("SYCL0: Intel Arc A580 Graphics", "discrete"),
    ("SYCL1: Intel(R) UHD Graphics 770", "integrated"),
    ("SYCL0: Intel(R) Iris(R) Xe Graphics", "integrated"),
    ("Vulkan0: Intel(R) Iris(R) Xe MAX Graphics", "discrete"),
    ("Vulkan0: Intel(R) Iris(R) Xe Graphics (TGL GT2)", "integrated"),
    ("Vulkan0: Intel(R) HD Graphics 630 (KBL GT2)", "integrated"),
    ("Vulkan0: Intel(R) Graphics (ARL)", "integrated"),
    ("Vulkan0: Intel(R) Graphics", "integrated"),
    ("SYCL0: Intel(R) Graphics [0x7d55]", "integrated"),
    ("SYCL0: Intel(R) Graphics [0x56a0]", "discrete"),
    ("SYCL0: Intel(R) Graphics [0xffff]", None),
    ("SYCL0: Intel(R) Data Center GPU Max 1550", "discrete"),
    ("SYCL0: Intel(R) Data Center GPU Flex 170", "discrete"),
    ("ROCm0: AMD Radeon RX 7900 XTX", "discrete"),
    ("ROCm0: AMD Radeon Graphics", "integrated"),
    ("ROCm0: AMD Radeon(TM) Graphics", "integrated"),
    ("Vulkan0: AMD Radeon Graphics (RADV GFX1151)", "integrated"),
    ("Vulkan0: AMD Radeon Graphics (RADV GFX1201)", "discrete"),
    ("Vulkan0: AMD Radeon Graphics (RADV NAVI48)", "discrete"),
    ("Vulkan0: AMD Radeon Graphics (RADV RAPHAEL_MENDOCINO)", "integrated"),
    ("Vulkan0: AMD Radeon 780M Graphics (RADV PHOENIX)", "integrated"),
    ("Vulkan0: AMD Radeon 780M Graphics (RADV GFX1103_R1)", "integrated"),
    ("Vulkan0: AMD Radeon(TM) 890M Graphics", "integrated"),
    ("Vulkan0: AMD Radeon 890M Graphics (RADV STRIX1)", "integrated"),
    ("Vulkan0: Radeon 8060S Graphics (RADV STRIX_HALO)", "integrated"),
    ("ROCm0: AMD Radeon 8060S Graphics", "integrated"),
    ("ROCm0: Radeon 8060S Graphics", "integrated"),
    ("Vulkan0: AMD Radeon(TM) 8050S Graphics", "integrated"),
    ("Vulkan0: AMD Radeon(TM) Vega 8 Graphics", "integrated"),
    ("Vulkan0: AMD Radeon(TM) RX Vega 11 Graphics", "integrated"),
    ("Vulkan0: Radeon RX Vega", "discrete"),
    ("Vulkan0: AMD Radeon RX Vega 64 (RADV VEGA10)", "discrete"),
    ("Vulkan0: AMD Radeon VII (RADV VEGA20)", "discrete"),
    ("Vulkan0: Radeon RX 580 Series", "discrete"),
    ("Vulkan0: AMD Radeon RX 6800M", "discrete"),
    ("Vulkan0: AMD Radeon RX 7600M XT", "discrete"),
    ("Vulkan0: AMD Radeon Pro 5500M", "discrete"),
    ("MTL0: AMD Radeon Pro 5500M", "discrete"),
    ("MTL1: Intel(R) UHD Graphics 630", "integrated"),
    ("MTL0: Apple M3 Max", "unified"),
    ("Vulkan0: Apple M2 Pro", "integrated"),
    ("Vulkan0: Apple M1 (G13G B1)", "integrated"),
    ("Vulkan0: AMD Radeon PRO W7900", "discrete"),
    ("Vulkan0: AMD Radeon AI PRO R9700", "discrete"),
    ("ROCm0: AMD Instinct MI300X", "discrete"),
    ("ROCm0: AMD Instinct MI300A", "integrated"),
    ("ROCm0: AMD Instinct MI50/MI60", "discrete"),
    ("Vulkan0: AMD Custom GPU 0405 (RADV VANGOGH)", "integrated"),
    ("Vulkan0: AMD BC-250 (RADV GFX1013)", "integrated"),
    ("Vulkan0: AMD Radeon R7 Graphics (RADV KAVERI)", "integrated"),
    ("Vulkan0: AMD Radeon(TM) R5 Graphics", "integrated"),
    ("Vulkan0: AMD Radeon R9 390 Series", "discrete"),
    ("Vulkan0: AMD Radeon(TM) 530", "discrete"),
    ("Vulkan0: AMD Radeon(TM) 610M", "integrated"),
    ("Vulkan0: AMD Radeon 680M", "integrated"),
    ("Vulkan0: AMD Radeon 860M Graphics", "integrated"),
    ("Vulkan0: AMD Ryzen AI MAX+ 395 w/ Radeon 8060S", "integrated"),
    ("Vulkan0: llvmpipe (LLVM 20.1.2, 256 bits)", "software"),
    ("Vulkan0: Microsoft Direct3D12 (NVIDIA GeForce RTX 3060)", "discrete"),
    ("Vulkan0: Virtio-GPU Venus (AMD Radeon RX 7900 XTX (RADV NAVI31))", "discrete"),
    ("CUDA0: NVIDIA GB10", "integrated"),
    ("CUDA0: Orin", "integrated"),
    ("CUDA0: NVIDIA Thor", "integrated"),
    ("CUDA0: Xavier", "integrated"),
    ("Vulkan0: NVIDIA Tegra Orin (nvgpu)", "integrated"),
    ("CUDA0: NVIDIA GH200 480GB", "discrete"),
    ("CUDA0: Tesla T4", "discrete"),
    ("CUDA0: A100-SXM4-40GB", "discrete"),
    ("CUDA0: NVIDIA GeForce 940M", "discrete"),
    ("CUDA0: Quadro P2000", "discrete"),
    ("Vulkan0: Quadro P2000", "discrete"),
    ("Vulkan0: Adreno (TM) 740", "integrated"),
    ("GPUOpenCL: QUALCOMM Adreno(TM)", "integrated"),
    ("Vulkan0: Qualcomm(R) Adreno(TM) X1-85 GPU", "integrated"),
    ("Vulkan0: Mali-G720-Immortalis MC12", "integrated"),
    ("Vulkan0: Mali-G57", "integrated"),
    ("Vulkan0: PowerVR B-Series BXE-2-32", "integrated"),
    ("Vulkan0: V3D 7.1.7.0", "integrated"),
    ("Vulkan0: Samsung Xclipse 940", "integrated"),
    ("Vulkan0: MTT S80", "discrete"),
    ("MUSA0: MTT S4000", "discrete"),
    ("CANN0: Ascend910B4", "discrete"),
    ("Vulkan0: Some New GPU 9000", None),
    ("RPC0: 127.0.0.1:50052", "rpc"),
    ("BLAS: Accelerate", "software"),
    ("HIP0: gfx90a:sramecc+:xnack-", "discrete"),
]


@pytest.mark.parametrize(("name", "kind"), NAMES_AND_KINDS)
def test_whose_memory_a_device_has_is_told_by_rules_of_names(name, kind):
    (device,) = parse_devices(f"Available devices:\n  {name} (16180 MiB, 15900 MiB free)\n", RULES)
    assert device.kind == kind


def test_what_the_engine_says_of_a_device_is_above_its_name():
    beside = (
        "0.00.012.345 D ggml_vulkan: 0 = Something new (a driver) | uma: 1 | fp16: 1 | bf16: 0\n"
        "Vulkan1: AMD Radeon Graphics (a driver) | uma: 0 | fp16: 1 | warp size: 64\n"
        "  Device 0: AMD Radeon Graphics, gfx1201 (0x1201), VMM: no, Wave Size: 32, VRAM: 16304 MiB\n"
    )
    text = (
        "Available devices:\n"
        "  Vulkan0: Something new (16180 MiB, 15900 MiB free)\n"
        "  Vulkan1: AMD Radeon Graphics (16180 MiB, 15900 MiB free)\n"
        "  ROCm0: AMD Radeon Graphics (16304 MiB, 16200 MiB free)\n"
    )
    assert [d.kind for d in parse_devices(text, RULES, beside)] == ["integrated", "discrete", "discrete"]
    assert [d.kind for d in parse_devices(text, RULES)] == [None, "integrated", "integrated"]
