"""Described hosts: sizes exact to the byte, every fact at its line, what is left out unknown."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.errors import BadInput
from gezel_rules.facts.described_host import bytes_of, load_host
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.places import catalog_dir

HOSTS = sorted((catalog_dir() / "hosts").glob("*.yaml"))
GIB, MIB = 2**30, 2**20
FACTS = {
    "host.os",
    "host.cpus",
    "host.ram_total",
    "host.ram_free",
    "host.unified",
    "engine.family",
    "engine.kind",
    "engine.backend",
    "engine.version",
    "engine.build",
    "engine.flags",
    "devices",
}
TEXT = """\
host: box
summary: A box.
os: macos
cpus: 6
ram: {total: 16 GiB, free: 9.5 GiB}
engine: {kind: llama-server, backend: vulkan, version: 0.6.0.dev1, build: 7, flags: [--port, --ctx-size, --port]}
devices:
  - {name: Vulkan0, description: Some GPU, kind: integrated, total: 8 GB, free: 0 B, arch: gfx1100}
  - {name: Vulkan1, description: Other GPU, kind: unified, total: 1024 MiB, free: 1 GiB}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "box.yaml"
    path.write_text(TEXT)
    return path


PREFIXES = {
    "CUDA": {"backend": "cuda"}, "Vulkan": {"backend": "vulkan"}, "RPC": {"backend": "cpu", "kind": "rpc"},
}  # fmt: skip


def listed(path: Path, *names: str, backend: str = "cuda", kind: str = "discrete") -> list[str]:
    """What is said of a host whose engine is of a backend and lists devices of these names."""
    devices = [f"  - {{name: {name}, description: x, kind: {kind}, total: 8 GB, free: 8 GB}}\n" for name in names]
    text = TEXT.replace("backend: vulkan", f"backend: {backend}").partition("  - {name")[0]
    path.write_text(text + "".join(devices))
    try:
        load_host(path, {"device_prefixes": PREFIXES})
    except BadInput as error:
        return [problem.message for problem in error.problems]
    return []


@pytest.mark.parametrize(
    "names", [("CUDA0",), ("CUDA1",), ("CUDA0", "Vulkan0"), ("CUDA0", "Vulkan0", "Vulkan1"), ("NewChip0", "CUDA0")]
)
def test_a_build_of_several_backends_lists_the_devices_of_each_from_nought(path: Path, names: tuple[str, ...]) -> None:
    assert listed(path, *names) == []


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("Vulkan1",), "'Vulkan1' is a device of vulkan, but 'engine.backend' is cuda"),
        (("Vulkan0",), "'Vulkan0' is a device of vulkan, but 'engine.backend' is cuda"),
        (("CUDA0", "Vulkan1"), "'Vulkan1' is a device of vulkan, but 'engine.backend' is cuda"),
        (("Vulkan0", "Vulkan1"), "'engine.backend' is cuda, but its devices are of vulkan"),
        (("CUDA0", "Vulcan0"), "no engine calls a device 'Vulcan0'; did you mean 'Vulkan'?"),
    ],
)
def test_a_device_that_this_engine_cannot_list(path: Path, names: tuple[str, ...], said: str) -> None:
    assert listed(path, *names) == [said]


@pytest.mark.parametrize("kind", ["rpc", "software"])
def test_what_is_no_card_of_this_machine_says_nothing_of_the_build(path: Path, kind: str) -> None:
    assert listed(path, "Vulkan3", kind=kind) == []


def test_the_processor_may_be_said(path: Path) -> None:
    path.write_text(TEXT.replace("build: 7", "processor: amx"))
    assert load_host(path, {"processors": ["plain", "amx"]})["engine.processor"] == Fact("amx", f"{path}:6", "probe")
    with pytest.raises(BadInput, match="unknown processor 'amx'; it is one of: plain"):
        load_host(path, {"processors": ["plain"]})
    assert "engine.processor" not in load_host(HOSTS[0])


