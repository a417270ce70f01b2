"""Whatever happens to a policy file, people are told in words: bytes lost, lines swapped, keys and words exchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_set import CALLABLES, FAMILY, TABLES, WORLD, languages, policy_text

from gezel_rules.decisions.decide import decide
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import Fact
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import LANGUAGES
from gezel_rules.policy.files import policy_paths
from gezel_rules.policy.seal import compile_policies

SHIPPED = [path for path in policy_paths(policies_dir()) if path.name != "architectures.yaml"]
TEXTS = {path.relative_to(policies_dir()).with_suffix("").as_posix(): path.read_text() for path in SHIPPED}
WHOLE = policy_text(
    "kv/kv",
    """
kv.type:
  rules:
    - {id: operator, when: settings.kv_type is not none, then: settings.kv_type, because: "chosen {settings.kv_type}"}
    - {id: room, when: gpu.free > 1000000 and model.layers < 100, then: "'f16'"}
    - {id: default, then: "'q8_0'"}
enough: {hit: search, over: kv_types, rules: [{id: narrow, when: candidate.bytes < 40, then: accept}]}
flag.kv: {flag: --kv, when: not model.moe, then: kv.type}
half: {then: model.layers // 2 if model.layers > 3 else min(model.layers, 7)}
""",
    TABLES,
)
PIECES = (
    "", "none", "true", "'f16'", "kv.type", "candidate", "0", "-1", "1e400", "(", ")", "[", "]", "{", "}", ":",
    "- ", "\n", "  ", "#", "&a ", "*a", "!!x ", "|", ">", "is", "in", "not", "and", "then: ", "when: ", "é", "\0",
    "hit: unique", "\ufeff", "settings.window", "model", "* 10", "// 0", "/ (model.layers - 32)", "known", "enough",
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 3, 8, 40])))
        text = text[:start] + draw(st.sampled_from(PIECES)) + text[end:]
    return text


@given(text=damaged(WHOLE))
@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_set_is_refused_or_judged(text: str, tmp_path: Path) -> None:
    path = tmp_path / "policies" / "kv" / "kv.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    facts: dict[str, Fact] = {**WORLD, "gpu.free": Fact(2_000_000, "test")}
    try:
        decide(compile_policies(path.parent.parent, FAMILY, languages()), facts, CALLABLES)
    except BadInput as error:
        for problem in error.problems:
            assert problem.span is not None
            assert "\n" not in str(problem)
            assert problem.with_caret()


@pytest.mark.parametrize("name", TEXTS)
@given(data=st.data())
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_shipped_policy_is_refused_or_loads(name: str, data: st.DataObject, tmp_path: Path) -> None:
    base = tmp_path / "policies"
    for other, text in TEXTS.items():
        path = base / f"{other}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data.draw(damaged(text)) if other == name else text, encoding="utf-8")
    try:
        compile_policies(base, "llama-cpp", LANGUAGES)
    except BadInput as error:
        assert all(problem.with_caret() for problem in error.problems)
