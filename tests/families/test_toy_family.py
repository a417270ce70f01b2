"""A second family moves in from outside the package: a folder of policies and one module, and no other line changed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gezel_rules.places import catalog_dir, policies_dir

TOY = Path(__file__).parent / "toy"
MODEL = {"weights_bytes": 1 << 20, "bytes_per_token": 64}
ENTRY = """\
id: {name}
engine: toy
name: Toy
family: toy
summary: A toy.
quant: none
files:
  - {{role: model, name: {name}.toy, sources: [{{path: {path}}}]}}
header: {{weights_bytes: {weights}, bytes_per_token: 64}}
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Policies and catalog as shipped, the toy's beside them; its module installed as another package would be."""
    root = tmp_path_factory.mktemp("house")
    shutil.copytree(policies_dir(), root / "policies")
    shutil.copytree(TOY / "policies" / "toy", root / "policies" / "toy")
    shutil.copytree(catalog_dir(), root / "catalog")
    for name, said in (("toy-1", MODEL), ("toy-broken", {**MODEL, "text": "broken"}), ("toy-huge", MODEL)):
        path = root / f"{name}.toy"
        path.write_text(json.dumps(said))
        weights = 1 << 60 if name == "toy-huge" else MODEL["weights_bytes"]
        (root / "catalog" / "models" / f"{name}.yaml").write_text(ENTRY.format(name=name, path=path, weights=weights))
    package = root / "site"
    package.mkdir()
    for file in ("toy_family.py", "toy_engine.py"):
        shutil.copy(TOY / file, package)
    info = package / "toy_family-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-family\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gezel_rules.families]\ntoy = toy_family:FAMILY\n")
    return root


@pytest.fixture
def environ(house: Path, tmp_path: Path) -> dict[str, str]:
    """The toy's package on the path, directories of this test's own."""
    ours = {f"GEZEL_{name}": str(tmp_path / name.lower()) for name in ("STORE", "CACHE", "STATE", "CONFIG")}
    return {**os.environ, **ours, "PYTHONPATH": str(house / "site")}


def command(house: Path, *words: str) -> list[str]:
    start = [sys.executable, "-m", "gezel_rules.cli", "--policies", str(house / "policies")]
    return [*start, "--catalog", str(house / "catalog"), *words]


