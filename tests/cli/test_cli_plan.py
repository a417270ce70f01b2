"""``gezel-rules plan``: what people and programs read of a plan."""

from __future__ import annotations

import json
import re

import pytest

HOST = ("--host", "rtx-4090")


def planned(place, *words: str) -> dict:
    said = place.call("plan", *words, "--json")
    assert said.err == ""
    return json.loads(said.out)


def test_the_text_tells_all_of_it(place) -> None:
    said = place.call("plan", "qwen3-8b", *HOST)
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == "qwen3-8b  (catalog/models/qwen3-8b.yaml header)"
    assert lines[1] == "  on        rtx-4090 (described), llama-server 0.6.0, cuda"
    assert lines[2] == "  window    2 × 40,960 tokens, cache f16"
    assert lines[3] == "  drafts    draft-dflash with dflash-Qwen3-8B-Q8_0.gguf"
    assert lines[4] == "  weights   every layer is on the GPU"
    assert "  --ctx-size 81920" in lines
    assert re.search(r"^  CUDA0 +█+░+ +[\d.]+ GiB of 22.8 GiB usable$", said.out, re.MULTILINE)
    assert "  if it fails at start, in this order:" in lines
    assert lines[-1] == "why: gezel-rules explain qwen3-8b --host rtx-4090 [--FLAG]"


def test_the_json_has_the_shape_that_is_promised(place) -> None:
    plan = planned(place, "qwen3-8b", *HOST)
    assert set(plan) == {
        "model", "argv", "env", "files", "memory", "flags", "decisions", "summary", "warnings", "notes", "ladder",
        "endpoint", "policy", "refused",
    }  # fmt: skip
    assert plan["refused"] is None
    assert plan["endpoint"] == "chat"
    assert plan["argv"] == [token for flag in plan["flags"] for token in flag["tokens"]]
    decision = next(d for d in plan["decisions"] if d["name"] == "kv.type")
    assert set(decision) == {"name", "value", "rule", "level", "source", "because", "facts", "beaten"}
    assert decision["source"]["file"] == "policies/llama-cpp/kv.yaml"
    assert decision["facts"]["settings.kv_type"]["value"] is None
    assert {"rule": "operator", "why": "settings.kv_type is not set"} in decision["beaten"]
    assert {file["policy"] for file in plan["policy"]["files"]} >= {"llama-cpp/kv", "llama-cpp/argv"}
    assert {file["role"] for file in plan["files"]} == {"model", "draft"}


def test_a_plan_in_text_and_in_json_is_the_same(place) -> None:
    text, plan = place.call("plan", "glm-4.5-air", *HOST).out, planned(place, "glm-4.5-air", *HOST)
    for flag in plan["flags"]:
        assert f"  {' '.join(flag['tokens'])}\n" in text


def test_it_is_the_same_each_time(place) -> None:
    first, second = (place.call("plan", "qwen3-30b-a3b", *HOST, "--json").out for _ in range(2))
    assert first == second


def test_a_process_of_its_own(place) -> None:
    said = place.run("plan", "gemma-3-270m", "--host", "cpu-32g", "--json")
    assert (said.status, said.err) == (0, "")
    assert json.loads(said.out)["endpoint"] == "completion"


def test_settings(place) -> None:
    plan = planned(place, "qwen3-8b", *HOST, "--set", "window=16k", "--set", "slots=3", "--set", "window=8k")
    assert plan["summary"]["window"] == 8192  # the last one counts
    assert plan["summary"]["slots"] == 3


def test_the_environment(place, monkeypatch) -> None:
    monkeypatch.setenv("GEZEL_WINDOW", "4096")
    plan = planned(place, "qwen3-8b", *HOST, "--set", "window=16k")
    wanted = next(d for d in plan["decisions"] if d["name"] == "window.wanted")
    assert (wanted["value"], wanted["level"]) == (4096, "environment")
    assert wanted["facts"]["settings.window"]["source"] == "environment GEZEL_WINDOW"
    assert wanted["facts"]["settings.window"]["beaten"] == [{"level": "operator", "value": 16384, "source": "--set"}]


def test_a_described_host_by_file_and_by_name(place) -> None:
    from gezel_rules.places import catalog_dir

    by_file = planned(place, "qwen3-8b", "--host", str(catalog_dir() / "hosts" / "h200.yaml"))
    assert by_file == planned(place, "qwen3-8b", "--host", "h200")


def test_warnings_and_notes(place) -> None:
    said = place.call("plan", "qwen3-8b", *HOST, "--set", "spec_type=draft-mtp", "--set", "extra_args=-c 4096")
    assert said.status == 0
    assert "  warning   the operator forced draft-mtp, and neither the model nor a drafter" in said.out
    assert "  note      the operator's own --ctx-size counts; the memory plan does not know of it" in said.out
    assert "--ctx-size" not in said.out.split("note      ")[1].split("\n", 1)[1].split("CUDA0")[0]
    assert "  -c 4096" in said.out


def test_refused(place) -> None:
    said = place.call("plan", "deepseek-v3", "--host", "cpu-32g")
    assert (said.status, said.err) == (1, "")
    refused = next(line for line in said.out.splitlines() if "refused" in line)
    assert re.match(r"  refused   needs [\d.]+ GiB in all with 1 × 4,096 tokens in f16; of GPU and RAM", refused)
    assert "have no place" in refused
    nearest = next(line for line in said.out.splitlines() if "nearest" in line)
    assert place.call("plan", nearest.split(": ")[1].split(",")[0], "--host", "cpu-32g").status == 0
    assert said.out.splitlines()[-1] == "why: gezel-rules explain deepseek-v3 --host cpu-32g refusal"
    assert "--model" not in said.out


def test_refused_in_json(place) -> None:
    said = place.call("plan", "mamba-2.8b", "--host", "rx-7900-xtx-vulkan", "--json")
    assert said.status == 1
    refused = json.loads(said.out)["refused"]
    assert refused["kind"] == "excluded"
    assert refused["because"].startswith("mamba-2.8b does not run on Vulkan: ")


def test_the_explanation_it_points_to_works(place) -> None:
    for model, host in (("qwen3-8b", "rtx-4090"), ("deepseek-v3", "h200")):
        last = place.call("plan", model, "--host", host).out.splitlines()[-1]
        words = last.removeprefix("why: gezel-rules ").removesuffix(" [--FLAG]").split()
        assert place.call(*words).status == 0


@pytest.mark.parametrize("extra", ["--api-key hunter2", "--api_key=hunter2", "-hft hunter2"])
def test_a_secret_is_not_taken_and_not_shown(place, extra: str) -> None:
    said = place.call("plan", "qwen3-8b", *HOST, "--set", f"extra_args={extra}")
    assert said.status == 2
    assert "hunter2" not in said.out + said.err
    assert len(said.err.splitlines()) == 1
