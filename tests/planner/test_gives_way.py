"""What gives way when memory is short: the order is policy's, every step says what it buys, and a larger card never
gives a model with experts less."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path

import pytest

from gezel_rules.places import catalog_dir
from gezel_rules.planner.plan import Plan
from gezel_rules.planner.report import explainer
from gezel_rules.session import Conditions, session_for

EXPERTS = ["nemotron-3-nano-30b", "qwen3-30b-a3b", "mixtral-8x7b", "gpt-oss-20b", "gemma-4-26b-a4b", "glm-4.5-air"]
DENSE = ["mistral-small-24b", "llama-3.1-8b-f16", "olmo-2-13b"]
SIZES = list(range(4, 49))
"""GiB."""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GEZEL_CACHE", str(tmp_path / "cache"))
    session = session_for(None, None, None)

    def made(model: str, host: Path | str, *settings: str) -> Plan:
        return session.plan(model, Conditions(settings, str(host)))

    return made


def cards(directory: Path, sizes: list[int] = SIZES) -> Iterator[Path]:
    """The described host of a 24 GiB card, with cards of other sizes in its place, empty."""
    text = (catalog_dir() / "hosts" / "rtx-4090.yaml").read_text()
    for size in sizes:
        path = directory / str(size) / "rtx-4090.yaml"
        path.parent.mkdir()
        mib = f"{size * 1024} MiB"
        path.write_text(text.replace("24564 MiB", mib).replace("24105 MiB", mib))
        yield path


def order(plan: Plan, table: str, decision: str) -> int:
    return list(plan.trace.policies.tables[table]).index(plan.trace.value(decision))


@pytest.mark.parametrize("model", EXPERTS)
def test_a_larger_card_never_gives_less(plan, tmp_path: Path, model: str) -> None:
    """A card that grew from 17 to 18 GiB took a model from 65,536 tokens in f16 to 27,136 in q8_0."""
    plans = [made for host in cards(tmp_path) if not (made := plan(model, host)).refused]
    assert plans
    for smaller, larger in pairwise(plans):
        assert larger.trace.value("window.tokens") >= smaller.trace.value("window.tokens")
        assert order(larger, "kv_types", "kv.type") <= order(smaller, "kv_types", "kv.type")
        assert order(larger, "concessions", "gives.way") <= order(smaller, "concessions", "gives.way")


@pytest.mark.parametrize("model", [*DENSE, "qwen3-30b-a3b"])
def test_every_step_says_what_it_bought(plan, tmp_path: Path, model: str) -> None:
    """The rows above the one taken say what they lack, the one that is taken what it buys."""
    seen = set()
    for host in cards(tmp_path, SIZES[::2]):
        made = plan(model, host)
        step, told = made.trace.value("gives.way"), judgement(made)
        rows = made.trace.policies.tables["concessions"]
        seen.add(step)
        assert told["because"] == rows[step]["says"]
        lacking = {line["rule"]: line["why"] for line in told["beaten"] if line["why"].startswith("rejected: ")}
        assert {rule.partition(" (")[2].rstrip(")") for rule in lacking} == set(list(rows)[: list(rows).index(step)])
        assert all("GiB" in why for rule, why in lacking.items() if "too-large" in rule or "too-few" in rule)
    assert len(seen) >= 3


def judgement(made: Plan) -> dict:
    """The decision as ``explain --json`` tells it."""
    return explainer(made).to_json(made.trace.judgements["gives.way"])


def test_a_dense_model_keeps_its_weights_down_to_the_floor(plan, tmp_path: Path) -> None:
    steps = [plan("mistral-small-24b", host).trace.value("gives.way") for host in cards(tmp_path)]
    assert list(dict.fromkeys(reversed(steps))) == ["nothing", "slot-cache", "precision", "window", "weights"]


def test_nemotron_keeps_its_window(plan) -> None:
    made = plan("nemotron-3-nano-30b", "rtx-4090")
    assert (made.trace.value("window.tokens"), made.trace.value("kv.type")) == (65536, "f16")
    assert made.trace.value("layout")["says"].startswith("experts of 1 of 52 layers are on the CPU")
    assert judgement(made)["because"] == "a few layers' experts, for the whole window in the finest cache"


def test_an_operators_slots_shorten_the_window(plan) -> None:
    """76.8 GiB were usable, and two slots were refused."""
    made = plan("mistral-small-24b", "rtx-4090", "slots=2")
    assert not made.refused
    assert made.trace.value("slots.count") == 2
    assert 4096 <= made.trace.value("window.tokens") < 65536
    assert made.trace.value("placement.mode") == "resident"


CHOICES = {
    "slots": ["1", "2", "6"],
    "window": ["8k", "64k"],
    "kv_type": ["f16", "q8_0"],
    "n_cpu_moe": ["4", "99"],
    "vision": ["off"],
    "ubatch": ["256"],
}
PAIRS = [
    (f"{a}={x}", f"{b}={y}")
    for (a, xs), (b, ys) in product(CHOICES.items(), CHOICES.items())
    if a < b
    for x, y in product(xs, ys)
]


@pytest.mark.parametrize("model", ["mistral-small-24b", "qwen3-30b-a3b"])
def test_settings_are_met_while_anything_fits(plan, model: str) -> None:
    """64 GiB of RAM and a 24 GiB card hold either model whatever two things somebody asks for."""
    refused = [pair for pair in PAIRS if plan(model, "rtx-4090", *pair).refused]
    assert refused == []
