"""What becomes of decisions in argv: per build, in order, with the operator's own arguments last; and the summary."""

from __future__ import annotations

import pytest
from worlds import HELP, World, card, dflash, drafter, shape

from gezel_rules.engines.llama_cpp.engine_output import parse_help
from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.errors import BadInput
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies
from gezel_rules.planner.record import plan_record

POLICIES = read_policies(policies_dir(), FAMILY, None)
FLAGS = sorted({POLICIES.decisions[name].flag for name in POLICIES.flags} - {"*"})
EVERYTHING = ("spec_type=draft-mtp", "draft_n_max=3", "draft_sampling=greedy", "reasoning_budget=100", "ubatch=256",
              "reasoning_format=none", "slot_save_path=/slots", "swa_full=on", "n_cpu_moe=1", "threads=2")  # fmt: skip


# ---------------------------------------------------------------- per build


@pytest.mark.parametrize("flag", FLAGS)
def test_a_build_whose_help_lacks_a_flag_never_gets_it(world: World, flag: str) -> None:
    world.entry("m", shape(arch="qwen3", mtp=1))
    flags = [name for name in FLAGS if name.startswith("--") and name != flag]
    world.host("old", [card(), card("CUDA1")], flags=flags)
    launch = world.plan("m", "old", *EVERYTHING)
    assert flag not in launch.argv
    name = next(name for name in POLICIES.flags if POLICIES.decisions[name].flag == flag)
    assert launch.rule(name) == "unknown-to-this-build"
    assert launch.because(name) == f"{flag} is not in this build's --help"


def test_a_described_build_knows_an_option_under_every_spelling(world: World) -> None:
    world.entry("m")
    world.host("described", [card()], flags=["--log-verbosity", "--model"])
    assert world.plan("m", "described").argv[:3] == ["-lv", "4", "--model"]


def test_a_build_by_its_own_words(world: World) -> None:
    """An engine that was asked: what its --help does not list is left out, all else is passed."""
    world.entry("m", shape(arch="qwen3", mtp=1))
    whole = world.plan("m", None, *EVERYTHING, engine=world.engine("  CUDA0: A card (24576 MiB, 24000 MiB free)"))
    assert whole.arg("--spec-draft-sampling") == "greedy"
    engine = world.engine("  CUDA0: A card (24576 MiB, 24000 MiB free)", without=["--spec-draft-sampling"])
    older = world.plan("m", None, *EVERYTHING, engine=engine)
    assert older.rule("flag.spec-draft-sampling") == "unknown-to-this-build"
    lost = [token for token in whole.argv if token not in older.argv]
    assert lost == ["--spec-draft-sampling", "greedy"]


def test_every_flag_of_the_policies_exists_in_the_engine() -> None:
    assert set(FLAGS) <= set(parse_help(HELP.read_text()).flags)


# ---------------------------------------------------------------- order


def test_verbosity_first_and_the_operators_own_last(world: World) -> None:
    world.entry("m")
    launch = world.plan("m", "card", "extra_args=--metrics --top-k 7")
    assert launch.argv[:2] == ["-lv", "4"]
    assert launch.argv[-3:] == ["--metrics", "--top-k", "7"]
    assert launch.plan.flags[-1].decision == "flag.extra"
    assert launch.level("flag.extra") == "operator"


CONFLICTS = [
    ("-c 4096", "flag.ctx-size"), ("--ctx-size 4096", "flag.ctx-size"), ("--ctx_size 4096", "flag.ctx-size"),
    ("-ctk q8_0", "flag.cache-type-k"), ("-np 3", "flag.parallel"), ("-ngl 3", "flag.n-gpu-layers"),
    ("--gpu-layers 3", "flag.n-gpu-layers"), ("-fa off", "flag.flash-attn"), ("-m other.gguf", "flag.model"),
    ("-a name", "flag.alias"), ("--port 99", "flag.port"), ("-fit on", "flag.fit"),
    ("--spec-type none", "flag.spec-type"), ("--log-verbosity 5", "flag.log-verbosity"),
    ("--verbosity 5", "flag.log-verbosity"),
]  # fmt: skip


@pytest.mark.parametrize(("extra", "decision"), CONFLICTS)
def test_a_conflict_with_a_planned_flag_shows_in_the_trace(world: World, extra: str, decision: str) -> None:
    world.entry("m")
    launch = world.plan("m", "card", f"extra_args={extra}")
    flag = POLICIES.decisions[decision].flag
    assert launch.rule(decision) == "operator-passes-it"
    assert launch.because(decision) == f"{flag} is among the operator's arguments"
    assert [f.decision for f in launch.plan.flags if f.decision == decision] == []
    assert launch.argv[-2:] == extra.split()
    assert any(str(flag) in note for note in launch.json["notes"])


SECRETS = ["--api-key x", "--api_key x", "--api-key=x", "--hf-token x", "-hft x", "--hf_token x"]


