"""Launches of real engines: recorded, compared with the plan, decided again, by these policies and by changed ones."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest
from engine_processor import unpacked

from gezel_rules.engines.llama_cpp.find import find_engine
from gezel_rules.places import catalog_dir, policies_dir

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("nothing_left")]
TOKEN = "hf_not-for-anybody-elses-eyes"
KV = "llama-cpp/kv.yaml"


@pytest.fixture
def say(gezel, environ):
    """Runs a command to its end: exit status, and what it said. A secret is among the variables."""
    environ["HF_TOKEN"] = TOKEN

    def run(*words: str) -> tuple[int, str]:
        child = gezel(*words)
        out, err = child.communicate(timeout=180)
        assert child.returncode in (0, 1), err
        return child.returncode, out

    return run


@pytest.fixture
def launch(real_engine, real_model, environ):
    """What stands behind ``run`` and ``serve``: a small launch of the real model, drafting for itself."""
    packing = ("no_repack=true",) if unpacked(find_engine(real_engine, environ).command) else ()
    settings = ("window=2k", "spec_type=draft-simple", f"draft_model={real_model}", *packing)
    return str(real_model), "--engine", real_engine, *(word for each in settings for word in ("--set", each))


@pytest.fixture
def small_catalog(tmp_path: Path) -> tuple[str, str]:
    """The option that names a catalog of one model and one host."""
    for kind, name in (("models", "llama-3.2-1b"), ("hosts", "cpu-32g")):
        (tmp_path / "catalog" / kind).mkdir(parents=True)
        shutil.copy(catalog_dir() / kind / f"{name}.yaml", tmp_path / "catalog" / kind)
    return "--catalog", str(tmp_path / "catalog")


def test_a_maintainers_day(say, launch, state, tmp_path, small_catalog):
    """Launch; look; change one line; see which launches it changes; decide the launch again; take the line back."""
    model, *conditions = launch
    status, _ = say("run", model, "Again and again and again and", "--max-tokens", "24", *conditions)
    assert status == 0
    (past,) = json.loads(say("history", "--json")[1])["launches"]
    assert past["ready"] is True and past["exit_status"] == 0
    assert {row["part"] for row in past["memory"]} == {"all"}  # a drafter stands beside the model
    assert all(0.8 < row["ratio"] < 1.25 for row in past["memory"]), past["memory"]
    assert 0 < past["drafts"]["accepted"] <= past["drafts"]["drafted"]
    assert TOKEN not in "".join(path.read_text(errors="replace") for path in state.rglob("*") if path.is_file())

    mine, name = tmp_path / "mine" / "policies", f"@{past['id']}"
    shutil.copytree(policies_dir(), mine)
    assert say("replay", name)[0] == 0 and say("--policies", str(mine), "replay", name)[0] == 0
    line = mine / KV
    line.write_text(line.read_text().replace("then: \"'f16'\"", "then: \"'q8_0'\""))
    found = json.loads(say(*small_catalog, "policy", "diff", str(policies_dir()), str(mine), "--json")[1])
    assert found["changed"] == 2
    (group,) = found["groups"]
    assert group["because_of"][0]["part"] == "f16" and {each["on"] for each in group["launches"]} == {"cpu-32g", name}
    status, said = say("--policies", str(mine), "replay", name)
    assert status == 1 and "--cache-type-k f16 → q8_0" in said and f"policies/{KV}:" in said
    shutil.copy(policies_dir() / KV, line)
    assert say("--policies", str(mine), "replay", name)[0] == 0


def test_a_running_engine_is_explained_by_the_id_that_ps_shows(gezel, say, launch):
    child = gezel("serve", *launch, "--json")
    assert json.loads(child.stdout.readline())["model"]
    (engine,) = json.loads(say("ps", "--json")[1])
    status, said = say("explain", f"@{engine['id']}", "--ctx-size")
    assert status == 0 and "--ctx-size 2048" in said and "by the policies here" in said
    assert "running" in say("history")[1]
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 0
