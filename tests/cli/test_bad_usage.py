"""Usage that is wrong: options, arguments, odd and empty words, directories that are not what they are called.

Each is a one-line error at exit 2 with nothing changed on disk.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from test_bad_files import ARCH, gguf
from test_bad_input import HOST, MODEL

COMMANDS = ("plan", "explain", "run", "serve", "pull", "rm", "inspect", "memory", "log", "policy")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_argument(refused, command):
    assert "the following arguments are required" in refused(command)


@pytest.mark.parametrize("command", [*COMMANDS, "verify", "ps", "stop", "ls", "devices"])
def test_an_unknown_option(refused, command):
    words = {"policy": ["check"], "ps": [], "ls": [], "devices": []}.get(command, ["x"])
    line = refused(command, *words, "--no-such-option", "1")
    asked = "policy check" if command == "policy" else command
    assert "--no-such-option" in line and f"see gezel-rules {asked} --help" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plna", MODEL], "no command 'plna'; did you mean 'plan'?"),
        (["--no-such-option"], "--no-such-option"),
        (["plan", MODEL, "more"], "unrecognized arguments: more"),
        (["explain", MODEL, "--cache-type-k", "--threads", *HOST], "one SUBJECT"),
        (["explain", MODEL, "no-such", *HOST], "no flag or decision 'no-such'"),
        (["explain", MODEL, "--chache-type-k", *HOST], "did you mean '--cache-type-k'?"),
        (["explain", MODEL, "--why-not", "q8_0", *HOST], "--why-not needs one SUBJECT"),
        (["policy", "chekc"], "invalid choice: 'chekc'"),
        (["policy", "show", "no-such"], "'no-such'"),
        (["run", MODEL, "hello", "--max-tokens", "many"], "--max-tokens"),
        (["run", MODEL, "hello", "--max-tokens", "0"], "--max-tokens: 0 (1 or more, or -1 for no bound)"),
        (["run", MODEL, "hello", "--max-tokens", "-5"], "--max-tokens"),
        (["log", "x", "--exit-status", "bad"], "--exit-status"),
        (["memory", "x", "--ctx", "many"], "--ctx"),
        (["memory", "x", "--ctx", "-1"], "--ctx"),
        (["memory", "x", "--flash-attn", "maybe"], "--flash-attn"),
        (["memory", "gemma-3-270m", "--override-tensor", "x"], "--override-tensor"),
        (["memory", "x", "--tensor-split", "1,x"], "--tensor-split"),
        (["pull", MODEL, "--limit-rate", "fast"], "--limit-rate"),
        (["pull", MODEL, "--backend", "vulcan", "--dry-run"], "unknown backend 'vulcan'"),
        (["pull", MODEL, "--revision", "../x"], "--revision"),
        (["plan", MODEL, "--set"], "--set"),
        (["plan", "--store"], "--store"),
        (["--policies"], "--policies"),
    ],
)
def test_usage(refused, words, said):
    if words[0] == "pull" and "--backend" in words:
        words = ["qwen3-8b" if word == MODEL else word for word in words]  # an entry with a drafter asks for a backend
    assert said in refused(*words)


@pytest.mark.parametrize(
    "words",
    [
        ["", MODEL], ["plan", ""], ["explain", ""], ["explain", MODEL, ""], ["run", "", "hello"], ["pull", ""],
        ["rm", ""], ["policy", "show", ""],
        ["verify", ""], ["inspect", ""], ["memory", ""], ["log", ""], ["stop", ""], ["policy", ""],
        ["plan", MODEL, "--host", ""], ["plan", MODEL, "--engine", ""], ["plan", MODEL, "--set", ""],
        ["--policies", "", "plan", MODEL], ["plan", MODEL, "--store", ""], ["plan", MODEL, "--catalog", ""],
        ["devices", "--engine", ""], ["log", "x", "--backend", ""], ["pull", MODEL, "--revision", ""],
    ],
)  # fmt: skip
def test_an_empty_word(refused, words):
    refused(*words)


SLOTS = [
    ["{}"], ["plan", "{}"], ["explain", MODEL, *HOST, "{}"], ["run", "{}", "hello"], ["serve", "{}"], ["pull", "{}"],
    ["rm", "{}"], ["verify", "{}"], ["inspect", "{}"], ["memory", "{}"], ["log", "{}"], ["policy", "{}"],
    ["policy", "show", "{}"], ["policy", "check", "{}"], ["plan", MODEL, "--host", "{}"],
    ["plan", MODEL, "--engine", "{}"], ["plan", MODEL, "--set", "{}"], ["plan", MODEL, *HOST, "--set", "{}=1"],
    ["plan", MODEL, *HOST, "--set", "window={}"], ["plan", MODEL, *HOST, "--set", "kv_type={}"],
    ["--policies", "{}", "plan", MODEL], ["plan", MODEL, "--catalog", "{}"], ["plan", MODEL, "{}"],
    ["plan", MODEL, "--{}"],
    ["plan", "{}.gguf"], ["plan", "user/{}"], ["plan", "user/repo:{}"], ["plan", "hf://{}"],
    ["pull", "https://x/{}.gguf"],
    ["log", "x", "--backend", "{}"], ["pull", MODEL, "--revision", "{}"], ["pull", MODEL, "--limit-rate", "{}"],
    ["memory", "x", "--cache-type-k", "{}"], ["memory", "x", "--ctx", "{}"], ["devices", "--engine", "{}"],
    ["explain", MODEL, *HOST, "kv.type", "--why-not", "{}", "--host", "no-such"],
]  # fmt: skip


@pytest.mark.parametrize("odd", ["a\nb", "a\rb", "a\x1b[2J\x07b", "a\x7f\x9bb", "a\u202eb", "\udcff\udcfe"])
@pytest.mark.parametrize("words", SLOTS, ids=lambda words: " ".join(words))
def test_what_is_quoted_stays_one_printable_line(refused, words, odd):
    """Line feeds, escapes, direction marks and bytes that are no UTF-8, wherever a word can stand."""
    refused(*(word.replace("{}", odd) for word in words))


@pytest.mark.parametrize("words", [["plan", b"\xff\xfe"], ["inspect", b"\xff\n\x1b[2J.gguf"], [b"\xff"]])
def test_bytes_that_are_no_text(refused, words):
    refused(*words, apart=True)


def test_bytes_that_are_no_text_for_a_terminal_that_takes_only_ascii(refused):
    refused("inspect", b"\xff\xc3\xa9.gguf", apart=True, PYTHONIOENCODING="ascii", LC_ALL="C")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("/etc/passwd", "a host must be a mapping"),
        ("no-such-host", "no such file"),
        ("./rtx-4090", "no such file"),
        (".", "directory"),
        ("broken.yaml", "broken.yaml:2:1: not valid YAML"),
        ("model.yaml", "model.yaml:"),
        ("random.bin", "not UTF-8"),
        ("large.yaml", "larger than"),
        ("deep.yaml", "nested deeper"),
    ],
)
def test_a_host_that_is_none(refused, place, given, said):
    shipped = Path(__file__).parents[2] / "catalog" / "models" / f"{MODEL}.yaml"
    (place.here / "model.yaml").write_bytes(shipped.read_bytes())
    (place.here / "broken.yaml").write_text("host: [\n")
    (place.here / "random.bin").write_bytes(b"\xff" + random.Random(2).randbytes(999))
    (place.here / "large.yaml").write_bytes(b"#" * (5 << 20))
    (place.here / "deep.yaml").write_text("[" * 999)
    assert said in refused("plan", MODEL, "--host", given)


@pytest.mark.parametrize("given", ["empty", "missing", "file", "logs-only"])
@pytest.mark.parametrize(
    "words",
    [["plan", MODEL, *HOST], ["explain", MODEL, *HOST], ["run", MODEL, "hello"], ["serve", MODEL], ["devices"],
     ["memory", "v3.gguf"], ["inspect", "v3.gguf"], ["policy", "show"], ["policy", "check"]],
    ids=lambda words: words[0] + words[-1],
)  # fmt: skip
def test_policies_that_are_none(refused, place, words, given):
    (place.here / "v3.gguf").write_bytes(gguf(0, 1, ARCH))
    (place.here / "empty").mkdir()
    (place.here / "file").write_text("policy: x\n")
    (place.here / "logs-only" / "logs").mkdir(parents=True)
    assert given in refused(*words, "--policies", given)
    assert given in refused("--policies", given, *words)


@pytest.mark.parametrize("words", [["plan", MODEL], ["pull", MODEL], ["run", MODEL, "hello"]])
def test_a_catalog_that_is_none(refused, place, words):
    (place.here / "empty").mkdir()
    assert "empty is no catalog" in refused(*words, "--catalog", "empty")


@pytest.mark.parametrize("words", [["pull", MODEL], ["run", MODEL, "hello"], ["ls"], ["rm", MODEL], ["verify", MODEL]])
def test_a_store_that_is_a_file(refused, place, words):
    (place.here / "store.txt").write_text("mine\n")
    assert "store.txt" in refused(*words, "--store", "store.txt")


@pytest.mark.parametrize("words", [["plan", MODEL], ["run", MODEL, "hello"], ["devices"], ["explain", MODEL]])
def test_an_engine_that_is_none(refused, place, words):
    (place.here / "text").write_text("no program\n")
    assert "no such file: ./missing" in refused(*words, "--engine", "./missing")
    assert "is a directory" in refused(*words, "--engine", ".")
    assert "is not executable" in refused(*words, "--engine", "./text")
