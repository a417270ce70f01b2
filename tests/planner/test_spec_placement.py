"""Where the weights go: whose memory, how much of it, in which order weights leave the GPU, and when it is refused."""

from __future__ import annotations

import pytest
from worlds import GIB, LARGE, MOE, World, card, drafter, shape, used

from gezel_rules.facts.fact import UNKNOWN

MIB = 1 << 20


# ---------------------------------------------------------------- how much there is

POOLS = [
    # devices, ram, held, usable of the GPUs, usable of the RAM (bytes)
    ([card(total="24 GiB")], ("64 GiB", "60 GiB"), {}, 24 * GIB - 768 * MIB, 58 * GIB),
    ([card(total="24 GiB", free="20 GiB")], ("64 GiB", "60 GiB"), {}, 20 * GIB - 768 * MIB, 58 * GIB),
    ([card(total="24 GiB")], ("64 GiB", "60 GiB"), {"CUDA0": 5 * GIB}, 19 * GIB - 768 * MIB, 58 * GIB),
    # what others hold and what is used now are not added up: it may be the same memory
    ([card(total="24 GiB", free="20 GiB")], ("64 GiB", "60 GiB"), {"CUDA0": 3 * GIB}, 20 * GIB - 768 * MIB, 58 * GIB),
    ([card(total="24 GiB")], ("64 GiB", "63 GiB"), {"host": 20 * GIB}, 24 * GIB - 768 * MIB, 42 * GIB),
    ([card("Vulkan0", total="32 GiB", kind="integrated")], ("64 GiB", "60 GiB"), {}, 23 * GIB, 35 * GIB),
    ([card("MTL0", total="48 GiB", kind="unified")], ("64 GiB", "60 GiB"), {}, 47 * GIB, 11 * GIB),
    ([card(), card("Vulkan0", total="32 GiB", kind="integrated")], ("64 GiB", "60 GiB"), {}, 24 * GIB - 768 * MIB,
     58 * GIB),
    ([card(), card("Vulkan9", kind="software")], ("8 GiB", "4 GiB"), {}, 24 * GIB - 768 * MIB,
     2 * GIB),
    ([card(free="256 MiB")], ("8 GiB", "1 GiB"), {}, 0, 0),
]  # fmt: skip


@pytest.mark.parametrize(("devices", "ram", "held", "gpu", "host"), POOLS)
def test_what_a_launch_may_take(world: World, devices, ram, held, gpu, host) -> None:
    world.entry("m")
    backend = {"Vulkan": "vulkan", "MTL": "metal"}.get(devices[0]["name"].rstrip("0123456789"), "cuda")
    world.host("some", devices, ram=ram, backend=backend)
    facts = world.plan("m", "some", held=held).plan.trace.facts
    assert facts["gpu.usable"].value == gpu
    assert facts["ram.usable"].value == host


def test_the_sum_is_shown(world: World) -> None:
    world.entry("m")
    world.host("some", [card(total="24 GiB", free="20 GiB")])
    facts = world.plan("m", "some", held={"CUDA0": 3 * GIB}).plan.trace.facts
    assert facts["gpu.usable"].source == (
        "CUDA0 24.0 GiB × 100% − 768 MiB headroom − 3.0 GiB held by others, 20.0 GiB free now"
    )


def test_leases_of_other_launches_shrink_the_plan(world: World) -> None:
    world.entry("large", shape(**LARGE))
    alone, beside = world.plan("large"), world.plan("large", held={"CUDA0": 6 * GIB})
    assert (beside["window.tokens"], beside["slots.count"]) < (alone["window.tokens"], alone["slots.count"])
    assert beside["refusal"] is None


# ---------------------------------------------------------------- in which order weights leave


def test_everything_stays_where_it_fits(world: World) -> None:
    world.entry("moe", shape(**MOE))
    launch = world.plan("moe")
    assert launch["placement.mode"] == "resident"
    assert launch.arg("--n-gpu-layers") == str(MOE["layers"] + 1)
    assert launch.arg("--n-cpu-moe") is None
    assert launch.arg("--override-tensor") is None


