"""Which of the listed devices take part: cards before GPUs that share the RAM, one of several unequal ones where it
holds everything, no card twice, and no choice where the engine knows better."""

from __future__ import annotations

import pytest
from worlds import LARGE, World, card, shape, used

from gezel_rules.errors import BadInput

RTX_4060 = "  Vulkan0: NVIDIA GeForce RTX 4060 Laptop GPU (7957 MiB, 7189 MiB free)"
RTX_4090 = "  CUDA0: NVIDIA GeForce RTX 4090 (24081 MiB, 23564 MiB free)"
SHARING = [
    "  Vulkan1: Intel(R) Arc(TM) Graphics (16180 MiB, 15900 MiB free)",
    "  Vulkan1: Intel(R) Arc(TM) 140T GPU (48GB) (36180 MiB, 35900 MiB free)",
    "  Vulkan1: Intel(R) Arc(TM) B390 GPU (18180 MiB, 17900 MiB free)",
    "  Vulkan1: Intel(R) Iris(R) Xe Graphics (16180 MiB, 15900 MiB free)",
    "  Vulkan1: AMD Radeon 780M Graphics (RADV PHOENIX) (31900 MiB, 31000 MiB free)",
    "  Vulkan1: AMD Radeon(TM) 890M Graphics (31900 MiB, 31000 MiB free)",
    "  Vulkan1: AMD Radeon Graphics (RADV GFX1151) (110511 MiB, 110357 MiB free)",
]


@pytest.mark.parametrize("other", SHARING)
def test_a_gpu_that_shares_the_ram_gets_no_layer_beside_a_card(world: World, other: str) -> None:
    world.entry("m")
    launch = world.plan("m", None, engine=world.engine(RTX_4060, other))
    assert launch.arg("--tensor-split") is None
    assert launch.arg("--device") is None
    assert list(used(launch.plan)) == ["Vulkan0", "host"]


@pytest.mark.parametrize("other", SHARING)
def test_its_place_in_the_list_does_not_matter(world: World, other: str) -> None:
    world.entry("m")
    swapped = [other.replace("Vulkan1", "Vulkan0"), RTX_4060.replace("Vulkan0", "Vulkan1")]
    launch = world.plan("m", None, engine=world.engine(*swapped))
    assert launch.arg("--tensor-split") is None
    assert list(used(launch.plan)) == ["Vulkan1", "host"]


def test_where_no_rule_knows_a_device_the_engine_chooses(world: World) -> None:
    world.entry("m")
    new = "  Vulkan1: Something new (16180 MiB, 15900 MiB free)"
    launch = world.plan("m", None, engine=world.engine(RTX_4060, new))
    for flag in ("--device", "--tensor-split", "--split-mode", "--n-gpu-layers"):
        assert launch.arg(flag) is None, flag
    assert launch.arg("--fit") == "on"
    assert launch.rule("flag.device") == "engine-chooses"
    assert "no rule knows whether it shares the RAM" in launch.because("flag.device")
    assert list(used(launch.plan)) == ["Vulkan0", "host"]


def test_a_single_device_that_no_rule_knows_is_a_gpu_of_which_little_is_taken(world: World) -> None:
    world.entry("m")
    new = "  Vulkan0: Something new (16384 MiB, 16384 MiB free)"
    launch = world.plan("m", None, engine=world.engine(new))
    assert launch["placement.mode"] == "resident"
    assert launch.arg("--n-gpu-layers") is not None
    assert launch.arg("--fit") == "off"
    assert launch.plan.fit.cards[0].usable == 11 << 30, "16 GiB × 75 % less 1 GiB, as of a GPU that shares the RAM"


UNEQUAL = [
    ("24 GiB", "8 GiB", "CUDA0"),
    ("8 GiB", "24 GiB", "CUDA1"),
    ("12 GiB", "11 GiB", "CUDA0"),
]


@pytest.mark.parametrize(("first", "second", "taken"), UNEQUAL)
def test_what_fits_one_card_is_not_spread_over_unequal_ones(world: World, first: str, second: str, taken: str) -> None:
    world.entry("m")
    launch = world.plan("m", world.host("pair", [card(total=first), card("CUDA1", total=second)]))
    assert launch.arg("--tensor-split") is None
    assert launch.arg("--device") == taken
    assert launch.rule("gpu.alone") == "holds"
    assert list(used(launch.plan)) == [taken, "host"]


