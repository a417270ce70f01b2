"""The embedded engine as a process, and every flag of its table against the wheel itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from gezel_rules.engines.kept_answers import kept_answers
from gezel_rules.engines.llama_cpp import embedded
from gezel_rules.engines.llama_cpp.embedded_flags import AUTO_LAYERS, Member, Setting, embedded_table, read_argv
from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.engines.llama_cpp.find import embedded_engine
from gezel_rules.engines.llama_cpp.identity import files_behind
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies

pytestmark = pytest.mark.engine
TABLE = embedded_table(read_policies(policies_dir(), FAMILY, None))
SAMPLES = {
    "whole": "3", "decimal": "0.25", "text": "top_k;temperature", "texts": "x,y", "path": "/some/file", "layers": "7",
    "margins": "5", "proportions": "3,1", "tensor rules": r"blk\.0=CPU,blk\.1=CPU", "experts": "2",
    "template arguments": '{"a": 1}', "adapters": "/a", "scaled adapters": "/a:0.5",
}  # fmt: skip
DEVICES = {"--spec-draft-device", "--mmproj-device"}  # a name must be a device of this machine


@pytest.fixture(scope="session")
def wheel():
    return pytest.importorskip("xllamacpp", reason="pip install 'gezel-rules[embedded]'")


@pytest.fixture
def samples(tmp_path):
    (tmp_path / "file").write_text("text")
    return {
        **SAMPLES,
        "keys file": str(tmp_path / "file"),
        "file text": str(tmp_path / "file"),
        "directory": str(tmp_path),
    }


def value_of(params, dotted):
    for name in dotted.split("."):
        params = getattr(params, name)
    return params


@pytest.mark.parametrize("name", sorted({flag.name for flag in TABLE.flags.values()} - DEVICES))
def test_every_flag_sets_a_parameter_the_wheel_has(name, wheel, samples):
    flag = TABLE.flags[name]
    words = TABLE.words.get(flag.words, {})
    for sample in words or [samples.get(flag.takes)]:
        argv = [name] if sample is None else [name, sample]
        params = wheel.CommonParams()
        settings = read_argv(argv, TABLE)
        for setting in settings:
            embedded._apply(params, setting, wheel)
        for setting in settings:
            _same(value_of(params, setting.parameter), setting.value, wheel, params)


def _same(now, wanted, wheel, params):
    wanted = embedded._value(wanted, now, params, wheel)
    if isinstance(now, float):
        assert now == pytest.approx(wanted)
    elif isinstance(now, list) and now and hasattr(now[0], "path"):
        assert [(a.path, a.scale) for a in now] == [(a.path, a.scale) for a in wanted]
    else:
        assert now == wanted


def test_policies_that_somebody_chose_reach_it(wheel, tmp_path):
    """Their flags are the engine's, and what it answered under others is not believed."""
    mine = tmp_path / "mine"
    shutil.copytree(policies_dir(), mine)
    path = mine / "llama-cpp" / "embedded.yaml"
    path.write_text(path.read_text().replace("says: thread priority}", "says: how urgent it is}"))
    plain, own = embedded_engine(), embedded_engine(mine)
    for engine, said in ((plain, False), (own, True)):
        done = subprocess.run([*engine.command, "--help"], capture_output=True, text=True, check=True, cwd=tmp_path)
        assert ("how urgent it is" in done.stdout) is said
    kept = [kept_answers(engine.command, tmp_path, os.environ, files_behind) for engine in (plain, own)]
    assert kept[0].path != kept[1].path
    assert str(path) in str(kept[1].identity)


def test_every_member_exists(wheel):
    rows = [row for table in TABLE.words.values() for row in table.values() if row.member is not None]
    assert len(rows) > 40
    for row in rows:
        embedded._member(Member(row.member, row.turns_on or ""), wheel.CommonParams(), wheel)


def test_repeated_settings():
    merged = embedded._merge([Setting("a", 1), Setting("b", [1], True), Setting("a", 2), Setting("b", [2], True)])
    assert [(setting.parameter, setting.value) for setting in merged] == [("a", 2), ("b", [1, 2])]


def test_one_margin_stands_for_all_devices(wheel):
    params = wheel.CommonParams()
    embedded._apply(params, Setting("fit_params_target", [7]), wheel)
    assert set(params.fit_params_target) == {7} and len(params.fit_params_target) > 1
    embedded._apply(params, Setting("fit_params_target", [1, 2]), wheel)
    assert list(params.fit_params_target[:3]) == [1, 2, 7]


def test_defaults_of_the_wheel_are_what_the_table_takes_them_for(wheel):
    """Where the wheel starts from llama-server's own default, the table must not set one."""
    params = wheel.CommonParams()
    assert params.n_gpu_layers == AUTO_LAYERS and params.n_ctx == 0
    for setting in TABLE.defaults:
        assert value_of(params, setting.parameter) != setting.value


def ask(*argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("xllamacpp", reason="pip install 'gezel-rules[embedded]'")
    command = [sys.executable, "-P", "-m", embedded.MODULE, *argv]
    return subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, timeout=120)


def test_version_is_written_as_llama_server_writes_it():
    import re

    done = ask("--version")
    assert done.returncode == 0 and done.stdout == ""
    assert re.match(r"version: \S+ \(build \d+, commit unknown\)\nbuilt with xllamacpp \d", done.stderr)


def test_devices_are_written_as_llama_server_writes_them():
    done = ask("--list-devices")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0] == "Available devices:" and len(lines) > 1
    assert all(line.startswith("  ") for line in lines[1:])


def test_help():
    done = ask("--help")
    assert done.returncode == 0 and "-c,    --ctx-size N " in done.stdout


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["-m", "x", "--rpc", "a:1"], "error: invalid argument: --rpc: the embedded engine cannot honour --rpc\n"),
        ([], "error: no model given: the embedded engine is no router\n"),
        (["-c", "99999999999"], 'error while handling argument "-c": value too large to convert to int32_t\n'),
        (["-m", "x", "-ot", "a=NOWHERE"], 'error while handling argument "-ot": unknown buffer type\n'),
    ],
)
def test_refusals_are_one_line_and_status_1(argv, said):
    done = ask(*argv)
    assert (done.returncode, done.stderr) == (1, said)


def test_variables_it_does_not_read_are_named():
    done = ask("-m", "/no/such.gguf", LLAMA_ARG_CTX_SIZE="512", LLAMA_ARG_PORT="1")
    assert done.returncode == 1
    assert done.stderr.startswith("warning: the embedded engine does not read LLAMA_ARG_CTX_SIZE, LLAMA_ARG_PORT\n")


def test_the_key_is_not_in_its_log():
    done = ask("-lv", "5", "-m", "/no/such.gguf", "--port", "0", LLAMA_API_KEY="correct-horse-key")
    assert "correct-horse" not in done.stdout + done.stderr and "api_keys" in done.stderr


def test_terminated_while_loading_it_dies_of_the_signal(tmp_path):
    """As llama-server: 143 to a shell. A fifo never gives its header, so that loading does not end."""
    pytest.importorskip("xllamacpp", reason="pip install 'gezel-rules[embedded]'")
    os.mkfifo(tmp_path / "model.gguf")
    command = [sys.executable, "-P", "-m", embedded.MODULE, "-m", str(tmp_path / "model.gguf"), "--port", "0"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while "loading model" not in child.stderr.readline():
        assert child.poll() is None
    child.send_signal(signal.SIGTERM)
    assert child.wait(20) == -signal.SIGTERM
    child.stderr.close()
