"""Whatever a header says, it is read, priced and planned on, or refused in a line, in bounded time and memory."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from fuzz_meter import Meter, rounds
from header_mutants import Mutant, mutants

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.documents.source import load_yaml
from gezel_rules.engines.llama_cpp.memory.estimate import estimate
from gezel_rules.engines.llama_cpp.memory.flags import Launch
from gezel_rules.engines.llama_cpp.memory.tables import memory_tables
from gezel_rules.engines.llama_cpp.model_file import read_model
from gezel_rules.errors import BadInput
from gezel_rules.places import catalog_dir
from gezel_rules.planner.report import plan_json
from gezel_rules.session import Conditions, Session
from gezel_rules.session.session import session_for

SHARE, FULL = 80, 20_000
SEED = 10
MODELS = (
    "qwen3-8b", "mistral-small-24b", "qwen3-30b-a3b", "gemma-3-4b", "gemma-4-e4b", "falcon-h1-7b", "mamba-2.8b",
    "qwen3.5-9b-mtp", "deepseek-v2-lite", "deepseek-v3", "lfm2-1.2b", "gpt-oss-20b", "llama-4-scout",
    "qwen3-next-80b-a3b",
)  # fmt: skip
HOSTS = ("rtx-4090", "rtx-4090-pair", "cpu-32g", "mac-96g", "rx-7900-xtx-rocm", "rx-7900-xtx-vulkan")
LAUNCHES = (
    Launch(),
    Launch(ctx=1 << 20, parallel=64, devices=1),
    Launch(devices=2, tensor_split=(1.0, 3.0), type_k="q8_0", type_v="q4_0", flash_attn="on"),
    Launch(ctx=1, ubatch=1, devices=1, n_gpu_layers=3, n_cpu_moe=2),
    Launch(kv_unified=True, swa_full=True, flash_attn="off", cpu_moe=True, devices=4),
    Launch(spec=("draft-mtp",), n_max=4, devices=1, no_kv_offload=True),
)
SETTINGS = ((), (), (), ("window=8k",), ("slots=8",), ("kv_type=q8_0",), ("spec_type=none",))


def test_10_no_header_takes_long_or_fails_inside(tmp_path: Path) -> None:
    headers: dict[str, dict[str, Any]] = {
        name: load_yaml(catalog_dir() / "models" / f"{name}.yaml").plain()["header"] for name in MODELS
    }
    session, chance, meter = session_for(None, None, tmp_path / "store"), random.Random(SEED), Meter()
    session.plan(MODELS[0], Conditions(host=HOSTS[0]))  # policies are read for once
    for number, mutant in zip(range(rounds(SHARE, FULL)), mutants(headers, chance), strict=False):
        _use(f"{number}: {mutant.says}", mutant, tmp_path / "mutant.gguf", session, chance, meter)
    meter.require_none()
    assert meter.counts["planned"] > meter.counts["headers"] // 5


def _use(what: str, mutant: Mutant, path: Path, session: Session, chance: random.Random, meter: Meter) -> None:
    meter.counts["headers"] += 1
    mutant.write(path)
    launch, host, settings = chance.choice(LAUNCHES), chance.choice(HOSTS), chance.choice(SETTINGS)
    meter.counts["priced"] += bool(meter.run(f"{what}: {launch}", lambda: _priced(str(path), session, launch)))
    planned = meter.run(f"{what}: {host} {settings}", lambda: _planned(str(path), session, Conditions(settings, host)))
    meter.counts["planned"] += bool(planned)


def _priced(path: str, session: Session, launch: Launch) -> bool:
    try:
        header = read_model(path, None, check_size=False)
        estimate(header, launch, memory_tables(session.policies_for(session.family(DEFAULT_FAMILY)))).to_json()
    except BadInput as error:
        return _said(error)
    return True


def _planned(path: str, session: Session, conditions: Conditions) -> bool:
    try:
        plan_json(session.plan(path, conditions))
    except BadInput as error:
        return _said(error)
    return True


def _said(error: BadInput) -> bool:
    """False, once the error is known to be something a person can read."""
    assert str(error) and "Traceback" not in str(error)
    return False