def test_unless_the_operator_names_them(world: World) -> None:
    world.entry("m")
    pair = world.host("pair", [card(total="24 GiB"), card("CUDA1", total="8 GiB")])
    both = world.plan("m", pair, "devices=CUDA0 CUDA1")
    assert both.arg("--device") == "CUDA0,CUDA1"
    assert both.arg("--tensor-split") is not None
    assert world.plan("m", pair, "devices=CUDA1,CUDA0").arg("--device") == "CUDA1,CUDA0"
    one = world.plan("m", pair, "devices=CUDA1")
    assert (one.arg("--device"), one.arg("--tensor-split")) == ("CUDA1", None)
    assert list(used(one.plan)) == ["CUDA1", "host"]


def test_a_device_that_is_not_there_is_named(world: World) -> None:
    world.entry("m")
    with pytest.raises(BadInput, match="the engine lists no 'CUDA7'; it lists CUDA0"):
        world.plan("m", "card", "devices=CUDA7")


def test_cards_of_one_kind_share_the_layers(world: World) -> None:
    world.entry("m")
    launch = world.plan("m", world.host("pair", [card(), card("CUDA1")]))
    assert launch.rule("gpu.alone") == "alike"
    assert launch.arg("--device") == "CUDA0,CUDA1"
    assert launch.arg("--tensor-split") is not None


def test_a_card_without_a_layer_is_not_named(world: World) -> None:
    """The second card is full: no share of 0, and no compute buffer on it."""
    world.entry("large", shape(**LARGE))
    devices = [card(total="24 GiB"), card("CUDA1", total="24 GiB", free="700 MiB"), card("CUDA2", total="24 GiB")]
    launch = world.plan("large", world.host("three", devices))
    assert launch.arg("--device") == "CUDA0,CUDA2"
    assert len(launch.arg("--tensor-split").split(",")) == 2
    assert list(used(launch.plan)) == ["CUDA0", "CUDA2", "host"]


TWICE = [
    (RTX_4090, "  Vulkan0: NVIDIA GeForce RTX 4090 (24564 MiB, 23600 MiB free)", "CUDA0"),
    ("  ROCm0: AMD Radeon RX 7900 XTX (24560 MiB, 24500 MiB free)",
     "  Vulkan0: AMD Radeon RX 7900 XTX (RADV NAVI31) (24560 MiB, 24400 MiB free)", "ROCm0"),
    ("  SYCL0: Intel(R) Arc(TM) A770 Graphics (15473 MiB, 15473 MiB free)",
     "  Vulkan0: Intel(R) Arc(tm) A770 Graphics (DG2) (16288 MiB, 15900 MiB free)", "SYCL0"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "taken"), TWICE)
def test_a_card_that_two_backends_list_counts_once(world: World, first: str, second: str, taken: str) -> None:
    world.entry("m")
    launch = world.plan("m", None, engine=world.engine(first, second))
    assert launch.arg("--tensor-split") is None
    assert launch.arg("--device") == taken
    assert launch.plan.trace.facts["gpu.count"].value == 1
    assert list(used(launch.plan)) == [taken, "host"]


def test_two_cards_that_two_backends_list_are_two(world: World) -> None:
    world.entry("large", shape(**LARGE))
    listed = [f"  {backend}{n}: NVIDIA GeForce RTX 3060 (12288 MiB, 12000 MiB free)"
              for backend in ("CUDA", "Vulkan") for n in (0, 1)]  # fmt: skip
    assert world.plan("large", None, engine=world.engine(*listed)).arg("--device") == "CUDA0,CUDA1"


def test_no_shares_are_made_up_for_cards_of_unknown_memory(world: World) -> None:
    world.entry("m")
    launch = world.plan("m", None, engine=world.engine(*(f"  CUDA{n}: A card (0 MiB, 0 MiB free)" for n in (0, 1))))
    assert launch.arg("--tensor-split") is None
    assert launch.arg("--fit") == "on"
