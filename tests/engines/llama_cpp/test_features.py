"""What an engine's code uses of the processor: real logs, what is kept of them, and engines that do not say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from engine_at_hand import real_embedded, real_llama_server
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.engines.kept_answers import kept_answers
from gezel_rules.engines.llama_cpp import features
from gezel_rules.engines.llama_cpp.builds import build_facts, engine_at, processor_fact
from gezel_rules.engines.llama_cpp.engine_output import parse_features
from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.engines.llama_cpp.memory.tables import Processor
from gezel_rules.engines.patience import Bounds, Patience, SilentError
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies

SAID = Path(__file__).parents[2] / "data" / "engine-help"
LOGS = {
    "amx": "llama-server-0.6.0-dev.amx.log.txt",
    "avx2": "llama-server-0.6.0-dev.avx2.log.txt",
    "embedded": "xllamacpp-2026.10.11549.log.txt",
}
PROCESSORS = read_policies(policies_dir(), FAMILY, None).rows("processors", Processor)


@pytest.mark.parametrize(("log", "processor"), [("amx", "amx"), ("avx2", "avx2"), ("embedded", "avx2")])
def test_what_real_engines_say(log, processor):
    found = parse_features((SAID / LOGS[log]).read_text())
    assert found is not None and {"AVX2", "REPACK", "FMA"} <= set(found)
    assert ("AMX_INT8" in found) == (log == "amx")
    assert features.processor_of(found, PROCESSORS) == processor


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("system_info: n_threads = 8 / 16 | AVX = 1 | AVX_VNNI = 0 | AVX2 = 1 | FMA = 0 | \n", ("AVX", "AVX2")),
        ("system_info: n_threads = 2 | CUDA : ARCHS = 500,610 | USE_GRAPHS = 1 | CPU : SSE3 = 1 | SVE_CNT = 16 | ",
         ("ARCHS", "SSE3", "SVE_CNT", "USE_GRAPHS")),
        ("system_info: n_threads = 2 | \n", ()),
        ("AVX2 = 1", None),
    ],
)  # fmt: skip
def test_lines_of_other_builds(line, found):
    assert parse_features(line) == found


@given(st.text(max_size=200))
def test_any_log_gives_names_or_nothing(text):
    found = parse_features(f"system_info: {text}")
    assert found is None or all(re.fullmatch("[A-Z][A-Z0-9_]*", name) for name in found)


@pytest.mark.parametrize(
    ("found", "processor"),
    [
        (None, None),
        ([], None),
        (["NEON", "REPACK"], None),
        (["SSE3", "AVX"], "plain"),
        (["SSE3", "AVX2"], "plain"),
        (["SSE3", "AVX2", "REPACK"], "avx2"),
        (["SSE3", "AVX2", "AVX512", "REPACK"], "avx512"),
        (["AMX_INT8", "AVX512", "AVX2", "REPACK", "SSE3"], "amx"),
    ],
)
def test_the_best_that_a_build_has(found, processor):
    assert features.processor_of(found, PROCESSORS) == processor


# --- engines, faked ---

FAKE = f"""#!{sys.executable}
import os, sys
with open(__file__ + ".asked", "a") as log: print(sys.argv[1:], [n for n in os.environ if "LLAMA" in n], file=log)
if sys.argv[1] == "--version": print("version: 5123 (abc)", file=sys.stderr)
elif sys.argv[1] == "--help": print("-c, --ctx-size N   context")
else:
    print(os.environ.get("SAYS", "x: system_info: n = 2 | CPU : AVX2 = 1 | REPACK = 1 | SSE3 = 1 | "), file=sys.stderr)
    sys.exit(1)
