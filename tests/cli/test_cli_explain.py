"""``gezel-rules explain``: why a flag is there, why it is not, what would change it."""

from __future__ import annotations

import json

import pytest

SHORT = ("mistral-small-24b", "--host", "rtx-4090")
DENSE = ("qwen3-8b", "--host", "rtx-4090")


def test_a_flag_that_is_passed(place) -> None:
    said = place.call("explain", *SHORT, "--cache-type-k")
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == "--cache-type-k q8_0"
    assert lines[1].startswith("  kv.type = q8_0      policies/llama-cpp/kv.yaml:")
    assert " · rule whole-window · llama-cpp/kv " in lines[1]
    assert lines[2] == "    because   what gives way is precision, for the whole window"
    assert lines[3] == "    level     policy default"
    assert "    facts     gives.way precision: precision, for the whole window" in said.out
    assert "    beat      operator: settings.kv_type is not set" in said.out
    assert "              finest-enough: concessions[gives.way].cache is coarser, not finest" in said.out
    assert "    evidence  2026-08-03: A/B: no measurable fidelity cost of q8_0" in lines
    assert "    flips to  f16 with 512 MiB more memory on the card" in lines


def test_the_place_it_names_is_the_rule(place) -> None:
    from gezel_rules.places import policies_dir

    head = place.call("explain", *SHORT, "--cache-type-k").out.splitlines()[1]
    file, line = head.split("      ")[1].split(" ")[0].split(":")
    text = (policies_dir().parent / file).read_text().splitlines()[int(line) - 1]
    assert text.strip() == "- id: whole-window"


def test_a_flag_that_is_not_passed(place) -> None:
    said = place.call("explain", *DENSE, "--spec-draft-sampling")
    assert said.status == 0
    assert said.out.splitlines()[0] == "--spec-draft-sampling is not passed"
    assert "no rule fires: spec.sampling is none" in said.out
    assert "catalog: entry.spec_sampling is not set" in said.out  # the decision behind it says more


def test_a_flag_the_operator_passes(place) -> None:
    said = place.call("explain", *DENSE, "--ctx-size", "--set", "extra_args=-c 4096")
    assert said.out.splitlines()[0] == "--ctx-size is the operator's own, in extra_args"
    assert "rule operator-passes-it" in said.out
    assert "--ctx-size is among the operator's arguments" in said.out


def test_a_flag_this_build_does_not_know(place) -> None:
    from gezel_rules.places import catalog_dir

    host = (catalog_dir() / "hosts" / "rtx-4090.yaml").read_text().replace("host: rtx-4090", "host: old")
    (place.here / "old.yaml").write_text(host.replace("engine:\n", "engine:\n  flags: [--model, --ctx-size]\n"))
    said = place.call("explain", "qwen3-8b", "--host", "old.yaml", "--fit")
    assert said.status == 0, said
    assert said.out.splitlines()[0] == "--fit is not passed"
    assert "because   --fit is not in this build's --help" in said.out


@pytest.mark.parametrize("short", ["-c", "-ctk", "-ngl", "--gpu-layers", "-t", "-np", "-fa", "-lv", "--verbosity"])
def test_a_flag_in_any_spelling(place, short: str) -> None:
    long = {
        "-c": "--ctx-size", "-ctk": "--cache-type-k", "-ngl": "--n-gpu-layers", "--gpu-layers": "--n-gpu-layers",
        "-t": "--threads", "-np": "--parallel", "-fa": "--flash-attn", "-lv": "-lv", "--verbosity": "-lv",
    }  # fmt: skip
    assert place.call("explain", *SHORT, short) == place.call("explain", *SHORT, long[short])


def test_a_decision(place) -> None:
    said = place.call("explain", *SHORT, "slots.count")
    assert said.status == 0
    assert said.out.startswith("  slots.count = 1      policies/llama-cpp/window.yaml:")
    assert "because   2 slots of 65,536 tokens wanted in q8_0; memory holds 1" in said.out


def test_a_level_with_what_it_beat(place, monkeypatch) -> None:
    monkeypatch.setenv("GEZEL_WINDOW", "4096")
    said = place.call("explain", *DENSE, "window.wanted", "--set", "window=8k")
    assert "    level     environment over 8,192 (--set)" in said.out
    assert "default: the default; 'operator' comes first" in said.out


