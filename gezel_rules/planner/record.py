"""A plan as the journal keeps it, and a kept one decided again: on the facts of its day, by whatever policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gezel_rules.decisions.decide import Judgement, decide
from gezel_rules.decisions.trace import Explainer
from gezel_rules.engines import registry
from gezel_rules.engines.subject import Companion, Subject
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.facts.recorded import FORMAT, fact_json, fact_of
from gezel_rules.facts.secrets import SHORTEST, blotted, hidden, secret_arguments
from gezel_rules.facts.vocabulary import unknown_fact
from gezel_rules.planner.argv import flags
from gezel_rules.planner.gather import SETTING
from gezel_rules.planner.plan import Plan
from gezel_rules.planner.report import explainer
from gezel_rules.planner.summary import summary

if TYPE_CHECKING:
    from gezel_rules.engines.protocol import Family, ModelFile
    from gezel_rules.planner.plan import Request
    from gezel_rules.policy.model import PolicySet

LONGEST_HEADER = 1 << 18
"""Characters of a model's description that a record keeps; a longer one is read from the model's files again."""
ARGUMENTS = "settings.extra_args"


def plan_record(plan: Plan) -> dict[str, Any]:
    """What the journal keeps of a plan, by ``facts.recorded.RECORD``. What the operator's own arguments hold of secrets
    is not in it."""
    policies, explain = plan.trace.policies, explainer(plan)
    record = {
        "format": FORMAT,
        "model": plan.subject.id,
        "family": plan.subject.family.name,
        "facts": {name: fact_json(fact) for name, fact in plan.trace.facts.items()},
        "held": dict(plan.request.held),
        "share": plan.fit.share,
        "subject": _subject_json(plan.subject),
        "policy": {
            "digest": policies.digest,
            "files": [{"policy": file.policy, "version": file.version} for file in policies.files],
        },
        "decisions": {name: _decision_json(explain, judgement) for name, judgement in plan.trace.judgements.items()},
        "flags": [{"tokens": hidden(flag.tokens), "decision": flag.decision} for flag in plan.flags],
        "summary": summary(plan, explain),
        "memory": _memory(plan),
    }
    secrets = [secret for secret in secret_arguments(plan.argv) if len(secret) >= SHORTEST]
    found: dict[str, Any] = blotted(_without_secret_arguments(record), secrets)
    return found


def _without_secret_arguments(record: dict[str, Any]) -> dict[str, Any]:
    own = record["facts"].get(ARGUMENTS)
    if own and own["value"]:
        own["value"] = hidden(own["value"])
    for name, decision in record["decisions"].items():
        if name.startswith("flag.") and isinstance(decision["value"], list):
            decision["value"] = hidden(list(map(str, decision["value"])))
    return record


def _decision_json(explain: Explainer, judgement: Judgement) -> dict[str, Any]:
    """The value and the rule behind it; what it beat is worked out again when somebody asks."""
    winner, unknown = judgement.winner, judgement.value is UNKNOWN
    line = winner.rule.line if winner else judgement.decision.line
    behind = winner.rule.then if winner and winner.rule.then in explain.trace.judgements else None
    return {
        "value": None if unknown else judgement.value,
        **({"unknown": True} if unknown else {}),
        "rule": winner.rule.id if winner else None,
        "level": explain.level(judgement),
        "because": explain.because(judgement),
        "source": {"file": judgement.decision.file, "line": line},
        **({"passes_on": behind} if behind else {}),
    }


def _memory(plan: Plan) -> dict[str, Any]:
    """The family's own account of the memory, and what the launch takes of each pool, by what it is for."""
    memory = plan.memory
    taken = [
        {"pool": pool.name, "bytes": pool.used, "usable_bytes": pool.usable, "parts": dict(pool.parts)}
        for pool in memory.pools
    ]
    return {**memory.account, "taken": taken}


