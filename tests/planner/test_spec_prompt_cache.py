"""The engine's prompt cache grows on the host while it serves: it is bounded where the RAM does not hold all of it."""

from __future__ import annotations

import pytest
from shipped import HOSTS, MODELS, plan

MIB = 1 << 20


def test_where_there_is_room_the_engine_is_left_alone() -> None:
    made = plan("qwen3-8b", "rtx-4090")
    assert made.trace.judgements["prompt_cache.mib"].winner.rule.id == "roomy"
    assert "--cache-ram" not in made.argv


def test_where_there_is_little_half_of_it_may_hold_prompts() -> None:
    made = plan("nemotron-3-nano-30b", "cpu-32g")
    left = made.trace.value("layout")["ram_left_bytes"]
    assert made.trace.judgements["prompt_cache.mib"].winner.rule.id == "tight"
    assert made.argv[made.argv.index("--cache-ram") + 1] == str(left // 2 // MIB)


def test_the_operators_own_bound_stands() -> None:
    made = plan("nemotron-3-nano-30b", "cpu-32g", ("extra_args=-cram 512",))
    assert made.argv[-2:] == ["-cram", "512"]
    assert "--cache-ram" not in made.argv


@pytest.mark.parametrize("host", HOSTS)
def test_the_bound_and_the_launch_never_exceed_the_ram(host: str) -> None:
    default = 8192 * MIB
    for model in MODELS:
        made = plan(model, host)
        if made.refused:
            continue
        bound = made.trace.value("prompt_cache.mib")
        usable = made.fit.inputs.ram.usable
        found = made.fit.estimate(made.trace)
        held = found.pools[-1].total + found.output_bytes - found.lazy_bytes
        assert held + (default if bound is None else bound * MIB) <= usable, model
