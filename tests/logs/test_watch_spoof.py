"""What others write into a log (templates, names, prompts, paths) must not count, even word for word."""

from __future__ import annotations

import re

import pytest
from log_cases import cases, judged, outcome, shipped

from gezel_rules.logs.watch import classify

FORGED = [
    "llama_prepare_model_devices: using device CUDA0 (NVIDIA H200) (0000:01:00.0) - 140000 MiB free",
    "load_tensors: offloaded 33/33 layers to GPU",
    "load_tensors:        CUDA0 model buffer size =  4000.00 MiB",
    "ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected",
    "CUDA error: out of memory",
    "ggml_vulkan: No devices found.",
    "error: invalid argument: --x",
    "terminate called after throwing an instance of 'x'",
    "warning: no usable GPU found, --gpu-layers option will be ignored",
]
STAMPED = re.compile(r"\d+\.\d\d\.\d{3}\.\d{3} ")


def template(stamp: str, forged: list[str]) -> list[str]:
    head = stamp + "srv          init: init: chat template, example_format: '<|im_start|>system"
    return [head, *forged, "<|im_start|>assistant", "'", stamp + "srv          init: thinking = 0"]


def prompt(stamp: str, forged: list[str]) -> list[str]:
    return [stamp + "slot launch_slot_: id  0 | task 0 | prompt: 'hello", *forged, "'", stamp + "srv  update: done"]


def name(stamp: str, forged: list[str]) -> list[str]:
    return [stamp + "print_info: general.name          = x", *forged, stamp + "print_info: vocab type            = BPE"]


def metadata(stamp: str, forged: list[str]) -> list[str]:
    return [stamp + "llama_model_loader: - kv  20: tokenizer.chat_template str = " + "\\n".join(forged)]


def path(stamp: str, forged: list[str]) -> list[str]:
    return [stamp + f"srv    load_model: loading model '/models/{line}.gguf'" for line in forged]


def alias(stamp: str, forged: list[str]) -> list[str]:
    return [stamp + f"srv    load_model: model alias = {line}" for line in forged]


@pytest.mark.parametrize("forge", [template, prompt, name, metadata, path, alias], ids=lambda f: f.__name__)
def test_forged_lines_change_no_verdict(forge):
    changed = {}
    for case in cases():
        stamp = "0.99.000.000 I " if any(STAMPED.match(line) for line in case["lines"]) else ""
        verdict = judged(case, [*case["lines"], *forge(stamp, FORGED)])
        if outcome(verdict) != outcome(judged(case)):
            changed[case["id"]] = outcome(verdict)
    assert changed == {}


def test_a_template_that_forges_the_stamp_too():
    forged = ["0.00.031.900 I " + line for line in FORGED]
    for stamp in ("", "0.99.000.000 I "):
        assert outcome(classify(template(stamp, forged), shipped())) == ("unknown", None)


def test_a_forged_stamp_does_not_silence_an_engine_that_writes_none():
    forged = template("", ["0.00.031.900 I x: y"])
    verdict = classify([*forged, "ggml_cuda_init: failed to initialize CUDA: unknown error"], shipped())
    assert verdict.gpu == "init-failed"


def test_once_the_engine_stamps_its_lines_a_bare_line_is_somebody_elses():
    device = "llama_prepare_model_devices: using device CUDA0 (NVIDIA H200) (unknown id) - 140000 MiB free"
    stamped = "0.00.001.000 I srv  llama_server: initializing ..."
    assert classify([device], shipped()).gpu == "in-use"
    assert classify([stamped, device], shipped()).gpu == "unknown"
    assert classify([stamped, "0.00.002.000 I " + device], shipped()).gpu == "in-use"
    assert classify([device, stamped], shipped()).gpu == "in-use"  # printed before logging was set up


def test_what_is_printed_past_the_log_counts_bare():
    stamped = "0.00.001.000 I srv  llama_server: initializing ..."
    assert classify([stamped, "ggml_vulkan: Device memory allocation of size 118497280 failed."], shipped()).failure


def test_a_quotation_that_never_ends_hides_nothing():
    lines = ["srv          init: init: chat template, example_format: '<|im_start|>system", "CUDA error: out of memory"]
    assert classify(lines, shipped()).failure == "cuda-oom"


@pytest.mark.parametrize("forge", [metadata, path, alias], ids=lambda f: f.__name__)
@pytest.mark.parametrize("before", ["0.00.031.900 I ", "a tag > ", "[x] ", "tag: "])
def test_a_line_of_the_engine_is_no_wrapper_whatever_it_quotes(forge, before):
    forged = [before + line for line in FORGED]
    for stamp in ("", "0.99.000.000 I "):
        assert outcome(classify(forge(stamp, forged), shipped())) == ("unknown", None)


def test_nothing_is_taken_off_after_the_engines_own_stamp():
    line = "0.00.001.000 I   Device 0: evil > 0.00.002.000 I " + FORGED[0]
    assert outcome(classify([line], shipped())) == ("unknown", None)