def test_experts_first(world: World) -> None:
    """As few layers' experts as needed; attention and shared tensors stay."""
    world.entry("moe", shape(**MOE))
    moved = []
    for size in (14, 12, 10, 8, 6):
        launch = world.plan("moe", world.host("some", [card(total=f"{size} GiB")]), "window=16k")
        moved.append(int(launch.arg("--n-cpu-moe")))
        assert launch.arg("--n-gpu-layers") == str(MOE["layers"] + 1)
        assert launch.arg("--override-tensor") is None
        assert launch["refusal"] is None
        taken, usable = used(launch.plan)["CUDA0"], launch.plan.fit.cards[0].usable
        assert taken <= usable
        assert usable - taken < GIB  # no more moved than needed: a layer's experts are about 0.33 GiB
    assert moved == sorted(moved)


def test_then_whole_layers(world: World) -> None:
    world.entry("moe", shape(**MOE))
    launch = world.plan("moe", world.host("tiny", [card(total="1500 MiB")]))
    assert int(launch.arg("--n-cpu-moe")) == MOE["layers"]
    assert 0 <= int(launch.arg("--n-gpu-layers")) < MOE["layers"] + 1
    assert launch["refusal"] is None


def test_feed_forward_first_in_a_dense_model(world: World) -> None:
    world.entry("large", shape(**LARGE))
    launch = world.plan("large", world.host("some", [card(total="10 GiB")]), "window=8k")
    assert launch["placement.mode"] == "offloaded"
    assert launch.arg("--override-tensor").endswith("=CPU")
    assert "ffn_(up|down|gate)" in launch.arg("--override-tensor")
    assert launch.arg("--n-gpu-layers") == str(LARGE["layers"] + 1)
    assert launch.arg("--n-cpu-moe") is None
    assert "feed-forward weights of" in launch["layout"]["says"]


def test_then_its_whole_layers(world: World) -> None:
    world.entry("large", shape(**LARGE))
    launch = world.plan("large", world.host("tiny", [card(total="3 GiB")]))
    assert 0 < int(launch.arg("--n-gpu-layers")) < LARGE["layers"] + 1
    assert "layers are on the GPU" in launch["layout"]["says"]


def test_the_operator_decides_what_the_gpu_gets(world: World) -> None:
    world.entry("moe", shape(**MOE))
    launch = world.plan("moe", "card", "n_gpu_layers=20", "n_cpu_moe=5")
    assert (launch.arg("--n-gpu-layers"), launch.arg("--n-cpu-moe")) == ("20", "5")
    assert launch.rule("placement.mode") == "operator-layers"
    assert launch.arg("--threads") is None


@pytest.mark.parametrize("level", ["operator", "catalog"])
def test_a_window_somebody_asked_for_goes_before_residency(world: World, level: str) -> None:
    world.entry("large", shape(**LARGE))
    world.entry("tuned", shape(**LARGE), tuning={"window": 65536})
    world.host("tight", [card(total="16 GiB")])
    shorter = world.plan("large", "tight")
    assert (shorter["placement.mode"], shorter["gives.way"]) == ("resident", "window")
    launch = world.plan("large", "tight", "window=64k") if level == "operator" else world.plan("tuned", "tight")
    assert (launch["placement.mode"], launch["gives.way"]) == ("offloaded", "asked-window")
    assert launch["window.tokens"] == 65536
    assert "for the whole window, which was asked for" in launch.because("placement.mode")


def test_what_the_operator_fixed_stands_and_the_rest_is_placed_around_it(world: World) -> None:
    world.entry("moe", shape(**MOE))
    world.entry("large", shape(**LARGE))
    world.host("small", [card(total="10 GiB")])
    launch = world.plan("moe", "small", "n_gpu_layers=49")
    assert launch.arg("--n-gpu-layers") == "49"
    assert int(launch.arg("--n-cpu-moe")) > 0
    assert "the operator decides about the rest" in launch["layout"]["says"]
    launch = world.plan("moe", "small", "n_cpu_moe=5")
    assert launch.arg("--n-cpu-moe") == "5"
    assert int(launch.arg("--n-gpu-layers")) < 49
    launch = world.plan("large", "small", "n_gpu_layers=65")
    assert launch.arg("--n-gpu-layers") == "65"
    assert launch.arg("--override-tensor").endswith("=CPU")


# ---------------------------------------------------------------- refused


