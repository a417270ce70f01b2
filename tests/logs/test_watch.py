"""The verdict on recorded logs, through any wrapper, in any pieces, whatever a hostile line holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_cases import cases, further_cases, judged, outcome, shipped

from gezel_rules.logs.watch import BLOCK, Watch, classify
from gezel_rules.places import policies_dir

IDS = [case["id"] for case in cases()]

WRAPPERS = {
    "compose": lambda i, line: "llama-server-1  | " + line,
    "journald": lambda i, line: "Nov 29 17:11:21 box llama-server[55781]: " + line,
    "journald of another country": lambda i, line: "2月 21 08:55:16 box llama-server[55781]: " + line,
    "journald with ISO time": lambda i, line: "2026-11-29T17:11:21+0000 box llama-server[55781]: " + line,
    "syslog": lambda i, line: "<14>1 2026-11-29T17:11:21.123Z host llama-server 1234 - - " + line,
    "docker --timestamps": lambda i, line: f"2026-11-29T17:11:{i % 60:02}.123456789Z " + line,
    "docker json-file": lambda i, line: json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-11-29"}),
    "kubernetes": lambda i, line: "2026-11-29T17:11:21.123456789+00:00 stderr F " + line,
    "kubectl --prefix": lambda i, line: "[pod/llama-0/server] " + line,
    "router": lambda i, line: "[43123] " + line,
    "llama-swap": lambda i, line: "[llama-cpp] 2026-05-31T16:42:11.682694693Z [42977] " + line,
    "epoch": lambda i, line: "[1720599202] " + line,
    "python logging": lambda i, line: "2026-11-29 17:11:21,123 - INFO - " + line,
    "LM Studio": lambda i, line: "[2026-11-29 17:11:21][DEBUG] " + line,
    "Jan": lambda i, line: "[2026-11-29][17:11:21][llamacpp][INFO] " + line,
    "LocalAI": lambda i, line: "5:11PM DBG GRPC(model.gguf-127.0.0.1:34321): stderr " + line,
    "--log-jsonl": lambda i, line: json.dumps({"type": "log", "time": i, "level": "info", "msg": line + "\n"}),
    "Jan's router": lambda i, line: "[llamacpp-router stdout] [52717] " + line,
    "Lemonade": lambda i, line: "DEBUG:    LLAMA SERVER GPU: " + line,
    "LM Studio with tags": lambda i, line: "[2026-11-29 17:11:21.123] [info] [Internal][Client=LM Studio] " + line,
    "journald with microseconds": lambda i, line: "Nov 29 17:11:21.123456 box llama-server[55781]: " + line,
    "journald since boot": lambda i, line: "[ 1234.567890] box llama-server[55781]: " + line,
    "journald in unix time": lambda i, line: "1764436281.123456 box llama-server[55781]: " + line,
    "logcat": lambda i, line: "11-29 17:11:21.123  1234  5678 I llama.cpp: " + line,
    "logcat brief": lambda i, line: "I/llama.cpp( 1234): " + line,
    "python logging by name": lambda i, line: "2026-11-29 17:11:21,123 - engine.llama - INFO - " + line,
    "python logging basic": lambda i, line: "INFO:engine.llama:" + line,
    "loguru": lambda i, line: "2026-11-29 17:11:21.123 | INFO     | engine.llama:read:108 - " + line,
    "ts": lambda i, line: "Nov 29 17:11:21 " + line,
    "ts since start": lambda i, line: "00:00:07.123456 " + line,
    "pm2": lambda i, line: "0|llama-server  | " + line,
    "pm2 with time": lambda i, line: "0|llama    | 2026-11-29T17:11:21: " + line,
    "docker service": lambda i, line: "llama_server.1.k3jq2@node1    | " + line,
    "stern": lambda i, line: "llama-server-7d9f8b6c5-x2x9k llama-server " + line,
    "RFC 3164": lambda i, line: "<30>Nov 29 17:11:21 box llama-server[55781]: " + line,
    "glog": lambda i, line: "I1129 17:11:21.123456    1234 process.cc:12] " + line,
    "colours in caret form": lambda i, line: f"^[[32m{line}^[[0m",
    "colours in octal": lambda i, line: f"\\033[32m{line}\\033[0m",
    "colours as JSON writes them": lambda i, line: f"\\u001b[32m{line}\\u001b[0m",
    "colours as rsyslog writes them": lambda i, line: f"#033[32m{line}#033[0m",
    "colours without their escape": lambda i, line: f"[32m{line}[0m",
    "colours": lambda i, line: f"\x1b[32m{line}\x1b[0m",
    "Windows line ends": lambda i, line: line + "\r",
    "PowerShell": lambda i, line: ("llama-server.exe : " if i == 0 else "") + line,
}


def test_verdicts_reach_what_was_promised():
    verdicts = [(case, judged(case)) for case in cases()]
    right = sum(v.gpu == c["expect"]["gpu"] for c, v in verdicts)
    failed = [(c, v) for c, v in verdicts if c["expect"]["failure"]]
    classes = sum(v.failure == c["expect"]["failure"] for c, v in failed)
    assert right >= 0.9 * len(verdicts)
    assert classes >= 0.8 * len(failed)


@pytest.mark.parametrize("case", cases(), ids=IDS)
def test_each_recorded_case(case):
    assert outcome(judged(case)) == (case["expect"]["gpu"], case["expect"]["failure"]), case["why"]


@pytest.mark.parametrize("case", further_cases(), ids=lambda case: case["id"])
def test_each_case_of_the_later_collections(case):
    expected, (gpu, failure) = case["expect"], outcome(judged(case))
    assert gpu in [expected["gpu"], *expected["gpu_also"]], case["why"]
    assert failure in [expected["failure"], *expected["failure_also"]], case["why"]


@pytest.mark.parametrize("name", WRAPPERS)
def test_no_wrapper_changes_a_verdict(name):
    wrap = WRAPPERS[name]
    changed = {
        case["id"]: outcome(judged(case, [wrap(i, line) for i, line in enumerate(case["lines"])]))
        for case in cases()
        if outcome(judged(case, [wrap(i, line) for i, line in enumerate(case["lines"])])) != outcome(judged(case))
    }
    assert changed == {}


@pytest.mark.parametrize("number", ["001", "012", "043", "075", "225", "260", "274", "292", "302"])
def test_verdicts_as_recorded(number, snapshot):
    case = next(c for c in cases() if c["id"] == number)
    verdict = judged(case).as_json()
    del verdict["rule"]["line"]  # moves with every edit of the file
    assert verdict == snapshot


@pytest.mark.parametrize("case", cases(), ids=IDS)
def test_the_rule_named_stands_where_it_is_said_to_stand(case):
    verdict = judged(case)
    for rule in (verdict.rule, verdict.gpu_rule):
        line = (policies_dir().parent / rule.file).read_text().splitlines()[rule.line - 1]
        assert line.partition("  # ")[0].strip() == f"- id: {rule.id}"


def test_every_failure_comes_with_advice():
    for case in cases():
        verdict = judged(case)
        assert verdict.failure is None or verdict.advice, case["id"]


# ---- as a stream ----------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(case=st.sampled_from(cases()), cuts=st.lists(st.integers(0, 4000), max_size=12))
def test_pieces_make_no_difference(case, cuts):
    log = ("\n".join(case["lines"]) + "\n").encode()
    watch = Watch(shipped())
    at = 0
    for cut in sorted(cuts):
        watch.feed(log[at:cut])
        watch.verdict()  # asking changes nothing
        at = max(at, cut)
    watch.feed(log[at:])
    assert watch.verdict(case.get("exit_code")) == judged(case)


def test_a_verdict_while_the_line_is_still_being_written():
    watch = Watch(shipped())
    watch.feed(b"ggml_cuda_init: failed to initialize CUDA: no CUDA-capable dev")
    assert watch.verdict().detail == "no CUDA-capable dev"
    watch.feed(b"ice is detected\n")
    assert watch.verdict().detail == "no CUDA-capable device is detected"


def test_what_was_fatal_is_not_once_the_model_is_loaded():
    lines = ["llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache"]
    assert classify(lines, shipped()).failure == "host-alloc-failed"
    assert classify([*lines, "srv  llama_server: model loaded"], shipped()).failure is None


def test_a_retry_takes_a_refusal_back():
    lines = ["ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 14822711296"]
    assert classify(lines, shipped()).failure == "cuda-oom"
    lines.append("llama_context: compute buffer allocation failed, retrying without pipeline parallelism")
    assert classify(lines, shipped()).failure is None


def test_after_readiness_a_failure_counts_again():
    lines = ["srv  llama_server: model loaded", "CUDA error: out of memory"]
    assert classify(lines, shipped()).failure == "cuda-oom"


def test_the_build_decides_whose_memory_it_was():
    lines = [
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 1.00 MiB on device 0: cudaMalloc failed: out of memory"
    ]
    assert classify(lines, shipped()).failure == "cuda-oom"
    assert classify(lines, shipped(), backend="rocm").failure == "rocm-oom"


def test_another_backends_refusal_says_nothing_about_this_build():
    lines = ["ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected"]
    assert classify(lines, shipped(), backend="cuda").gpu == "init-failed"
    assert classify(lines, shipped(), backend="vulkan").gpu == "unknown"


def test_rules_of_older_engines_do_not_apply_to_newer_ones():
    lines = ["llm_load_tensors: VRAM used: 4807.05 MiB"]
    assert classify(lines, shipped()).gpu == "in-use"
    assert classify(lines, shipped(), engine_version="b1200").gpu == "in-use"
    assert classify(lines, shipped(), engine_version="0.6.0").gpu == "unknown"


@pytest.mark.parametrize("status", [-4, 132, 3221225501, -1073741795])
def test_an_exit_status_alone_is_evidence(status):
    verdict = classify([], shipped(), exit_status=status)
    assert (verdict.failure, verdict.line) == ("illegal-instruction", None)


def test_what_the_engine_said_weighs_more_than_how_it_ended():
    lines = ["error: invalid argument: --no-mmap"]
    assert classify(lines, shipped(), exit_status=-9).failure == "unknown-argument"


# ---- hostile ------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=5000))
def test_garbage_is_no_evidence_and_no_error(data):
    watch = Watch(shipped())
    watch.feed(data)
    assert watch.verdict().gpu == "unknown"


def test_a_line_that_never_ends_takes_no_memory():
    watch = Watch(shipped())
    watch.feed(b"ggml_vulkan: No devices found.\n")
    for _ in range(200):
        watch.feed(b"x" * 50_000)
        assert len(watch._carry) < 3 * BLOCK
    watch.feed(b"\nCUDA error: out of memory\n")
    assert outcome(watch.verdict()) == ("no-devices", "cuda-oom")


def test_the_beginning_of_an_endless_line_counts():
    watch = Watch(shipped())
    watch.feed(b"error: invalid argument: " + b"x" * (4 * BLOCK))
    assert watch.verdict().failure == "unknown-argument"


def test_an_unfinished_quotation_is_held_only_so_long():
    watch = Watch(shipped())
    watch.feed(b"srv          init: init: chat template, example_format: '<|im_start|>system\n")
    for _ in range(40):
        watch.feed(b"never closed\n" * 1000)
        assert len(watch._carry) < 3 * BLOCK
    watch.feed(b"CUDA error: out of memory\n")
    assert watch.verdict().failure == "cuda-oom"


def test_terminal_codes_do_not_reach_a_verdict():
    lines = ["ggml_cuda_init: failed to initialize CUDA: \x1b]0;owned\x07\x1b[2J gone"]
    verdict = classify(lines, shipped())
    assert verdict.gpu == "init-failed"
    assert "\x1b" not in verdict.detail + verdict.line
    assert "\x07" not in verdict.detail + verdict.line


def test_the_cases_are_the_recorded_ones():
    assert (len(cases()), len(further_cases())) == (148, 32 + 149)
    assert Path(__file__).parent.parent.joinpath("data/logs/README.md").is_file()