def test_all(place) -> None:
    said = place.call("explain", *DENSE)
    plan = json.loads(place.call("plan", *DENSE, "--json").out)
    heads = [line for line in said.out.splitlines() if line.startswith("-")]
    assert heads == [" ".join(flag["tokens"]) for flag in plan["flags"]]
    assert "always" not in [line.split("because   ")[-1] for line in said.out.splitlines()]


def test_all_of_a_refused_launch_ends_with_the_refusal(place) -> None:
    said = place.call("explain", "deepseek-v3", "--host", "cpu-32g")
    assert said.status == 0
    last = said.out.split("\n\n")[-1]
    assert last.startswith("  refusal = no-room")
    assert "GiB have no place" in last


def test_records_are_read_with_their_units(place) -> None:
    said = place.call("explain", *SHORT, "layout").out
    assert "needed_bytes 19.1 GiB" in said
    assert "usable_bytes 76.8 GiB" in said


def test_json(place) -> None:
    said = place.call("explain", *SHORT, "-ctk", "--json")
    (decision,) = json.loads(said.out)
    assert (decision["name"], decision["value"]) == ("flag.cache-type-k", "q8_0")
    assert {"fact": "settings.window", "to": 61440, "value": "f16", "rule": "finest-enough"} in decision["flips"]
    whole = json.loads(place.call("explain", *SHORT, "--json").out)
    assert len(whole) > 10
    assert not any(each["flips"] or each["unsettled"] for each in whole)  # one subject is tried, all are not


def test_an_unknown_fact_that_counts_is_named(place) -> None:
    said = place.call("explain", *DENSE, "spec.type").out
    assert "    unsettled engine.spec_types is unknown; name an engine: --engine PATH would tell: " in said
    assert "engine.flags" not in said  # unknown too, but nothing hangs on it here


WHY_NOT = [
    # subject, value, lines that are there
    ("-ctk", "f16", ["  kv.type is not f16: rule finest-enough: concessions[gives.way].cache is coarser, not finest"]),
    ("kv.type", "q4_0", ["  no rule of kv.type gives q4_0 on these facts", "  an operator may: --set kv_type=q4_0"]),
    ("-ctk", "q8_0", ["  it is q8_0"]),
    ("--ctx-size", "65536", ["  it is 65536"]),
    ("-t", "8", ["  no rule of threads.count gives 8 on these facts", "  an operator may: --set threads=8"]),
    ("--spec-type", "draft-mtp", ["  spec.type is not draft-mtp: rule companion-head: drafter.loads is no"]),
    ("--port", "80", ["  no rule of flag.port gives 80 on these facts", "  an operator may: --set port=80"]),
    (
        "placement.mode",
        "offloaded",
        [
            "  placement.mode is not offloaded: rule nothing-is-enough: gives.way is",
            "  because gives.way is precision: precision, for the whole window",
            "  it would be offloaded with window = 116,736 tokens",
        ],
    ),
    ("slots.count", "2", ["  it would be 2 with 1.2 GiB more memory on the card"]),
]  # fmt: skip


@pytest.mark.parametrize(("subject", "value", "lines"), WHY_NOT)
def test_why_not(place, subject: str, value: str, lines: list[str]) -> None:
    said = place.call("explain", *SHORT, subject, "--why-not", value)
    assert (said.status, said.err) == (0, "")
    for line in lines:
        assert line in said.out


def test_why_not_in_json(place) -> None:
    said = place.call("explain", *SHORT, "-t", "--why-not", "8", "--json")
    found = json.loads(said.out)
    assert (found["decision"], found["why_not"]) == ("threads.count", "8")
    assert found["because"][0] == "no rule of threads.count gives 8 on these facts"
    assert found["flips"] == []  # nothing but the operator's own word gives it
    said = json.loads(place.call("explain", *SHORT, "-ctk", "--why-not", "f16", "--json").out)
    assert {"fact": "settings.window", "to": 61440, "value": "f16", "rule": "finest-enough"} in said["flips"]


BAD = [
    (
        ["--nonsense"],
        "no flag or decision '--nonsense'; what no policy decides, an operator passes with",
    ),
    (["--cache-type"], "no flag or decision '--cache-type'; did you mean '--cache-type-"),
    (["kv.typ"], "no flag or decision 'kv.typ'; did you mean 'kv.type'?"),
    (["all", "--why-not", "3"], "--why-not needs one SUBJECT"),
    (["--fit", "--threads"], "one SUBJECT"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_what_nobody_can_explain(place, words: list[str], said: str) -> None:
    found = place.call("explain", *SHORT, *words)
    assert found.status == 2
    assert said in found.err
    assert found.out == ""
