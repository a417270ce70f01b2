"""Threads: few where every weight is on the GPU; stands down for whatever else decides them."""

from __future__ import annotations

from pathlib import Path

import pytest
from worlds import LARGE, MOE, World, card, shape

from gezel_rules.engines.llama_cpp.engine_output import _options, parse_help
from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies

HELP = Path(__file__).parents[1] / "data" / "engine-help" / "llama-server-0.6.0-dev.help.txt"
TABLES = read_policies(policies_dir(), FAMILY, None).tables


@pytest.mark.parametrize(("cpus", "threads"), [(1, "1"), (2, "2"), (4, "4"), (5, "4"), (64, "4")])
def test_the_smaller_of_policy_and_what_this_process_may_use(world: World, cpus: int, threads: str) -> None:
    world.entry("m")
    world.host("few", [card()], cpus=cpus)
    launch = world.plan("m", "few")
    assert launch.arg("--threads") == threads
    assert launch.rule("threads.count") == "gpu-resident"


POOLS = ["-t 8", "--threads 8", "-tb 8", "--threads-batch 8", "-C ff", "--cpu-mask ff", "-Cr 0-3", "--cpu-range 0-3",
         "--cpu-strict 1", "--prio 2", "--poll 0", "-Cb ff", "-Crb 0-3", "--cpu-strict-batch 1", "--prio-batch 1",
         "--poll-batch 1", "--numa distribute", "-td 4", "--threads-draft 4", "--threads_batch 8"]  # fmt: skip
WEIGHTS = ["-ngl 10", "--gpu-layers 10", "--n-gpu-layers 10", "-ncmoe 3", "--n-cpu-moe 3", "-cmoe", "--cpu-moe",
           "-ncffn 3", "-ot x=CPU", "--override-tensor x=CPU", "-nkvo", "--no-kv-offload", "-dev none", "--device none",
           "-sm none", "--fit on", "--rpc h:1", "-otd x=CPU", "--cpu-moe-draft", "--no-mmproj-offload"]  # fmt: skip


@pytest.mark.parametrize("extra", POOLS)
def test_stands_down_for_an_argument_that_chooses_a_thread_pool(world: World, extra: str) -> None:
    world.entry("m")
    launch = world.plan("m", "card", f"extra_args={extra}")
    assert launch.rule("threads.count") == "own-thread-pool"
    assert "--threads" not in launch.argv or extra.startswith("--threads ")


@pytest.mark.parametrize("extra", WEIGHTS)
def test_stands_down_for_an_argument_that_may_put_weights_on_the_cpu(world: World, extra: str) -> None:
    world.entry("m")
    launch = world.plan("m", "card", f"extra_args={extra}")
    assert launch.rule("threads.count") == "may-use-cpu"
    assert "--threads" not in launch.argv


@pytest.mark.parametrize("extra", ["--temp 0", "--metrics", "-b 1024", "--no-webui", "--seed -1"])
def test_other_arguments_leave_it_alone(world: World, extra: str) -> None:
    world.entry("m")
    assert world.plan("m", "card", f"extra_args={extra}").arg("--threads") == "4"


def test_weights_on_the_cpu_want_all_threads(world: World) -> None:
    world.entry("moe", shape(**MOE))
    world.host("small", [card(total="8 GiB")])
    launch = world.plan("moe", "small")
    assert launch["placement.mode"] == "experts"
    assert launch.arg("--threads") is None
    assert launch.rule("threads.count") == "weights-on-cpu"


def test_a_cpu_build_chooses_itself(world: World) -> None:
    world.entry("m")
    world.host("bare", [], backend="cpu")
    assert world.plan("m", "bare").arg("--threads") is None


def test_the_operators_number_wins_over_everything(world: World) -> None:
    world.entry("large", shape(**LARGE))
    launch = world.plan("large", "card", "threads=11", "extra_args=--poll 0")
    assert launch.arg("--threads") == "11"
    assert launch.level("flag.threads") == "operator"


OPTIONS = [names for names, _ in _options(HELP.read_text())]
LISTED = {*TABLES["thread_arguments"], *TABLES["cpu_weight_arguments"], *TABLES["secret_arguments"]}


@pytest.mark.parametrize("name", sorted(TABLES["option_spellings"]))
def test_the_other_spellings_are_those_of_the_engine(name: str) -> None:
    """Each row of policy's spellings is what the captured --help lists for that option."""
    names = next(names for names in OPTIONS if name in names)
    assert set(TABLES["option_spellings"][name]) <= set(names)


def test_every_argument_policy_speaks_of_exists_in_the_engine() -> None:
    assert set(parse_help(HELP.read_text()).flags) >= LISTED


@pytest.mark.parametrize("name", sorted(LISTED))
def test_nobody_gets_round_a_rule_by_another_spelling(name: str) -> None:
    names = next(names for names in OPTIONS if name in names)
    negated = name.startswith("--no-")
    same = {other for other in names if other.startswith("--no-") == negated and other not in ("-kvo", "-nkvo")}
    assert same <= {name, *TABLES["option_spellings"].get(name, ())}