def run(house: Path, environ: dict[str, str], *words: str, status: int = 0) -> str:
    done = subprocess.run(command(house, *words), env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def test_the_policies_hold_together(house: Path, environ: dict[str, str]) -> None:
    assert "no problems" in run(house, environ, "policy", "check")


def test_a_plan_and_why(house: Path, environ: dict[str, str]) -> None:
    plan = json.loads(run(house, environ, "plan", "toy-1", "--set", "window=8k", "--json"))
    assert plan["argv"] == ["--model", str(Path(environ["GEZEL_STORE"]) / "toy-1" / "toy-1.toy"), "--port", "0"]
    assert plan["memory"]["taken"][0]["bytes"] == MODEL["weights_bytes"] + 64 * 8192
    assert {file["policy"] for file in plan["policy"]["files"]} >= {"toy/plan", "memory/capacity"}
    assert not any(file["policy"].startswith("llama-cpp/") for file in plan["policy"]["files"])
    text = run(house, environ, "plan", "toy-1")
    assert "window    4,096 tokens" in text and "toy-engine 1.0, cpu" in text
    explained = run(house, environ, "explain", "toy-1", "--port")
    assert "--port 0" in explained and "the engine takes a free port" in explained


def test_what_does_not_fit_is_refused(house: Path, environ: dict[str, str]) -> None:
    said = run(house, environ, "plan", "toy-huge", status=1)
    assert "refused" in said and "toy-1" in said  # the nearest that fits is of the same family


def test_a_setting_of_another_family_is_named(house: Path, environ: dict[str, str]) -> None:
    said = run(house, environ, "plan", "toy-1", "--set", "n_gpu_layers=1", status=2)
    assert "'n_gpu_layers' is a setting of llama.cpp" in said
    site = Path(environ["GEZEL_CONFIG"])
    site.mkdir()
    (site / "site.yaml").write_text("settings: {n_gpu_layers: 1, toy_mood: cheerful, window: 1024}\n")
    assert "1,024 tokens" in run(house, environ, "plan", "toy-1")
    run(house, environ, "plan", "qwen3-8b", "--host", "rtx-4090")


def test_a_chat_and_another_kind_of_request(house: Path, environ: dict[str, str]) -> None:
    assert "toy says one two" in run(house, environ, "run", "toy-1", "one two")
    answer = run(house, environ, "run", "toy-1", "one two three", "--set", "endpoint=count", "--json")
    assert json.loads(answer.splitlines()[-1])["answer"] == "3 words"
    assert "no engine is running" in run(house, environ, "ps")


def test_its_own_log_patterns(house: Path, environ: dict[str, str], tmp_path: Path) -> None:
    said = run(house, environ, "run", "toy-broken", "hello", status=3)
    assert "toy-indigestible (toy: cannot digest this model): Give it another model." in said
    log = tmp_path / "engine.log"
    log.write_text("toy: cannot digest this model\n")
    assert "toy-indigestible" in run(house, environ, "log", str(log), "--family", "toy", status=1)
    assert "toy-indigestible" not in run(house, environ, "log", str(log))


def test_serve_and_stop(house: Path, environ: dict[str, str]) -> None:
    serving = subprocess.Popen(
        command(house, "serve", "toy-1", "--json"),
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert serving.stdout is not None
        said = json.loads(serving.stdout.readline())
        assert said["model"] == "toy-1" and Path(said["key_file"]).is_file()
        assert "toy-engine" in run(house, environ, "ps")
        assert "stopped toy-1" in run(house, environ, "stop", "toy-1")
        assert serving.wait(20) == 0
    finally:
        if serving.poll() is None:
            serving.send_signal(signal.SIGKILL)
        serving.communicate()


def test_doctor_and_devices_see_it(house: Path, environ: dict[str, str]) -> None:
    assert "toy_engine.py" in run(house, environ, "doctor")
    assert "toy_engine.py" in run(house, environ, "devices", "--family", "toy")


def test_the_embedded_engine_reads_its_own_policies_beside_them(house: Path, environ: dict[str, str]) -> None:
    words = (sys.executable, "-m", "gezel_rules.engines.llama_cpp.embedded", "--policies", house / "policies", "--help")
    found = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    assert "--ctx-size" in found.stdout


def test_plans_of_the_first_family_are_the_same_bytes(house: Path, environ: dict[str, str], tmp_path: Path) -> None:
    asked = (("plan", "qwen3-8b", "--host", "rtx-4090", "--json"), ("explain", "glm-4.5-air", "--host", "h200"))
    beside = [run(house, environ, *words) for words in asked]
    (house / "policies" / "toy").rename(tmp_path / "toy")
    del environ["PYTHONPATH"]
    try:
        assert [run(house, environ, *words) for words in asked] == beside
    finally:
        (tmp_path / "toy").rename(house / "policies" / "toy")


def test_nothing_else_was_needed() -> None:
    brought = sorted(
        path.relative_to(TOY).as_posix() for path in TOY.rglob("*") if path.is_file() and path.suffix != ".pyc"
    )
    assert brought == ["policies/toy/logs/model.yaml", "policies/toy/plan.yaml", "toy_engine.py", "toy_family.py"]
    code = Path(__file__).parents[2] / "gezel_rules"
    assert [path for path in code.rglob("*.py") if "toy" in path.read_text().split()] == []


def test_its_launches_are_recorded_and_decided_again(house: Path, environ: dict[str, str]) -> None:
    run(house, environ, "run", "toy-1", "one two")
    (launch,) = json.loads(run(house, environ, "history", "--json"))["launches"]
    assert launch["model"] == "toy-1" and launch["on"]["engine"] == "toy-engine"
    assert "the same launch" in run(house, environ, "replay", f"@{launch['id']}")
    assert "the engine takes a free port" in run(house, environ, "explain", "@last", "--port")
