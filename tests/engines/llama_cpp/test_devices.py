"""Device lists as engines print them: a CPU and an RPC build's own, others as users have posted them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.engines.llama_cpp.devices import MIB, Device, device_facts, device_rules, parse_devices
from gezel_rules.engines.llama_cpp.rows import DevicePrefix
from gezel_rules.facts.fact import UNKNOWN

LISTINGS = Path(__file__).parents[2] / "data" / "engine-help"
RULES = device_rules(
    {
        "CUDA": DevicePrefix("cuda", "discrete"),
        "ROCm": DevicePrefix("rocm", "discrete"),
        "Vulkan": DevicePrefix("vulkan", "discrete"),
        "MTL": DevicePrefix("metal", "unified"),
        "RPC": DevicePrefix("", "rpc"),
    },
    software=["LLVMpipe", "Microsoft Basic Render"],
    integrated=["Radeon(TM) Graphics", "UHD Graphics"],
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
    assert facts_of(text)["engine.backend"].value is UNKNOWN


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
