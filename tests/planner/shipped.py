"""Plans of the shipped catalog on the shipped hosts, each made once: no probe, no store, no environment."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gezel_rules.catalog import ids
from gezel_rules.places import catalog_dir, policies_dir
from gezel_rules.planner.known import Known
from gezel_rules.planner.plan import Plan, Request, make_plan
from gezel_rules.planner.report import explainer, refusal
from gezel_rules.planner.subject import Places
from gezel_rules.planner.summary import notes, warnings

MODELS = tuple(ids(catalog_dir()))
HOSTS = tuple(sorted(path.stem for path in (catalog_dir() / "hosts").glob("*.yaml")))
PAIRS = tuple((model, host) for host in HOSTS for model in MODELS)
_CACHE = TemporaryDirectory(prefix="gezel-rules-test-")
"""Goes with this process."""
KNOWN = Known(policies_dir(), catalog_dir(), Path(_CACHE.name))
"""Policies and catalog, read once for all plans."""


@cache
def plan(model: str, host: str, assignments: tuple[str, ...] = ()) -> Plan:
    """The plan of a catalog model on a described host."""
    places = Places(catalog_dir(), Path("STORE"), lambda model: None)
    where = catalog_dir() / "hosts" / f"{host}.yaml"
    request = Request(model, policies_dir(), places, Path(_CACHE.name), {}, (), assignments, where, known=KNOWN)
    return make_plan(request)


@cache
def explained(model: str, host: str) -> dict[str, Any]:
    """What ``plan --json`` says of it, without memory and ladder."""
    made = plan(model, host)
    explain = explainer(made)
    return {
        "argv": made.argv,
        "flags": [{"tokens": list(flag.tokens), "decision": flag.decision} for flag in made.flags],
        "decisions": [explain.to_json(judgement) for judgement in made.trace.judgements.values()],
        "warnings": warnings(made, explain),
        "notes": notes(made, explain),
        "refused": refusal(made, explain),
    }
