"""Sampling that the catalog recommends becomes the engine's defaults; the operator comes before it, and where nobody
says anything no flag is passed: the engine then takes what the model file says, or its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from worlds import World, card

from gezel_rules.errors import BadInput

FLAGS = {"temperature": "--temp", "top_p": "--top-p", "top_k": "--top-k", "min_p": "--min-p"}
RECOMMENDED: dict[str, Any] = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.05}
NOTHING_KEPT_OUT: dict[str, Any] = {"temperature": 0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}


@pytest.mark.parametrize("tuning", [RECOMMENDED, NOTHING_KEPT_OUT], ids=["recommended", "noughts"])
def test_the_catalogs_sampling_is_passed_and_explained(world: World, tuning: Mapping[str, Any]) -> None:
    world.entry("m", tuning=dict(tuning))
    launch = world.plan("m")
    for name, flag in FLAGS.items():
        decision = f"flag.{flag[2:]}"
        assert launch.arg(flag) == str(tuning[name])
        assert (launch.rule(decision), launch.level(decision)) == ("catalog", "catalog")
        assert launch.because(decision) == f"the catalog chose {tuning[name]:g}"
        source = launch.plan.trace.facts[f"entry.{name}"].source
        assert source.startswith(str(world.root / "catalog" / "models" / "m.yaml:"))


@pytest.mark.parametrize("name", FLAGS)
def test_the_operator_comes_before_the_catalog(world: World, name: str) -> None:
    world.entry("m", tuning=RECOMMENDED)
    decision = f"flag.{FLAGS[name][2:]}"
    said: list[tuple[tuple[str, ...], dict[str, Any], str]] = [
        ((f"{name}=1",), {}, "operator"),
        ((), {"environ": {f"GEZEL_{name.upper()}": "1"}}, "environment"),
        ((), {"site": {"settings": {name: 1}}}, "machine"),
    ]
    for assignments, more, level in said:
        launch = world.plan("m", "card", *assignments, **more)
        assert float(str(launch.arg(FLAGS[name]))) == 1
        assert launch.level(decision) == level
        assert launch.beaten(decision)["catalog"]
        others = [launch.arg(flag) for other, flag in FLAGS.items() if other != name]
        assert others == [str(RECOMMENDED[other]) for other in FLAGS if other != name]


def test_where_nobody_says_anything_nothing_is_passed(world: World) -> None:
    world.entry("m")
    launch = world.plan("m")
    assert not set(FLAGS.values()) & set(launch.argv)
    assert {launch.rule(f"flag.{flag[2:]}") for flag in FLAGS.values()} == {"engines-own"}


@pytest.mark.parametrize("own", ["--temp 0.1", "--temperature 0.1", "--temperature=0.1"])
def test_the_operators_own_argument_stands_alone(world: World, own: str) -> None:
    world.entry("m", tuning=RECOMMENDED)
    launch = world.plan("m", "card", f"extra_args={own}")
    assert launch.rule("flag.temp") == "operator-passes-it"
    assert sum(token.partition("=")[0] in ("--temp", "--temperature") for token in launch.argv) == 1


def test_a_build_that_does_not_know_the_option_never_gets_it(world: World) -> None:
    world.entry("m", tuning=RECOMMENDED)
    world.host("old", [card()], flags=["--model", "--temp", "--top-p", "--top-k"])
    argv = world.plan("m", "old").argv
    assert "--temp" in argv and "--min-p" not in argv


@pytest.mark.parametrize("bad", ["top_p=1.5", "min_p=2", "temperature=-1", "top_k=-1", "top_k=1.5", "temperature=warm"])
def test_what_no_sampler_takes_is_refused(world: World, bad: str) -> None:
    world.entry("m")
    with pytest.raises(BadInput, match=f"'{bad.partition('=')[0]}' must be"):
        world.plan("m", "card", bad)
