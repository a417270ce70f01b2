"""``gezel-rules log`` as people call it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gezel_rules.cli import main
from gezel_rules.places import policies_dir

FAILED = "ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected\n"
HEALTHY = "llama_model_load_from_file_impl: using device CUDA0 (RTX 4070) - 11011 MiB free\n"
OOM = HEALTHY + "llama_model_load: error loading model: unable to allocate CUDA0 buffer\n"
CPU_ONLY = "load_tensors: offloaded 0/36 layers to GPU\n"


@pytest.fixture
def log(tmp_path):
    def write(text):
        path = tmp_path / "engine.log"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def test_json_has_exactly_the_promised_shape(log, capsys):
    assert main(["log", log(OOM), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert set(said) == {"gpu", "detail", "failure", "advice", "rule"}
    assert set(said["rule"]) == {"id", "file", "line"}
    assert (said["gpu"], said["detail"], said["failure"]) == ("in-use", "CUDA0 (RTX 4070)", "cuda-oom")
    assert said["rule"]["file"] == "policies/llama-cpp/logs/memory.yaml"


def test_text_shows_verdict_failure_line_advice_and_rules(log, capsys):
    main(["log", log(OOM)])
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "gpu      in-use: CUDA0 (RTX 4070)"
    assert said[1].startswith("failure  cuda-oom: ")
    assert said[2] == "line     llama_model_load: error loading model: unable to allocate CUDA0 buffer"
    assert said[3].startswith("advice   ")
    assert [line.split()[1] for line in said[4:]] == ["cuda-buffer-refused", "named"]


@pytest.mark.parametrize(
    ("text", "options", "status"),
    [
        (HEALTHY, [], 0),
        ("", [], 0),
        (OOM, [], 1),
        (FAILED, [], 1),
        (CPU_ONLY, [], 0),
        (CPU_ONLY, ["--backend", "cpu"], 0),
        (CPU_ONLY, ["--backend", "cuda"], 1),
        ("", ["--exit-status", "-4"], 1),
        ("", ["--exit-status", "0"], 0),
        ("", ["--exit-status", "1"], 1),
        ("", ["--exit-status", "-15"], 0),
        ("", ["--exit-status", "128+11"], 1),
        ("", ["--exit-status", "0xC0000005"], 1),
        (HEALTHY, ["--exit-status", "SIGABRT"], 1),
        ("Error: llama runner process has terminated: signal: segmentation fault (core dumped)\n", [], 1),
        ("llama-server-1 exited with code 139\n", [], 1),
    ],
)
def test_exit_status_says_whether_something_is_wrong(log, capsys, text, options, status):
    assert main(["log", log(text), *options]) == status
    assert capsys.readouterr().err == ""


def test_standard_input():
    done = subprocess.run(
        [sys.executable, "-m", "gezel_rules.cli", "log", "-", "--json"], input=FAILED.encode(), capture_output=True
    )
    assert (done.returncode, json.loads(done.stdout)["gpu"]) == (1, "init-failed")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_log_written_by_powershell(log, capsys, encoding):
    main(["log", log(FAILED.replace("\n", "\r\n").encode(encoding)), "--json"])
    assert json.loads(capsys.readouterr().out)["gpu"] == "init-failed"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["/nonexistent.log"], "/nonexistent.log: no such file or directory"),
        (["/"], "/: is a directory"),
        (["-", "--backend", "cudda"], "--backend: unknown backend 'cudda'; did you mean 'cuda'?"),
        (["-", "--exit-status", "x"], "argument --exit-status: 'x' is none; say 1, -11,"),
    ],
)
def test_bad_input_is_one_line_at_exit_2(capsys, arguments, said):
    try:
        status = main(["log", *arguments])
    except SystemExit as stopped:
        status = stopped.code
    error = capsys.readouterr().err
    assert (status, error.count("\n")) == (2, 1)
    assert said in error


def test_other_policies(tmp_path, log, capsys):
    logs = shutil.copytree(policies_dir(), tmp_path / "mine") / "logs"
    logs.joinpath("own.yaml").write_text(
        "policy: logs/own\nversion: 1.0.0\nsummary: One rule.\n"
        "patterns:\n  - {id: gone, failure: gone-away, needs: gone away, match: gone away, matches: [all gone away]}\n"
        "failures:\n  - {id: gone-away, says: it went, advice: Wait.}\n"
    )
    assert main(["--policies", str(tmp_path / "mine"), "log", log("has gone away\n"), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["failure"] == "gone-away"
    assert said["rule"] == {"id": "gone", "file": "mine/logs/own.yaml", "line": 5}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_never_ends_is_no_log(tmp_path, capsys):
    """A pipe and a device are not waited for by name; what is piped in has a length at which reading stops."""
    os.mkfifo(tmp_path / "pipe")
    assert main(["log", str(tmp_path / "pipe")]) == 2
    assert capsys.readouterr().err == f"gezel-rules: {tmp_path}/pipe: not a plain file; write - and pipe it in\n"
    assert main(["log", "/dev/zero"]) == 2
    assert capsys.readouterr().err == "gezel-rules: /dev/zero: not a plain file\n"

    policies = tmp_path / "policies"
    shutil.copytree(policies_dir(), policies)
    file = policies / "runtime" / "supervision.yaml"
    file.write_text(file.read_text().replace("read_bytes: 4294967296", "read_bytes: 1000000"))
    command = [sys.executable, "-m", "gezel_rules.cli", "--policies", str(policies), "log", "-"]
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(command, stdin=endless, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "gezel-rules: -: too long to be a log: cut it with head -c or tail -c\n"


@pytest.mark.parametrize(
    ("line", "count"),
    [(b"x ggml_cuda_init: failed", 4_000_000), (b"y" * 65535 + b"\n", 1500)],
    ids=["one line of 96 MB", "lines of 64 KiB"],
)
def test_memory_stays_flat_however_long_a_line_is(tmp_path, line, count):
    """Beside what a small log takes, less than a third of the longest of these."""

    def peak(data: bytes) -> int:
        path = tmp_path / "engine.log"
        path.write_bytes(data)
        code = "import resource,sys; from gezel_rules.cli import main; main(sys.argv[1:]); " + (
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "log", str(path)], capture_output=True, text=True, check=True
        )
        return int(done.stdout.splitlines()[-1])

    peak(b"")  # keeps the compiled policies
    assert peak(line * count) - peak(line) < 32 << 10  # KiB
