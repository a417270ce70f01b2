"""The watch beside a plain ``re`` loop, 0.1 % of the lines counting: ``pytest tests/bench --benchmark-enable``.

The loop is what one would write: every line against every expression of the same policy. Wanted: at least 4 times its
lines a second for 30 patterns. Figures are ratios of medians from one run; nothing asserts on them.
"""

from __future__ import annotations

import random
import re

import pytest

from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.logs.sealed import log_policy
from gezel_rules.logs.watch import BLOCK, Watch
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies

LINES = 60_000
PLAIN = (
    "0.12.{a:03}.{b:03} I slot update_slots: id  {c} | task {a} | prompt processing progress, n_tokens = {b}",
    "0.12.{a:03}.{b:03} I srv  log_server_r: done request: POST /v1/chat/completions 127.0.0.1 200",
    "0.12.{a:03}.{b:03} D que    start_loop: processing task, id = {a}",
    "0.12.{a:03}.{b:03} I llama_model_loader: - kv  {c:2}: tokenizer.ggml.token_type arr[i32,262144] = [1, {a}, {b}]",
    "0.12.{a:03}.{b:03} I print_info: n_embd_head_k         = {a}",
)
HIT = "0.12.{a:03}.{b:03} I load_tensors:        CUDA0 model buffer size =  {a}.{b:02} MiB"


@pytest.fixture(scope="module")
def log():
    """A long quiet log with one line in a thousand that counts."""
    dice = random.Random(7)
    lines = []
    for i in range(LINES):
        form = HIT if i % 1000 == 500 else dice.choice(PLAIN)
        lines.append(form.format(a=dice.randrange(1000), b=dice.randrange(1000), c=dice.randrange(8)))
    return "\n".join(lines).encode() + b"\n"


@pytest.fixture(scope="module")
def policy():
    return log_policy(read_policies(policies_dir(), FAMILY, None))


@pytest.fixture(scope="module")
def thirty(policy):
    """The same policy with 30 of its patterns, those that speak of the GPU first."""
    gpu = [name for name, pattern in policy.patterns.items() if pattern.gpu]
    names = list(dict.fromkeys(["gpu-buffer", *gpu, *policy.patterns]))[:30]
    return policy._replace(patterns={n: policy.patterns[n] for n in names}, rules=(), failures=())


@pytest.fixture(scope="module")
def figures(compared):
    """Name → median seconds; rows of the table beside the loop over as many patterns."""
    medians: dict[str, float] = {}
    yield medians
    for name, seconds in medians.items():
        count = name.split()[1]
        loop = f"naive {count}"
        if loop in medians and name != loop:
            compared(f"log watch, {count} patterns", seconds, f"loop of re, {count} patterns", medians[loop], 0.25)


def watched(policy, log):
    watch = Watch(policy)
    for at in range(0, len(log), BLOCK):
        watch.feed(log[at : at + BLOCK])
    return watch.verdict()


def naive(policy, log):
    counts = dict.fromkeys(policy.patterns, 0)
    searches = [(name, re.compile(pattern.match.text).search) for name, pattern in policy.patterns.items()]
    for line in log.decode().split("\n"):
        words = line[15:]  # past the stamp: the loop is spared the unwrapping
        for name, search in searches:
            if search(words):
                counts[name] += 1
    return counts


def run(benchmark, figures, name, function, policy, log, rounds):
    result = benchmark.pedantic(function, (policy, log), rounds=rounds)
    if benchmark.stats:
        figures[name] = benchmark.stats.stats.median
    return result


@pytest.mark.benchmark(group="log")
def test_naive_loop_thirty(benchmark, figures, thirty, log):
    counts = run(benchmark, figures, "naive 30", naive, thirty, log, 3)
    assert counts["gpu-buffer"] == LINES // 1000


@pytest.mark.benchmark(group="log")
def test_watch_thirty(benchmark, figures, thirty, log):
    run(benchmark, figures, "watch 30", watched, thirty, log, 9)


@pytest.mark.benchmark(group="log")
def test_naive_loop_all(benchmark, figures, policy, log):
    if not benchmark.enabled:
        pytest.skip("benchmarks are off, and the loop is slow")
    run(benchmark, figures, "naive all", naive, policy, log, 2)


@pytest.mark.benchmark(group="log")
def test_watch_all(benchmark, figures, policy, log):
    verdict = run(benchmark, figures, "watch all", watched, policy, log, 9)
    assert verdict.gpu == "in-use"
