"""Engine builds: the formats of several years, real engines, programs that misbehave, and what is kept."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

import psutil
import pytest
from engine_at_hand import real_embedded, real_llama_server
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import InvalidVersion
from packaging.version import Version as PackagingVersion

from gezel_rules.engines.ask import ask
from gezel_rules.engines.llama_cpp import builds
from gezel_rules.engines.llama_cpp.builds import build_facts, engine_at, read_build
from gezel_rules.engines.llama_cpp.devices import DeviceRules
from gezel_rules.engines.llama_cpp.engine_output import parse_help, parse_version, pep440
from gezel_rules.engines.patience import Bounds, Patience, SilentError
from gezel_rules.errors import BadInput, EngineFailed
from gezel_rules.facts.fact import UNKNOWN

SAID = Path(__file__).parents[2] / "data" / "engine-help"
HELP = (SAID / "llama-server-0.6.0-dev.help.txt").read_text()
RULES = DeviceRules({"CUDA": "cuda"}, {"CUDA": "discrete"})


# --- what engines print ---


@pytest.mark.parametrize(
    ("text", "version", "build"),
    [
        ((SAID / "llama-server-0.6.0-dev.version.txt").read_text(), "0.6.0.dev0", None),
        ("version: 5123 (abc1234)\nbuilt with cc (Ubuntu 11.4.0) 11.4.0 for x86_64-linux-gnu\n", None, 5123),
        ("version: 0 (unknown)\n", None, None),
        ("version: 0.4.1-dev (build 11059, commit 059a34f8d)\n", "0.4.1.dev0", 11059),
        ("version: 0.1.51 (build 10900, commit 77f)\r\nbuilt with MSVC\r\n", "0.1.51", 10900),
        ("ggml_vulkan: Found 1 Vulkan devices:\nggml_vulkan: 0 = X | uma: 0\nversion: 6795 (unknown)\n", None, 6795),
        ("0.00.001.5 I using config file: /x\nversion: 1.2.3-rc2\n", "1.2.3rc2", None),
        ("version: main-custom (build 7, commit 8)\n", None, 7),
    ],
)
def test_version_lines_of_several_years(text, version, build):
    assert parse_version(text) == (version, build)


def test_another_program_has_no_version_line():
    assert parse_version("ls (GNU coreutils) 9.1\n") is None


@given(
    st.lists(st.integers(0, 10**9 - 1), min_size=1, max_size=4),
    st.sampled_from(["", "-dev", "-rc1", ".beta2", "a3", "-alpha", "-pre1"]),
    st.sampled_from(["", "-12-gabc1234", "+local.7"]),
)
def test_versions_are_what_packaging_makes_of_them(release, phase, local):
    word = ".".join(map(str, release)) + phase
    ours = pep440(word + local)
    assert str(PackagingVersion(ours)) == ours
    theirs = PackagingVersion(word)
    assert (PackagingVersion(ours).release, PackagingVersion(ours).pre) == (theirs.release, theirs.pre)


@given(st.text(max_size=30))
def test_any_word_is_a_version_packaging_can_read_or_none(word):
    ours = pep440(word)
    if ours is not None:
        try:
            PackagingVersion(ours)
        except InvalidVersion:
            pytest.fail(f"{word!r} gave {ours!r}")


def test_the_options_of_a_real_help():
    found = parse_help(HELP)
    assert {"--ctx-size", "-c", "--no-kv-offload", "-nkvo", "--spec-draft-n-max", "-hfr", "--fim-qwen-1.5b-default"} < {
        *found.flags
    }
    assert list(found.flags) == sorted(set(found.flags))
    assert found.variables["LLAMA_ARG_CTX_SIZE"] == ("-c", "--ctx-size")
    assert found.variables["LLAMA_API_KEY"] == ("--api-key",)
    assert found.variables["HF_TOKEN"][-1] == "--hf-token"
    assert "LLAMA_ARG_SLOT_SAVE_PATH" not in found.variables


def test_the_words_an_option_lists():
    found = parse_help(HELP).words
    assert found["--spec-type"][:4] == ("none", "draft-simple", "draft-eagle3", "draft-mtp")
    assert found["--spec-type"][-1] == "ngram-cache"
    assert found["--spec-draft-sampling"] == ("greedy", "probabilistic")
    assert "--device" not in found  # <dev1,dev2,..> stands for names of devices
    assert parse_help("--rope-scaling {none,linear,yarn}\n").words == {"--rope-scaling": ("none", "linear", "yarn")}


def test_every_option_and_variable_of_a_real_help_is_found():
    """Found another way: what stands before column 40 (or on the whole line where an option is longer than that)."""
    heads = [line for line in HELP.splitlines() if line.startswith("-") and not line.startswith("-----")]
    heads = [head[:40] if head[39:40] == " " else head for head in heads]
    words = {word.rstrip(",") for head in heads for word in head.split() if word.startswith("-")}
    removed = {"--draft", "--draft-n", "--draft-max", "--draft-min", "--draft-n-min"}
    removed |= {"--spec-ngram-size-n", "--spec-ngram-size-m", "--spec-ngram-min-hits"}
    assert {*parse_help(HELP).flags} == words - removed
    variables = set(re.findall(r"\(env: (.*)\)", HELP))
    assert {*parse_help(HELP).variables} == variables - {"LLAMA_ARG_DRAFT_MAX", "LLAMA_ARG_DRAFT_MIN"}


def test_options_that_are_only_listed_as_removed_are_not_taken():
    found = parse_help(HELP)
    assert "--draft-max" in HELP
    assert "--draft-max" not in found.flags


def test_a_help_of_2023_names_the_value_between_the_options():
    text = (
        "usage: ./server [options]\n\noptions:\n"
        "  -h, --help            show this help message and exit\n"
        "  -t N,  --threads N    number of threads to use during computation (default: 4)\n"
        "  -m FNAME, --model FNAME\n                        model path (default: models/7B/ggml-model.gguf)\n"
        "  --rope-scaling {none,linear,yarn}\n                        RoPE frequency scaling method\n"
    )
    assert parse_help(text).flags == ("--help", "--model", "--rope-scaling", "--threads", "-h", "-m", "-t")


@given(st.text(st.characters(codec="utf-8"), max_size=300))
def test_any_help_gives_names_that_begin_with_a_dash(text):
    assert all(flag.startswith("-") for flag in parse_help("-" + text).flags)


# --- programs ---


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!{sys.executable}\nimport os, sys, time\nquestion = sys.argv[-1]\n{body}\n")
    path.chmod(0o755)
    return path


ENGINE = """
with open(__file__ + ".asked", "a") as log: print(question, file=log)
if question == "--version": print("version: 5123 (abc)", file=sys.stderr)
if question == "--help":
    print("-c, --ctx-size N   context\\n                   (env: LLAMA_ARG_CTX_SIZE)\\n--list-devices   list")