def test_a_host_share_that_does_not_fit_is_refused(world: World) -> None:
    """The card alone cannot hold it, and what would move has no room in the RAM."""
    world.entry("moe", shape(**MOE))
    launch = world.plan("moe", world.host("some", [card(total="8 GiB")], ram=("10 GiB", "8 GiB")))
    assert launch["refusal"] == "no-room"
    refused = launch.json["refused"]
    assert refused["shortfall_bytes"] == launch["layout"]["shortfall_bytes"] > 0
    assert f"{refused['shortfall_bytes'] / GIB:.1f} GiB have no place" in refused["because"]


def test_the_nearest_is_the_same_file_with_less_around_it(world: World) -> None:
    world.entry("large", shape(**LARGE))
    launch = world.plan("large", "card", "slots=200", "kv_type=f16")
    refused = launch.json["refused"]
    assert refused["try"] == {"model": "large", "set": {"slots": None}}
    assert refused["nearest"] == "large with slots left to the plan"
    assert world.plan("large", "card", "kv_type=f16")["refusal"] is None


def test_then_another_quant_of_it_and_then_another_model(world: World) -> None:
    """Each is planned before it is named."""
    world.host("small", [card(total="8 GiB")], ram=("6 GiB", "4 GiB"))
    world.entry("large-q8", shape(**LARGE, quant="Q8_0"), family="large", quant="Q8_0")
    world.entry("middling", shape(**{**LARGE, "layers": 20}))
    assert world.plan("large-q8", "small").json["refused"]["try"]["model"] == "middling"
    assert world.plan("middling", "small")["refusal"] is None
    world.entry("large-q2", shape(**{**LARGE, "layers": 30}, quant="Q2_K"), family="large", quant="Q2_K")
    refused = world.plan("large-q8", "small").json["refused"]
    assert refused["try"]["model"] == "large-q2"
    assert refused["nearest"].startswith("Q2_K of it: large-q2")
    assert world.plan("large-q2", "small")["refusal"] is None


def test_nothing_fits(world: World) -> None:
    world.entry("large", shape(**LARGE))
    world.host("none", [card(total="1 GiB")], ram=("3 GiB", "2 GiB"))
    assert world.plan("large", "none").json["refused"]["nearest"] == "nothing in the catalog fits this machine"


def test_an_excluded_backend_names_everything_one_can_act_on(world: World) -> None:
    world.entry("m", excluded=[{"backend": "vulkan", "reason": "wrong results with driver 1.2"}])
    world.host("v", [card("Vulkan0")], backend="vulkan")
    launch = world.plan("m", "v")
    assert launch["refusal"] == "excluded"
    for part in ("m does not run on Vulkan", "wrong results with driver 1.2", "--engine", "another model"):
        assert part in launch.because("refusal")
    assert world.plan("m")["refusal"] is None


@pytest.mark.parametrize("arch", ["dflash", "eagle3", "gemma4-assistant", "clip"])
def test_a_file_that_is_no_model(world: World, arch: str) -> None:
    world.entry("m", shape(arch=arch))
    assert world.plan("m")["refusal"] == "not-a-model"


# ---------------------------------------------------------------- several GPUs


def test_unequal_gpus_share_by_what_each_may_take(world: World) -> None:
    world.entry("large", shape(**LARGE))
    world.host("pair", [card(total="24 GiB"), card("CUDA1", total="8 GiB")])
    launch = world.plan("large", "pair")
    first, second = (float(share) for share in launch.arg("--tensor-split").split(","))
    assert first > second > 0
    assert first + second == LARGE["layers"] + 1
    assert launch.arg("--split-mode") == "layer"
    assert launch.arg("--device") == "CUDA0,CUDA1"
    assert all(used(launch.plan)[c.name] <= c.usable for c in launch.plan.fit.cards)


def test_two_gpus_hold_what_one_does_not(world: World) -> None:
    world.entry("large", shape(**LARGE))
    world.host("pair", [card(total="10 GiB"), card("CUDA1", total="10 GiB")])
    assert world.plan("large", world.host("one", [card(total="10 GiB")]))["placement.mode"] == "offloaded"
    assert world.plan("large", "pair")["placement.mode"] == "resident"


def test_an_integrated_gpu_takes_no_part_beside_a_card(world: World) -> None:
    world.entry("m")
    world.host("laptop", [card(), card("CUDA1", kind="integrated")])
    launch = world.plan("m", "laptop")
    assert launch.arg("--tensor-split") is None
    assert launch.arg("--device") is None
    assert list(used(launch.plan)) == ["CUDA0", "host"]