"""


@pytest.fixture
def engine(tmp_path):
    """A fake llama-server that says its features and fails, as a real one does without a model."""
    path = tmp_path / "llama-server"
    path.write_text(FAKE)
    path.chmod(0o755)
    return path


def asked(engine: Path) -> list[str]:
    return [line for line in Path(f"{engine}.asked").read_text().splitlines() if "no-model.gguf" in line]


def fact(engine: Path, cache: Path, **environ: str):
    found = build_facts((str(engine),), cache, environ, kind="llama-server", rules=None, processors=PROCESSORS)
    return found["engine.processor"]


def test_it_is_asked_once(engine, tmp_path):
    assert fact(engine, tmp_path / "cache")[:2] == ("avx2", "llama-server: system_info")
    assert fact(engine, tmp_path / "cache").value == "avx2"
    assert len(asked(engine)) == 1
    build_facts((str(engine),), tmp_path / "cache", {}, kind="llama-server", rules=None)
    assert len(asked(engine)) == 1


def test_it_is_not_asked_where_nobody_wants_to_know(engine, tmp_path):
    found = build_facts((str(engine),), tmp_path / "cache", {}, kind="llama-server", rules=None)
    assert "engine.processor" not in found and asked(engine) == []


def test_another_build_and_another_processor_are_asked_again(engine, tmp_path, monkeypatch):
    fact(engine, tmp_path / "cache")
    monkeypatch.setattr(features, "cpu_digest", lambda: 1)
    assert fact(engine, tmp_path / "cache").value == "avx2"
    assert len(asked(engine)) == 2
    engine.write_text(FAKE.replace("AVX2 = 1", "AVX2 = 0"))
    assert fact(engine, tmp_path / "cache").value == "plain"
    assert len(asked(engine)) == 3


def test_what_it_does_not_say_is_unknown_and_not_asked_again(engine, tmp_path):
    for _ in range(2):
        found = fact(engine, tmp_path / "cache", SAYS="error: no such option: -lv")
        assert found.value is UNKNOWN and found.settle == "an engine whose log says system_info"
    assert len(asked(engine)) == 1


def test_an_engine_that_hangs_over_it_is_named(engine, tmp_path):
    engine.write_text(FAKE.replace("sys.exit(1)", "__import__('time').sleep(600)"))
    kept = kept_answers((str(engine),), tmp_path / "cache", {}, lambda path, command: ())
    with pytest.raises(SilentError, match=r"no-model\.gguf --port 0 gave no answer within"):
        features.known_features((str(engine),), {}, kept, patience=Patience(Bounds(0.5, 60, 10)))
    assert "features" not in kept.read()


CPU = features.cpu_digest()


@pytest.mark.parametrize("damage", ["yes", [CPU], [None, ["AVX2"]], [CPU, 3], [CPU, [3]], [CPU, "AVX2"]])
def test_a_damaged_answer_is_asked_again(engine, tmp_path, damage):
    fact(engine, tmp_path / "cache")
    (file,) = (tmp_path / "cache/engines").iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), "features": damage}))
    assert fact(engine, tmp_path / "cache").value == "avx2"
    assert len(asked(engine)) == 2


def test_variables_that_steer_a_launch_are_kept_away(engine, tmp_path):
    fact(engine, tmp_path / "cache", LLAMA_ARG_HF_REPO="some/model", LLAMA_API_KEY="k")
    (line,) = asked(engine)
    assert "LLAMA_ARG_HF_REPO" not in line and "LLAMA_API_KEY" in line


def test_the_processor_has_a_number_of_its_own():
    assert features.cpu_digest() == features.cpu_digest() != 0


# --- the real ones ---


@pytest.mark.engine
@pytest.mark.parametrize("which", [real_llama_server, real_embedded])
def test_a_real_engine_says_it(which, tmp_path):
    engine = which()
    found = processor_fact(engine_at(engine.kind, engine.command, tmp_path, os.environ), PROCESSORS)
    said = subprocess.run([*engine.command, *features.QUESTION], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert found.value == features.processor_of(parse_features(said.stderr + said.stdout), PROCESSORS)
    assert found.value in PROCESSORS