def _subject_json(subject: Subject) -> dict[str, Any]:
    draft = subject.draft
    kept = None
    if draft is not None:
        kept = {"name": draft.name, "path": draft.path, "here": draft.here, "resident_bytes": draft.resident_bytes,
                "source": draft.source, "measured": draft.measured, **_header(subject.family, draft.model)}  # fmt: skip
    return {
        "source": subject.source, "path": subject.model_path, **_header(subject.family, subject.model),
        **({"draft": kept} if kept else {}),
    }  # fmt: skip


def _header(family: Family, model: ModelFile | None) -> dict[str, str]:
    text = family.describe(model, "a launch") if model is not None else ""
    return {"header": text} if text and len(text) <= LONGEST_HEADER else {}


def plan_again(record: Mapping[str, Any], policies: PolicySet, request: Request) -> Plan:
    """The launch of a record decided again, by other policies; nothing is asked of the machine it ran on. ``request``
    says where files are that the record has no description of. Raises BadInput when such a file cannot be read, or a
    rule cannot be judged on these facts."""
    family = registry.family(record["family"])
    facts = recorded_facts(record, family)
    subject = _subject_of(record, family, request)
    fit = family.fit(subject, policies, facts, record.get("held", {}), request.cache)
    share = record.get("share", 1)
    fit = fit.lessened(share) if share < 1 else fit
    trace = decide(policies, facts | fit.facts(), fit.functions())
    return Plan(request, subject, None, trace, flags(trace), fit)


def recorded_facts(record: Mapping[str, Any], family: Family) -> dict[str, Fact]:
    """The facts of a record; those that its day did not know yet are unknown, settings among them not set."""
    words = {word.name: word for word in family.vocabulary()}
    facts = {name: fact_of(said) for name, said in record["facts"].items()}
    for name, word in words.items():
        if name not in facts:
            facts[name] = Fact(None, "not recorded") if name.startswith(SETTING) else unknown_fact(word)
    return facts


def _subject_of(record: Mapping[str, Any], family: Family, request: Request) -> Subject:
    said = record.get("subject") or {}
    path = said.get("path") or record["facts"].get("launch.model_path", {}).get("value") or ""
    model = _model_of(said, family, str(path), request)
    draft = said.get("draft")
    companion = _companion(draft, family, request) if draft else None
    return Subject(
        record["model"], family, None, model, said.get("source", "a record"), str(path), True, companion, None
    )


def _model_of(said: Mapping[str, Any], family: Family, path: str, request: Request) -> ModelFile:
    if "header" in said:
        return family.described(said["header"], "the record's header")
    if not path:
        raise BadInput("the record does not say which file the model was")
    return family.read_model(path, request.cache)


def _companion(said: Mapping[str, Any], family: Family, request: Request) -> Companion:
    model = family.described(said["header"], "the record's drafter") if "header" in said else None
    return Companion(
        said["name"], said["path"], said["here"], said["resident_bytes"], said["source"], model, said["measured"]
    )


def upgraded(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of any format in today's: those of format 1 had no number, one digest for the policies, values alone
    for decisions, and the model's name in the launch."""
    if "format" in record or not isinstance(record.get("facts"), Mapping):
        return dict(record)
    launch = _mapping(record.get("launch"))
    decisions = {name: {"value": value} for name, value in _mapping(record.get("decisions")).items()}
    kept = {key: record[key] for key in ("summary", "memory", "launch", "outcome", "ended") if key in record}
    return {
        "format": FORMAT, "model": launch.get("model"), "family": _family_of(record["facts"]), "facts": record["facts"],
        "policy": {"digest": record.get("policy")}, "decisions": decisions, **kept,
    }  # fmt: skip


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _family_of(facts: Mapping[str, Any]) -> str:
    """The family whose words a record of format 1 speaks: none was named in it."""
    known = (name for name in registry.names() if facts.keys() >= {w.name for w in registry.family(name).vocabulary()})
    return next(known, registry.names()[0])
