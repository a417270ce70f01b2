"""What flips a decision: each change is true, none smaller does it, and the search ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gezel_rules.engines.pools import gpus
from gezel_rules.planner import changes, flips
from gezel_rules.planner.flips import Flip, what_if
from gezel_rules.planner.plan import Plan
from gezel_rules.session.session import Conditions, session_for

MIB = 1 << 20
MODEL = "mistral-small-24b"


def planned(model: str = MODEL, host: str = "rtx-4090", *settings: str) -> Plan:
    return session_for(None, None, None).plan(model, Conditions(settings, host))


def flips_of(plan: Plan, decision: str) -> tuple[Flip, ...]:
    return what_if(plan, plan.trace.judgements[decision]).flips


def host_with(tmp_path: Path, free_mib: int) -> str:
    """The card of the described machine with so much free, as somebody would describe it."""
    from gezel_rules.places import catalog_dir

    text = (catalog_dir() / "hosts" / "rtx-4090.yaml").read_text("utf-8")
    text = text.replace("total: 24564 MiB", "total: 48 GiB").replace("free: 24105 MiB", f"free: {free_mib} MiB")
    path = tmp_path / "rtx-4090.yaml"
    path.write_text(text, "utf-8")
    return str(path)


def test_more_free_memory_flips_a_real_plan_and_one_step_less_does_not(tmp_path: Path) -> None:
    plan = planned(MODEL, host_with(tmp_path, 24105))
    (more,) = [
        f for f in flips_of(plan, "kv.type") if f.fact == "gpu.free" and f.to > plan.trace.facts["gpu.free"].value
    ]
    after = planned(MODEL, host_with(tmp_path, -(-more.to // MIB))).trace.judgements["kv.type"]
    assert after.winner is not None
    assert (after.value, after.winner.rule.id) == (more.value, more.rule) == ("f16", "finest-enough")
    before = planned(MODEL, host_with(tmp_path, (more.to - changes.MEMORY_STEP) // MIB)).trace.judgements["kv.type"]
    assert before.value == "q8_0"


@pytest.mark.parametrize("decision", ["kv.type", "window.tokens", "placement.mode"])
def test_a_setting_that_flips_does_so_when_it_is_given(decision: str) -> None:
    plan = planned()
    tried = [flip for flip in flips_of(plan, decision) if flip.fact.startswith("settings.")]
    assert tried
    for flip in tried:
        after = planned(MODEL, "rtx-4090", f"{flip.fact.removeprefix('settings.')}={flip.to}")
        judgement = after.trace.judgements[decision]
        assert judgement.winner is not None
        assert (judgement.value, judgement.winner.rule.id) == (flip.value, flip.rule)
        assert judgement.value != plan.trace.value(decision)
        assert not after.refused


def test_a_setting_that_is_merely_handed_on_is_no_flip() -> None:
    assert "settings.kv_type" not in {flip.fact for flip in flips_of(planned(), "kv.type")}


def test_a_refusal_says_how_much_memory_lifts_it() -> None:
    (flip,) = flips_of(planned("deepseek-v3", "cpu-32g"), "refusal")
    assert (flip.fact, flip.value) == ("host.ram_free", None)
    assert flip.says.endswith("GiB more RAM")


def test_memory_that_is_shared_never_grows_beyond_the_machine() -> None:
    plan = planned(MODEL, "mac-96g")
    total = sum(card["total_bytes"] for card in gpus(plan.trace.facts["devices"].value).cards)
    found = [flip for flip in flips_of(plan, "refusal") if flip.fact == "gpu.free"]
    assert found and all(flip.to <= total for flip in found)


@pytest.mark.parametrize("most", [0, 1, 7])
def test_the_search_ends(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    judged: list[Any] = []
    real = flips.decide
    monkeypatch.setattr(flips, "MOST_DECIDED", most)
    monkeypatch.setattr(flips, "decide", lambda *a: judged.append(a) or real(*a))
    plan = planned()
    found = what_if(plan, plan.trace.judgements["kv.type"])
    assert len(judged) == found.judged == most
    assert not found.whole


def test_a_wanted_value_is_looked_for_whichever_rule_gives_it() -> None:
    plan = planned()
    slots = plan.trace.judgements["slots.count"]
    assert not [flip for flip in what_if(plan, slots).flips if flip.fact == "gpu.free"]  # the same rule, on more memory
    flips_to_two = what_if(plan, slots, lambda value: value == 2).flips
    assert {flip.value for flip in flips_to_two} == {2}
    assert "1.2 GiB more memory on the card" in {flip.says for flip in flips_to_two}


def test_an_unknown_fact_counts_only_where_knowing_it_changes_the_answer() -> None:
    plan = planned("qwen3-8b")
    (settled,) = what_if(plan, plan.trace.judgements["spec.type"]).unsettled
    assert (settled.fact, settled.settle) == ("engine.spec_types", "name an engine: --engine PATH")
    assert settled.value != plan.trace.value("spec.type")
    assert what_if(plan, plan.trace.judgements["kv.type"]).unsettled == ()
