"""A plan on its way into a record and back: decided again by the same policies it is the same launch."""

from __future__ import annotations

import json

import pytest
from shipped import HOSTS, MODELS, plan

from gezel_rules.facts.secrets import HIDDEN
from gezel_rules.planner.compare import Reads, compare, side_of, side_of_record
from gezel_rules.planner.flips import what_if
from gezel_rules.planner.plan import Plan, plan_degraded, plan_without_drafter
from gezel_rules.planner.record import plan_again, plan_record
from gezel_rules.session.recorded import valid

PAIRS = [(model, HOSTS[number % len(HOSTS)]) for number, model in enumerate(MODELS)]


def again(made: Plan) -> tuple[dict, Plan]:
    """The record of a plan, as a file has it, and the plan that is made of it."""
    record = valid(json.loads(json.dumps(plan_record(made))), "a record")
    return record, plan_again(record, made.trace.policies, made.request)


@pytest.mark.parametrize(("model", "host"), PAIRS)
def test_a_recorded_plan_is_decided_again_alike(model, host):
    made = plan(model, host)
    for each in (made, plan_without_drafter(made), None if made.refused else plan_degraded(made)):
        if each is None:
            continue
        record, after = again(each)
        assert side_of(after) == side_of(each)
        kept = side_of_record(record)
        assert (kept.flags, kept.values, kept.memory) == (
            side_of(each).flags,
            side_of(each).values,
            side_of(each).memory,
        )
        reads = Reads(after.trace.policies.decisions, after.subject.family)
        assert compare(kept, side_of(after), reads).empty


def test_a_recorded_launch_flips_as_it_did_when_it_was_planned():
    busy = plan_degraded(plan("qwen3-8b", "rtx-4090"), {"CUDA0": 6 << 30})
    assert busy is not None
    _, after = again(busy)
    found = what_if(after, after.trace.judgements["kv.type"])
    assert found.flips == what_if(busy, busy.trace.judgements["kv.type"]).flips
    assert "gpu.free" in {flip.fact for flip in found.flips}


def test_what_other_launches_hold_is_recorded():
    made = plan("qwen3-8b", "rtx-4090")
    busy = plan_degraded(made._replace(request=made.request), {"CUDA0": 12 << 30})
    assert busy is not None and busy.argv != made.argv
    record, after = again(busy)
    assert record["held"] == {"CUDA0": 12 << 30} and after.argv == busy.argv


def test_arguments_that_carry_secrets_are_recorded_without_them():
    made = plan("qwen3-8b", "rtx-4090", ("extra_args=--auth-token verysecret --chat-template-kwargs=verysecret",))
    text = json.dumps(plan_record(made))
    assert "verysecret" not in text and "--auth-token" in text
    assert again(made)[1].argv[-3:] == ["--auth-token", HIDDEN, "--chat-template-kwargs=***"]
