"""A set that the check passes never fails in use: shipped policies with one thing changed are checked, and what passes
is planned by, explained, priced, watched by and supervised by."""

from __future__ import annotations

import gc
import random
from pathlib import Path

import pytest
from fuzz_meter import Meter, rounds
from gguf_files import write_gguf
from policy_mutants import Mutant, mutants, text_of
from policy_uses import Uses, checked

from gezel_rules.documents.source import Text, load_yaml, parse_yaml
from gezel_rules.errors import BadInput
from gezel_rules.places import catalog_dir, policies_dir
from gezel_rules.planner.policies import LANGUAGES
from gezel_rules.policy.files import all_paths
from gezel_rules.policy.model import PolicySet
from gezel_rules.policy.sources import Source, Sources, read_sources

SHARE, FULL = 200, 20_000
SEED = 9
ENTRIES = (
    "qwen3-8b", "mistral-small-24b", "qwen3-30b-a3b", "gemma-3-4b", "gemma-4-e4b", "falcon-h1-7b", "mamba-2.8b",
    "qwen3.5-9b-mtp", "deepseek-v2-lite", "lfm2-1.2b", "gpt-oss-20b",
)  # fmt: skip
HOSTS = ("rtx-4090", "rtx-4090-pair", "cpu-32g", "mac-96g", "rx-7900-xtx-rocm", "rx-7900-xtx-vulkan")


@pytest.fixture
def uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Uses:
    models = []
    for name in ("qwen3-8b", "gemma-3-4b", "mamba-2.8b", "deepseek-v2-lite"):
        models.append(tmp_path / f"{name}.gguf")
        write_gguf(models[-1], load_yaml(catalog_dir() / "models" / f"{name}.yaml").plain()["header"])
    log = tmp_path / "engine.log"
    log.write_text(LOG)
    return Uses(ENTRIES, HOSTS, tuple(models), (log,), monkeypatch)


LOG = """ggml_cuda_init: found 1 CUDA devices:
  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes
llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 4090) - 23000 MiB free
ggml_backend_cuda_buffer_type_alloc_buffer: allocating 29000.00 MiB on device 0: cudaMalloc failed: out of memory
llama_model_load: error loading model: unable to allocate CUDA0 buffer
"""


def mutated(base: Sources, mutant: Mutant) -> Sources:
    """The set with one file as the mutant has it. Raises BadInput."""
    at = next(i for i, source in enumerate(base.files) if source.path == mutant.file)
    root = parse_yaml(Text(f"policies/{mutant.file}", text_of(mutant)))
    engine = root.value.get("engine") if isinstance(root.value, dict) else None
    said = "" if engine is None or not isinstance(engine.value, str) else engine.value
    if said not in ("", *LANGUAGES):
        raise BadInput("another family's")
    return base._replace(files=(*base.files[:at], Source(mutant.file, root, said), *base.files[at + 1 :]))


def test_16_what_the_check_passes_never_fails_in_use(uses: Uses) -> None:
    directory, chance, meter = policies_dir(), random.Random(SEED), Meter()
    base = read_sources(all_paths(directory), directory, LANGUAGES)
    plain = {source.path: source.root.plain() for source in base.files}
    gc.collect()
    gc.freeze()  # what all cases share is not looked through again in each of them
    try:
        for number, mutant in zip(range(rounds(SHARE, FULL)), mutants(plain, chance), strict=False):
            _check_and_use(f"{number}: {mutant.file}: {mutant.says}", base, mutant, uses, chance, meter)
    finally:
        gc.unfreeze()
    meter.require_none()
    assert meter.counts["passed"] > meter.counts["policies"] // 10


def _check_and_use(what: str, base: Sources, mutant: Mutant, uses: Uses, chance: random.Random, meter: Meter) -> None:
    logs = "logs/" in mutant.file or "backends" in mutant.file
    meter.counts["policies"] += 1
    found = meter.run(what, lambda: _passed(base, mutant, logs))
    if found is None:
        return
    meter.counts["passed"] += 1
    for use, run in uses.draw(found, chance, logs):
        meter.counts["uses"] += 1
        meter.run(f"{what}: {use}", run)


def _passed(base: Sources, mutant: Mutant, logs: bool) -> PolicySet | None:
    try:
        return checked(mutated(base, mutant), policies_dir(), logs)
    except BadInput as error:
        assert str(error)
        return None
