"""A decision of 20 rules, its why recorded, beside other evaluators: ``pytest tests/bench --benchmark-enable``.

All 20 conditions are judged: only the last rule fires. simpleeval gets the same conditions parsed beforehand, over the
same facts, and only gives their values; ZEN gets them as one decision table and traces. Wanted: at most 0.5 of
simpleeval's time, 0.2 of ZEN's. simpleeval with its names flat (no attributes) is shown too; no ratio is set for it.
"""

from __future__ import annotations

import json

import pytest
from simpleeval import EvalWithCompoundTypes

from gezel_rules.decisions.decide import decide
from gezel_rules.facts.fact import Fact
from gezel_rules.lang.types import FLAG, INTEGER, TEXT
from gezel_rules.policy.language import Language
from gezel_rules.policy.seal import load_policies

WHAT = "decision, 20 rules, why recorded"
TURNS = 20  # decisions per timed round: one alone is short for a clock
ROUNDS = 100
OPTIONAL = TEXT._replace(optional=True)

FACTS = {
    "engine.backend": ("cuda", TEXT), "engine.kind": ("llama-server", TEXT), "model.arch": ("gemma3", TEXT),
    "model.layers": (48, INTEGER), "model.mtp_layers": (0, INTEGER), "model.experts": (0, INTEGER),
    "model.window": (131_072, INTEGER), "gpu.count": (1, INTEGER), "gpu.total": (24 << 30, INTEGER),
    "gpu.free": (20 << 30, INTEGER), "host.cpus": (16, INTEGER), "host.unified": (False, FLAG),
    "entry.spec_type": (None, OPTIONAL), "entry.chat": (True, FLAG), "settings.spec_type": (None, OPTIONAL),
    "settings.slots": (2, INTEGER),
}  # fmt: skip

CONDITIONS = (
    "settings.spec_type is not None",
    "entry.spec_type == 'draft-mtp' and model.mtp_layers > 0",
    "model.mtp_layers > 0",
    "engine.backend in ['vulkan', 'rocm', 'metal'] and gpu.count > 0",
    "engine.backend == 'cpu' or gpu.count == 0",
    "model.arch in ['llama4', 'deepseek2', 'qwen3moe'] and model.experts > 0",
    "model.experts > 0 and gpu.total < 17179869184",
    "host.unified and gpu.free < 34359738368",
    "gpu.free < 8589934592",
    "gpu.count > 1 and model.layers >= 64",
    "model.window > 262144",
    "settings.slots > 4 or host.cpus < 4",
    "not entry.chat",
    "engine.kind == 'embedded'",
    "model.layers < 24 and model.window <= 8192",
    "entry.spec_type is not None and settings.slots > 1",
    "gpu.free * 2 < gpu.total",
    "host.cpus >= 64",
    "model.arch == 'mamba' or model.arch == 'rwkv7'",
    "engine.backend == 'cuda' and gpu.count == 1",
)
LAST = len(CONDITIONS) - 1


def often(function):
    """Several times over, the last result kept."""

    def turns():
        for _ in range(TURNS):
            result = function()
        return result

    return turns


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    rules = "".join(f"      - {{id: r{i}, when: {json.dumps(c)}, then: {i}}}\n" for i, c in enumerate(CONDITIONS))
    head = "policy: a/b\nversion: 1.0.0\nsummary: Twenty rules.\ndecisions:\n  d:\n    says: Which.\n    rules:\n"
    folder = tmp_path_factory.mktemp("policies")
    (folder / "a").mkdir()
    (folder / "a" / "b.yaml").write_text(head + rules, encoding="utf-8")
    return load_policies(
        folder, "bench", {"bench": lambda: Language({name: type_ for name, (_, type_) in FACTS.items()}, {})}
    )


@pytest.fixture
def ours(policies):
    facts = {name: Fact(value, "bench") for name, (value, _) in FACTS.items()}
    return often(lambda: decide(policies, facts, {}))


def nested():
    names: dict[str, dict] = {}
    for name, (value, _) in FACTS.items():
        area, word = name.split(".")
        names.setdefault(area, {})[word] = value
    return names


def with_simpleeval(conditions, names):
    evaluator = EvalWithCompoundTypes(names=names)
    parsed = [(text, evaluator.parse(text)) for text in conditions]

    def first():
        for index, (text, tree) in enumerate(parsed):
            if evaluator.eval(text, previously_parsed=tree):
                return index
        return None

    return first


def require_the_last(trace):
    """The decision fell at the last rule, and the record tells of all of them."""
    judgement = trace.judgements["d"]
    assert trace.value("d") == LAST
    assert len(judgement.judged) == len(CONDITIONS)
    assert all(judged.record for judged in judgement.judged if judged.rule.when != "entry.chat")


@pytest.mark.benchmark(group="decide")
def test_beside_simpleeval(beside, ours):
    theirs = with_simpleeval(CONDITIONS, nested())
    assert theirs() == LAST
    trace = beside(
        "decision, 20 rules, why recorded", ours, "simpleeval, parsed", often(theirs), wanted=0.5, rounds=ROUNDS
    )
    require_the_last(trace)


@pytest.mark.benchmark(group="decide")
def test_beside_simpleeval_with_flat_names(beside, ours):
    flat = {name.replace(".", "_"): value for name, (value, _) in FACTS.items()}
    conditions = []
    for text in CONDITIONS:
        for name in FACTS:
            text = text.replace(name, name.replace(".", "_"))
        conditions.append(text)
    theirs = with_simpleeval(conditions, flat)
    assert theirs() == LAST
    beside(WHAT, ours, "simpleeval, parsed, flat names", often(theirs), rounds=ROUNDS)


@pytest.mark.benchmark(group="decide")
def test_beside_zen(beside, ours):
    zen = pytest.importorskip("zen", reason="to compare with ZEN: pip install zen-engine")
    decision = zen.ZenEngine().create_decision(json.dumps(zen_table()))
    theirs = lambda: decision.evaluate(nested(), {"trace": True})  # noqa: E731
    assert theirs()["result"] == {"value": LAST}
    assert theirs()["trace"]
    beside(WHAT, ours, "ZEN with trace", often(theirs), wanted=0.2, rounds=ROUNDS)


def zen_table():
    """The same rules as a decision table between an input and an output node."""
    say = lambda text: text.replace(" is not None", " != null").replace("'", '"')  # noqa: E731
    rules = [{"_id": f"r{i}", "c": say(text), "o": str(i)} for i, text in enumerate(CONDITIONS)]
    content = {
        "hitPolicy": "first", "rules": rules,
        "inputs": [{"id": "c", "name": "condition"}], "outputs": [{"id": "o", "name": "value", "field": "value"}],
    }  # fmt: skip
    kinds = {"in": "inputNode", "table": "decisionTableNode", "out": "outputNode"}
    nodes = [{"id": name, "name": name, "type": kind, "position": {"x": 0, "y": 0}} for name, kind in kinds.items()]
    nodes[1]["content"] = content
    edges = [
        {"id": f"{a}-{b}", "sourceId": a, "targetId": b, "type": "edge"} for a, b in (("in", "table"), ("table", "out"))
    ]
    return {"nodes": nodes, "edges": edges}