def test_every_fact_has_its_value_and_its_line(path: Path) -> None:
    devices = [
        {
            "name": "Vulkan0",
            "description": "Some GPU",
            "kind": "integrated",
            "arch": "gfx1100",
            "total_bytes": 8 * 10**9,
            "free_bytes": 0,
        },
        {"name": "Vulkan1", "description": "Other GPU", "kind": "unified", "total_bytes": GIB, "free_bytes": GIB},
    ]
    assert load_host(path) == {
        "host.os": Fact("macos", f"{path}:3", "probe"),
        "host.cpus": Fact(6, f"{path}:4", "probe"),
        "host.ram_total": Fact(16 * GIB, f"{path}:5", "probe"),
        "host.ram_free": Fact(19 * GIB // 2, f"{path}:5", "probe"),
        "host.unified": Fact(True, f"{path}:8", "probe"),
        "engine.family": Fact("llama-cpp", f"{path}:6", "probe"),
        "engine.kind": Fact("llama-server", f"{path}:6", "probe"),
        "engine.backend": Fact("vulkan", f"{path}:6", "probe"),
        "engine.version": Fact("0.6.0.dev1", f"{path}:6", "probe"),
        "engine.build": Fact(7, f"{path}:6", "probe"),
        "engine.flags": Fact(["--ctx-size", "--port"], f"{path}:6", "probe"),
        "devices": Fact(devices, f"{path}:8", "probe"),
    }


def test_what_is_left_out_of_the_engine_is_unknown_and_says_what_would_tell(path: Path) -> None:
    path.write_text(TEXT.replace(", build: 7, flags: [--port, --ctx-size, --port]", ""))
    facts = load_host(path)
    for name in ("engine.build", "engine.flags"):
        assert facts[name].value is UNKNOWN
        assert facts[name].settle


def test_unified_is_what_the_file_says_before_what_its_devices_are(path: Path) -> None:
    path.write_text(TEXT.replace("cpus: 6", "cpus: 6\nunified: false"))
    assert load_host(path)["host.unified"] == Fact(False, f"{path}:5", "probe")
    path.write_text(TEXT.replace("unified, total", "discrete, total"))
    assert load_host(path)["host.unified"].value is False


def test_backends_are_policys_to_know(path: Path) -> None:
    assert load_host(path, {"backends": ["vulkan"]})["engine.backend"].value == "vulkan"
    with pytest.raises(BadInput, match=r"box\.yaml:6:39: unknown backend 'vulkan'; it is one of: cpu"):
        load_host(path, {"backends": ["cpu"]})


def test_engine_families_are_for_the_caller_to_know(path: Path) -> None:
    path.write_text(TEXT.replace("engine: {kind", "engine: {family: mlx, kind"))
    assert load_host(path, {"engine_families": ["llama-cpp", "mlx"]})["engine.family"].value == "mlx"
    with pytest.raises(BadInput, match=r"box\.yaml:6:18: unknown engine family 'mlx'; it is one of: llama-cpp"):
        load_host(path, {"engine_families": ["llama-cpp"]})


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("24 GiB", 24 * GIB),
        ("23.5 GiB", 47 * GIB // 2),
        ("24564 MiB", 24564 * MIB),
        ("24GB", 24 * 10**9),
        ("0.1 KiB", 102),
        ("7 B", 7),
        ("1 TiB", 2**40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize(
    "text", ["", "24", "GiB", "-1 GiB", "1e3 GiB", "24 Gib", "24 gib", "1,5 GiB", "24  GiB", "1.GiB", "٣ GiB"]
)
def test_what_is_no_size(text: str) -> None:
    assert bytes_of(text) is None


@given(st.integers(0, 10**12 - 1), st.from_regex(r"[0-9]{1,9}", fullmatch=True), st.sampled_from("KMGT"))
def test_fractions_are_exact_and_only_part_of_a_byte_is_dropped(whole: int, decimals: str, unit: str) -> None:
    exact = Fraction(f"{whole}.{decimals}") * 1024 ** ("KMGT".index(unit) + 1)
    assert bytes_of(f"{whole}.{decimals} {unit}iB") == exact.numerator // exact.denominator


@pytest.mark.parametrize("host", HOSTS, ids=lambda path: path.stem)
def test_shipped_hosts_give_every_fact_and_fit_themselves(host: Path) -> None:
    facts = load_host(host)
    assert set(facts) == FACTS
    assert facts["host.ram_free"].value < facts["host.ram_total"].value
    assert all(fact.source.startswith(f"catalog/hosts/{host.name}:") for fact in facts.values())
    assert all(device["free_bytes"] <= device["total_bytes"] for device in facts["devices"].value)


def test_the_eight_machines_are_those_people_ask_about() -> None:
    machines = {host.stem: load_host(host) for host in HOSTS}
    card = {name: facts["devices"].value for name, facts in machines.items()}
    assert {name: facts["engine.backend"].value for name, facts in machines.items()} == {
        "cpu-32g": "cpu",
        "h200": "cuda",
        "mac-96g": "metal",
        "rtx-4090": "cuda",
        "rtx-4090-pair": "cuda",
        "rtx-5090-desktop": "cuda",
        "rx-7900-xtx-rocm": "rocm",
        "rx-7900-xtx-vulkan": "vulkan",
    }
    assert card["rtx-4090-pair"] == [card["rtx-4090"][0], {**card["rtx-4090"][0], "name": "CUDA1"}]
    desktop = card["rtx-5090-desktop"][0]
    assert desktop["total_bytes"] - desktop["free_bytes"] == 13 * GIB // 2
    assert card["rx-7900-xtx-rocm"][0]["total_bytes"] == card["rx-7900-xtx-vulkan"][0]["total_bytes"]
    assert machines["mac-96g"]["host.unified"].value is True
    assert machines["mac-96g"]["host.ram_total"].value == 96 * GIB
    assert (card["cpu-32g"], machines["cpu-32g"]["host.ram_total"].value) == ([], 32 * GIB)
