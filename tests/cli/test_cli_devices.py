"""``devices``: what people and programs read, from a real program that speaks as llama-server does."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys

import pytest

from gezel_rules.cli import devices
from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.session import session_for
from gezel_rules.session.offer import look

ENGINE = f"""#!{sys.executable}
import sys
question = sys.argv[-1]
if question == "--version": print("version: 0.4.1-dev (build 11059, commit 059a34f8d)", file=sys.stderr)
if question == "--help":
    print("-c, --ctx-size N   context\\n                   (env: LLAMA_ARG_CTX_SIZE)")
    print("--api-key KEY      key\\n                   (env: LLAMA_API_KEY)\\n--list-devices   list")
if question == "--list-devices":
    print("Available devices:")
    print("  CUDA0: NVIDIA GeForce RTX 4090 (24081 MiB, 23564 MiB free)")
    print("  Vulkan0: llvmpipe (LLVM 15.0.7, 256 bits) (24105 MiB, 24105 MiB free)")
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    path = tmp_path / "llama-server"
    path.write_text(ENGINE)
    path.chmod(0o755)
    for name in ("LLAMA_ARG_CTX_SIZE", "LLAMA_API_KEY", "GEZEL_LLAMA_SERVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GEZEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return path


def shown(*argv: str, as_json: bool = False) -> tuple[int, str]:
    parser = argparse.ArgumentParser()
    devices.add_arguments(parser)
    places = {"policies": None, "catalog": None, "store": None, "layer": None}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = devices.run(argparse.Namespace(json=as_json, **places, **vars(parser.parse_args(argv))))
    return status, out.getvalue()


def test_what_people_read(engine, monkeypatch):
    monkeypatch.setenv("LLAMA_ARG_CTX_SIZE", "4096")
    monkeypatch.setenv("LLAMA_API_KEY", "hunter2")
    status, text = shown("--engine", str(engine))
    assert status == 0
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[:6] == [
        f"engine {engine}",
        "version 0.4.1.dev0 (build 11059) llama-server --version",
        "backend CUDA llama-server --list-devices: CUDA0",
        "options 4 llama-server --help",
        "CUDA0 NVIDIA GeForce RTX 4090 · discrete · 23.0 GiB free of 23.5 GiB",
        "Vulkan0 llvmpipe (LLVM 15.0.7, 256 bits) · software · 23.5 GiB free of 23.5 GiB",
    ]
    assert any(line.startswith("CPUs ") for line in lines)
    assert "--ctx-size 4096 environment LLAMA_ARG_CTX_SIZE" in lines
    assert "--api-key (set, not shown) environment LLAMA_API_KEY" in lines
    assert "hunter2" not in text


def test_what_programs_read(engine):
    status, text = shown("--engine", str(engine), as_json=True)
    found = json.loads(text)
    assert status == 0
    assert found["engine"] == {"command": [str(engine)]}
    assert found["facts"]["engine.version"]["value"] == "0.4.1.dev0"
    assert [d["name"] for d in found["facts"]["devices"]["value"]] == ["CUDA0", "Vulkan0"]
    assert found["facts"]["host.cpus"]["source"]
    assert found["foreign"] == []


def test_no_engine_still_shows_the_machine_and_says_what_to_install(engine, monkeypatch):
    def nothing(*_, **__):
        raise BadInput("no engine found: install one")

    monkeypatch.setattr("gezel_rules.engines.llama_cpp.find.find_engine", nothing)
    status, text = shown()
    assert status == 1
    assert text.startswith("engine   none: no engine found: install one\n\nhost ")
    assert json.loads(shown(as_json=True)[1])["engine"] == {"command": None, "why": "no engine found: install one"}


def test_an_engine_that_was_named_and_is_not_there_is_a_mistake(engine, tmp_path):
    with pytest.raises(BadInput, match="nowhere"):
        shown("--engine", str(tmp_path / "nowhere"))


def test_what_is_unknown_is_said_with_what_would_settle_it(engine):
    offer = look(session_for(None, None, None), FAMILY, str(engine))
    unknown = Fact(UNKNOWN, "the probe", "probe", settle="another probe")
    facts = {**offer.facts, **dict.fromkeys(["engine.version", "engine.build", "engine.backend", "devices"], unknown)}
    facts["host.ram_free"] = facts["host.cpus"] = unknown
    blind = offer._replace(facts=facts)
    text = "\n".join(devices.as_text(blind))
    assert text.count(" unknown ") == 5
    assert text.count("the probe; settled by: another probe") == 5
    assert devices.as_json(blind)["facts"]["devices"] == {
        "value": None,
        "unknown": True,
        "source": "the probe",
        "settle": "another probe",
    }


def test_the_policies_named_decide_what_devices_are(engine, tmp_path):
    with pytest.raises(BadInput, match="no such policy directory"):
        look(session_for(tmp_path / "none", None, None), FAMILY, str(engine))