# ---------------------------------------------------------------- other machines


def test_a_gpu_that_shares_the_ram_gains_nothing_by_offload(world: World) -> None:
    world.entry("moe", shape(**MOE))
    world.host("mac", [card("MTL0", total="12 GiB", kind="unified")], backend="metal", ram=("16 GiB", "14 GiB"))
    launch = world.plan("moe", "mac")
    assert launch["refusal"] == "no-room"
    assert world.plan("moe", world.host("mac2", [card("MTL0", total="24 GiB", kind="unified")], backend="metal",
                                        ram=("32 GiB", "30 GiB")))["placement.mode"] == "resident"  # fmt: skip


def test_a_cpu_build(world: World) -> None:
    world.entry("large", shape(**LARGE))
    launch = world.plan("large", world.host("bare", [], backend="cpu"))
    assert launch["placement.mode"] == "cpu"
    assert launch.arg("--n-gpu-layers") is None
    assert launch.arg("--parallel") == "1"
    assert list(used(launch.plan)) == ["host"]


def test_a_gpu_build_without_a_gpu_computes_on_the_cpu(world: World) -> None:
    world.entry("m")
    launch = world.plan("m", world.host("bare", [], backend="cuda"))
    assert launch.rule("backend.gpu") == "no-device"
    assert launch.arg("--n-gpu-layers") is None


def test_a_gpu_whose_memory_nobody_knows_is_left_to_the_engine(world: World) -> None:
    """No figure is made up: layers, threads and fitting stay with the engine, which lists 0 MiB."""
    world.entry("large", shape(**LARGE))
    engine = world.engine("  CUDA0: A card (0 MiB, 0 MiB free)")
    launch = world.plan("large", None, engine=engine)
    assert launch.plan.trace.facts["gpu.usable"].value is UNKNOWN
    assert launch.rule("placement.mode") == "size-unknown"
    assert launch.arg("--n-gpu-layers") is None
    assert launch.rule("flag.n-gpu-layers") == "engine-fits"
    assert launch.arg("--fit") == "on"
    assert launch.arg("--threads") is None
    assert launch["refusal"] is None
    assert launch.json["memory"]["taken"][0]["usable_bytes"] is None
    assert world.plan("large", None, "n_gpu_layers=30", engine=engine).arg("--n-gpu-layers") == "30"


def test_no_engine_at_all(world: World) -> None:
    world.entry("m")
    launch = world.plan("m", None)
    assert launch.rule("backend.gpu") == "unknown"
    assert "--engine" in launch.because("backend.gpu")
    assert launch["placement.mode"] == "cpu"


# ---------------------------------------------------------------- projector


def projector(size: int) -> dict[str, object]:
    file = {"role": "projector", "name": "mmproj.gguf", "size": size, "sha256": "ab" * 32}
    return {"files": [{**file, "sources": [{"url": "https://example.org/mmproj.gguf"}]}]}


def test_a_projector_counts_when_vision_is_on(world: World) -> None:
    world.entry("seeing", **projector(3 * GIB))
    on, off = world.plan("seeing"), world.plan("seeing", "card", "vision=off")
    assert on.arg("--mmproj").endswith("/mmproj.gguf")
    assert on.plan.memory.account["beside_bytes"] == on["memory.projector"] == 3 * GIB
    assert off.arg("--mmproj") is None
    assert off.plan.memory.account["beside_bytes"] == 0
    assert used(on.plan)["CUDA0"] - used(off.plan)["CUDA0"] == 3 * GIB


# ---------------------------------------------------------------- the ladder


def test_the_ladder_drops_the_drafter_first_and_then_degrades(world: World) -> None:
    world.entry("moe", shape(**MOE), **drafter(), tuning={"spec": {"type": "draft-dflash"}})
    ladder = world.plan("moe").json["ladder"]
    assert ladder[0]["step"] == "without the drafter"
    assert ladder[0]["changes"]["flag.spec-draft-model"]["to"] is None
    assert all(rung["changes"] for rung in ladder)
    assert [rung["step"].endswith("of each card") for rung in ladder[1:]] == [True] * (len(ladder) - 1)
    assert world.plan("moe", world.host("bare", [], backend="cpu")).json["ladder"][1:] == []