if question == "--list-devices":
    print("Available devices:")
    print(os.environ.get("CARD", "  (none)"))
"""


def asked(engine: Path) -> list[str]:
    return Path(f"{engine}.asked").read_text().split()


def facts(engine: Path, cache: Path | None, **more):
    more = {"rules": RULES, "cpu_backend": "cpu", "environ": {}, **more}
    environ = more.pop("environ")
    return build_facts((str(engine),), cache, environ, kind="llama-server", **more)


def test_facts_of_a_build_and_what_is_kept(tmp_path):
    engine = script(tmp_path / "llama-server", ENGINE)
    found = facts(engine, tmp_path / "cache")
    assert found["engine.kind"].value == "llama-server"
    assert found["engine.version"].value is UNKNOWN
    assert found["engine.build"][:2] == (5123, "llama-server --version")
    assert found["engine.flags"][:2] == (["--ctx-size", "--list-devices", "-c"], "llama-server --help")
    assert found["engine.backend"].value == "cpu"
    assert facts(engine, tmp_path / "cache") == found
    assert asked(engine) == ["--version", "--help", "--list-devices"], "the second time nothing is asked"


def test_without_device_rules_devices_are_not_asked(tmp_path):
    engine = script(tmp_path / "llama-server", ENGINE)
    found = facts(engine, tmp_path / "cache", rules=None)
    assert not {"devices", "engine.backend", "host.unified"} & set(found)
    assert asked(engine) == ["--version", "--help"]


def test_free_memory_is_asked_again_each_time(tmp_path):
    engine = script(tmp_path / "llama-server", ENGINE)
    for free in (900, 500):
        card = {"CARD": f"  CUDA0: Card (1000 MiB, {free} MiB free)"}
        found = facts(engine, tmp_path / "cache", environ=card)
        assert found["devices"].value[0]["free_bytes"] == free << 20
    assert asked(engine) == ["--version", "--help", "--list-devices", "--list-devices"]


def test_no_devices_is_believed_only_for_the_same_environment_and_not_for_long(tmp_path, monkeypatch):
    engine = script(tmp_path / "llama-server", ENGINE)
    cache = tmp_path / "cache"
    assert facts(engine, cache)["devices"].value == []
    card = {"CARD": "  CUDA0: Card (1000 MiB, 900 MiB free)"}
    assert len(facts(engine, cache, environ=card)["devices"].value) == 1
    assert facts(engine, cache)["devices"].value == []
    assert asked(engine).count("--list-devices") == 3, "a device seen ends the belief in none"
    facts(engine, cache, fresh=True)
    assert asked(engine).count("--list-devices") == 4
    now = time.time()
    monkeypatch.setattr(builds.time, "time", lambda: now + builds.NONE_FOR + 1)
    facts(engine, cache)
    assert asked(engine).count("--list-devices") == 5


def test_a_changed_binary_is_asked_again(tmp_path):
    engine = script(tmp_path / "llama-server", ENGINE)
    facts(engine, tmp_path / "cache")
    script(engine, ENGINE.replace("5123", "6000"))
    assert facts(engine, tmp_path / "cache")["engine.build"].value == 6000


def test_a_changed_library_beside_a_small_starter_is_asked_again(tmp_path):
    engine = script(tmp_path / "llama-server", ENGINE)
    (tmp_path / "libllama-server-impl.so").write_bytes(b"one")
    facts(engine, tmp_path / "cache")
    (tmp_path / "libllama-server-impl.so").write_bytes(b"two, built anew")
    facts(engine, tmp_path / "cache")
    assert asked(engine).count("--help") == 2


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"identity": 3}',
        b"[" * 100_000,
        lambda kept: {**kept, "build": "5123"},
        lambda kept: {**kept, "build": [None, 1, [3], {}]},
        lambda kept: {**kept, "build": [None, 1, ["-c"], {"X": 3}]},
        lambda kept: {**kept, "build": [None, 1, ["-c"], {"X": [3]}]},
        lambda kept: {**kept, "no_devices": "yes"},
        lambda kept: {**kept, "no_devices": [None, 1]},
    ],
)
def test_a_damaged_cache_is_ignored(tmp_path, damage):
    engine = script(tmp_path / "llama-server", ENGINE)
    found = facts(engine, tmp_path / "cache")
    (file,) = (tmp_path / "cache/engines").iterdir()
    file.write_bytes(json.dumps(damage(json.loads(file.read_text()))).encode() if callable(damage) else damage)
    assert facts(engine, tmp_path / "cache") == found
    assert len(asked(engine)) > 3, "asked again"
    count = len(asked(engine))
    facts(engine, tmp_path / "cache")
    assert len(asked(engine)) == count, "and kept again"


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    engine = script(tmp_path / "llama-server", ENGINE)
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert facts(engine, tmp_path / "cache")["engine.build"].value == 5123


def test_without_a_cache_everything_is_asked_each_time(tmp_path):
    engine = script(tmp_path / "llama-server", ENGINE)
    assert facts(engine, None) == facts(engine, None)
    assert len(asked(engine)) == 6


def test_an_engine_that_cannot_list_devices_leaves_them_unknown(tmp_path):
    engine = script(tmp_path / "llama-server", ENGINE.replace("--list-devices   list", "--other   x"))
    found = facts(engine, tmp_path / "cache")
    assert found["devices"].value is UNKNOWN
    assert found["engine.backend"].value is UNKNOWN
    assert "--list-devices" not in asked(engine)


def one_line(error: Exception) -> str:
    assert "\n" not in str(error)
    return str(error)


def test_a_missing_program(tmp_path):
    with pytest.raises(BadInput) as caught:
        facts(tmp_path / "nowhere", tmp_path)
    assert one_line(caught.value) == f"{tmp_path}/nowhere: no such program"


def test_a_bare_name_is_looked_up_in_the_path_given(tmp_path):
    script(tmp_path / "my-engine", ENGINE)
    command = ("my-engine",)
    found = build_facts(command, tmp_path / "cache", {"PATH": str(tmp_path)}, kind="x", rules=None)
    assert found["engine.build"].value == 5123
    with pytest.raises(BadInput, match="my-engine: no such program in PATH"):
        build_facts(command, tmp_path / "cache", {"PATH": "/nowhere"}, kind="x", rules=None)


def test_a_directory_and_a_file_that_may_not_run(tmp_path):
    with pytest.raises(BadInput, match="is a directory, not a program"):
        facts(tmp_path, tmp_path)
    (tmp_path / "plain").write_text("hello")
    with pytest.raises(BadInput, match="may not be executed"):
        facts(tmp_path / "plain", tmp_path)


def test_a_file_that_is_no_program(tmp_path):
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF garbage")
    broken.chmod(0o755)
    with pytest.raises(BadInput, match="cannot be started: exec format error"):
        facts(broken, tmp_path)


def test_another_program_is_named(tmp_path):
    engine = script(tmp_path / "ls", "print('ls (GNU coreutils) 9.1')")
    with pytest.raises(BadInput) as caught:
        facts(engine, tmp_path)
    assert one_line(caught.value) == f"{engine}: not a llama.cpp engine: --version says 'ls (GNU coreutils) 9.1'"


def test_an_engine_that_fails_is_quoted(tmp_path):
    body = "print('noise', file=sys.stderr)\nprint('libfoo.so.1: cannot \\x1b[31mopen', file=sys.stderr)\nsys.exit(127)"
    engine = script(tmp_path / "llama-server", body)
    with pytest.raises(EngineFailed) as caught:
        facts(engine, tmp_path)
    assert one_line(caught.value) == f"{engine} --version exited with status 127: libfoo.so.1: cannot open"
    assert caught.value.exit_status == 3
    assert not (tmp_path / "engines").exists(), "a failure is not kept"


def test_an_engine_that_dies_of_a_signal(tmp_path):
    engine = script(tmp_path / "llama-server", "os.kill(os.getpid(), 4)")
    with pytest.raises(EngineFailed, match="--version died of SIGILL"):
        facts(engine, tmp_path)


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path):
    body = (
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\ntime.sleep(600)"
    )
    engine = script(tmp_path / "llama-server", body)
    with pytest.raises(SilentError, match=r"gave no answer within \d+\.\d s"):
        ask([str(engine)], {}, patience=Patience(Bounds(1.5, 60, 10)))
    assert gone(int((tmp_path / "child").read_text()))


def test_a_child_left_behind_is_ended_and_does_not_delay_the_answer(tmp_path):
    body = (
        "import subprocess\n"
        "print('said', flush=True)\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))"
    )
    engine = script(tmp_path / "llama-server", body)
    assert ask([str(engine)], {}).out == "said\n"
    assert gone(int((tmp_path / "child").read_text()))


def gone(pid: int) -> bool:
    """Whether the process has ended; one that waits to be reaped has."""
    for _ in range(200):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_a_program_that_never_stops_talking(tmp_path):
    engine = script(tmp_path / "llama-server", "while True: print('x' * 1000)")
    with pytest.raises(EngineFailed, match="printed more than 100,000 bytes"):
        ask([str(engine)], {}, limit=100_000)


def test_the_program_gets_empty_input_and_the_environment_given(tmp_path):
    engine = script(
        tmp_path / "llama-server", "print(repr(sys.stdin.read()), os.environ.get('ONLY'), 'PATH' in os.environ)"
    )
    assert ask([str(engine)], {"ONLY": "this"}).out == "'' this False\n"


# --- the real ones ---


@pytest.mark.engine
def test_the_real_llama_server(tmp_path):
    engine = real_llama_server()
    found = build_facts(engine.command, tmp_path, os.environ, kind=engine.kind, rules=RULES, cpu_backend="cpu")
    assert found["engine.version"].value or found["engine.build"].value
    assert {"--model", "--ctx-size", "-ngl", "--list-devices"} < set(found["engine.flags"].value)
    assert found["devices"].value is not UNKNOWN
    kept = build_facts(
        engine.command, tmp_path, os.environ, kind=engine.kind, rules=None, run=lambda *_: pytest.fail("asked again")
    )
    assert kept["engine.flags"] == found["engine.flags"]


@pytest.mark.engine
def test_the_real_llama_server_moved_away_from_its_libraries(tmp_path):
    engine = real_llama_server()
    copy = tmp_path / "llama-server"
    shutil.copy2(engine.command[0], copy)
    try:
        build_facts((str(copy),), tmp_path, {}, kind="llama-server", rules=None)
    except EngineFailed as error:
        assert "exited with status 127" in one_line(error)
        assert "cannot open shared object file" in str(error)
    else:
        pytest.skip("this llama-server is built without shared libraries")


@pytest.mark.engine
def test_the_real_embedded_engine(tmp_path):
    engine = real_embedded()
    asking = engine_at(engine.kind, engine.command, tmp_path, os.environ)
    build = read_build(asking)
    assert build.build or build.version
    assert "--model" in build.flags
    assert any("xllamacpp" in str(entry) for entry in asking.kept.identity), "the wheel is part of the identity"
    assert any("embedded.py" in str(entry) for entry in asking.kept.identity), "so is our own code"