@pytest.mark.parametrize("extra", SECRETS)
def test_a_secret_in_argv_is_refused_without_being_shown(world: World, extra: str) -> None:
    world.entry("m")
    with pytest.raises(BadInput) as caught:
        world.plan("m", "card", f"extra_args={extra.replace('x', 'hunter2')}")
    assert "hunter2" not in str(caught.value)
    assert "would show its value" in str(caught.value)


# ---------------------------------------------------------------- reasoning and slots

REASONING = [
    # catalog, site, settings, environment, format, its level, budget, its source
    ({}, None, [], {}, None, "policy", None, "unbounded"),
    ({"format": "deepseek", "budget": 500}, None, [], {}, "deepseek", "catalog", 500, "catalog"),
    ({"format": "deepseek", "budget": 500}, {"settings": {"reasoning_budget": 600}}, [], {}, "deepseek", "catalog", 600,
     "machine"),
    ({"format": "deepseek", "budget": 500}, None, ["reasoning_budget=700", "reasoning_format=auto"], {}, "auto",
     "operator", 700, "operator"),
    ({"format": "deepseek", "budget": 500}, None, ["reasoning_budget=700"], {"GEZEL_REASONING_BUDGET": "800",
     "GEZEL_REASONING_FORMAT": "none"}, "none", "environment", 800, "environment"),
    ({"budget": 0}, None, [], {}, None, "policy", 0, "catalog"),
    ({}, None, ["reasoning_budget=-1"], {}, None, "policy", -1, "operator"),
]  # fmt: skip


@pytest.mark.parametrize(("catalog", "site", "settings", "environ", "format_", "level", "budget", "source"), REASONING)
def test_reasoning(world: World, catalog, site, settings, environ, format_, level, budget, source) -> None:
    world.entry("m", **({"tuning": {"reasoning": catalog}} if catalog else {}))
    launch = world.plan("m", "card", *settings, environ=environ, site=site)
    assert launch.arg("--reasoning-format") == format_
    assert launch.level("flag.reasoning-format") == level
    assert launch.arg("--reasoning-budget") == (None if budget is None else str(budget))
    found = launch.json["summary"]
    assert (found["reasoning_budget"], found["reasoning_budget_source"]) == (budget, source)


def test_slots_are_saved_where_the_operator_says(world: World) -> None:
    world.entry("m")
    assert world.plan("m", "card", "slot_save_path=/var/slots").arg("--slot-save-path") == "/var/slots"
    assert world.plan("m").arg("--slot-save-path") is None


def test_a_bare_flag_has_no_value(world: World) -> None:
    world.entry("m")
    argv = world.plan("m", "card", "swa_full=on").argv
    assert argv[argv.index("--swa-full") + 1].startswith("-")
    assert "--swa-full" not in world.plan("m").argv


# ---------------------------------------------------------------- summary


def test_the_summary(world: World) -> None:
    world.entry("m", **drafter(header=dflash()), tuning={"spec": {"type": "draft-dflash"}})
    assert world.plan("m", "card", "window=16k", "reasoning_budget=9").json["summary"] == {
        "window": 16384, "slots": 2, "kv_type_k": "f16", "kv_type_v": "f16", "flash_attn": "auto", "ubatch": 512,
        "threads": 4, "spec_type": "draft-dflash", "draft_model": "draft.gguf", "reasoning_budget": 9,
        "reasoning_budget_source": "operator",
    }  # fmt: skip


def test_the_summary_counts_the_operators_own_arguments(world: World) -> None:
    world.entry("m")
    extra = "-c 9000 -np 3 -ub 128 -fa on -t 9 -ctk q4_0 --cache_type_v q5_1 -md /x/own.gguf --reasoning-budget 3"
    assert world.plan("m", "card", f"extra_args={extra}").json["summary"] == {
        "window": 3000, "slots": 3, "kv_type_k": "q4_0", "kv_type_v": "q5_1", "flash_attn": "on", "ubatch": 128,
        "threads": 9, "spec_type": "none", "draft_model": "own.gguf", "reasoning_budget": 3,
        "reasoning_budget_source": "operator",
    }  # fmt: skip


def test_the_summary_says_nothing_where_the_engine_chooses(world: World) -> None:
    world.entry("m")
    found = world.plan("m", world.host("bare", [], backend="cpu")).json["summary"]
    assert found["threads"] is None
    assert found["draft_model"] is None


def test_the_record_keeps_facts_summary_and_memory(world: World) -> None:
    world.entry("m")
    launch = world.plan("m")
    record = plan_record(launch.plan)
    assert record["summary"] == launch.json["summary"]
    assert record["memory"] == {**launch.json["memory"], "taken": record["memory"]["taken"]}
    assert record["policy"]["digest"] == launch.json["policy"]["digest"]
    assert record["decisions"]["window.tokens"]["value"] == 65536
    assert record["facts"]["engine.flags"] == {
        "value": None, "unknown": True, "source": record["facts"]["engine.flags"]["source"], "level": "probe",
        "settle": "the engine's --help",
    }  # fmt: skip
    assert set(record["decisions"]) == set(POLICIES.decisions)
